"""Tables whose absent features are drawn given the present ones.

shap's own explainers take these maskers, too: they draw each coalition once, and call the model
with arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from shapley_adapters.array_types import BoolArray, FloatArray
from shapley_adapters.conditional import hosted
from shapley_adapters.conditional.draws import ConditionalDistribution, RowDraws, checked_draws

from ..argument_types import Rows
from ..inputs.datasets import Dataset, dense_table
from ..inputs.masked_rows import InputMask, Mask, MaskedInputs, MaskedRow
from ..inputs.models import empty_table


class ConditionalMasker(hosted.DrawnFeatures[Rows]):
    """Draws absent features given the present ones; its subclasses say from which distribution.

    Attributes
    ----------
    background : Dataset
        The data, and the names of its columns.
    draws : ConditionalDraws
        The distribution, with its random numbers.
    is_split : bool
        Whether the value that the model sees of a feature, and what it tells about other features,
        are two features: see `SplitRow`.
    """

    background: Dataset
    is_split = False

    _data = "array or DataFrame, (N, D)"

    def _fit(
        self,
        data: Rows,
        fitted: Callable[..., ConditionalDistribution],
        draws: int,
        seed: int | None,
    ) -> None:
        """Fit a distribution to data and the names of its columns.

        Frames keep the types of their columns where whole rows are drawn; else they hold numbers.
        """
        self.data_frame = empty_table(data)
        dataset = dense_table(data)
        values = dataset.array()
        distribution = fitted(values, None if dataset.columns is None else list(dataset.columns))
        if not self.are_rows_drawn:
            values = values.astype(np.float64)
        dtypes = dataset.dtypes if self.are_rows_drawn else None
        self.background = Dataset(values, dataset.columns, dtypes)
        self.draws = checked_draws(distribution, values.shape[1], draws, seed)

    # What shap's own explainers ask a masker.

    @property
    def shape(self) -> tuple[int, int]:
        """The number of masked rows for each mask, and of features."""
        return self.draws.points.n_draws, int(self.background.values.shape[1])

    def __call__(self, mask: BoolArray, row: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a row once for each draw of its absent features, (K, D)."""
        masks = np.broadcast_to(np.asarray(mask, dtype=bool), (1, self.shape[1]))
        return self.draws.of_row(np.asarray(row))(masks)[0]


class Gaussian(hosted.Gaussian[Rows], ConditionalMasker):
    """Draws absent features from a normal distribution, given the present ones.

    Examples
    --------
    >>> import numpy as np
    >>> import shap
    >>> import shap_ext
    >>> rng = np.random.default_rng(0)
    >>> first = rng.normal(size=10_000)
    >>> X = np.column_stack([first, first + rng.normal(size=10_000)])
    >>> masker = shap_ext.maskers.Gaussian(X)
    >>> explainer = shap.Explainer(lambda x: 4 * x[:, 0], masker, algorithm="enumeration", seed=0)
    >>> explainer([[1.0, 2.0]]).values.round()  # the second column tells the first one
    array([[2., 2.]])
    """


class Causal(hosted.Causal[Rows], ConditionalMasker):
    """Draws absent features as they would be if the present ones were set by an intervention.

    Examples
    --------
    >>> import numpy as np
    >>> import shap
    >>> import shap_ext
    >>> cause = np.random.default_rng(0).normal(size=10_000)
    >>> X = np.column_stack([cause, cause + np.random.default_rng(1).normal(size=10_000)])
    >>> masker = shap_ext.maskers.Causal(X, order=[0, 1])
    >>> explainer = shap.Explainer(lambda x: 4 * x[:, 0], masker, algorithm="enumeration", seed=0)
    >>> explainer([[1.0, 2.0]]).values.round() + 0  # setting the effect does not change its cause
    array([[4., 0.]])
    """


class Copula(hosted.Copula[Rows], ConditionalMasker):
    """Draws absent features given the present ones: any margins, which depend like normal ones."""


class Empirical(hosted.Empirical[Rows], ConditionalMasker):
    """Draws the absent features of rows of the data that are near to the present ones."""


class Categorical(hosted.Categorical[Rows], ConditionalMasker):
    """Draws the absent features of rows of the data that have the same present values.

    Examples
    --------
    >>> import pandas as pd
    >>> import shap
    >>> import shap_ext
    >>> X = pd.DataFrame({"sky": ["blue", "grey"] * 50, "rain": ["no", "yes"] * 50})
    >>> masker = shap_ext.maskers.Categorical(X)
    >>> model = lambda frame: (frame["rain"] == "yes") * 4.0
    >>> explainer = shap.Explainer(model, masker, algorithm="enumeration", seed=0)
    >>> explainer(X[1:2]).values.round()  # the sky tells the rain
    array([[1., 1.]])
    """


class Forest(hosted.Forest[Rows], ConditionalMasker):
    """Draws the absent features of rows that share leaves of a forest with the present ones."""


class Sampled(hosted.Sampled[Rows], ConditionalMasker):
    """Draws absent features by a function of yours, such as a generative model."""


@dataclass
class DrawnRow(MaskedRow):
    """A row whose absent features are drawn given the present ones.

    Attributes
    ----------
    draws : RowDraws
        Draws the features.
    to_model_input : callable
        Converts masked rows to inputs of the model.
    """

    draws: RowDraws
    to_model_input: Callable[[npt.NDArray[Any]], Any]

    draws_values = True

    @cached_property
    def masks(self) -> list[InputMask]:
        """One entry per feature."""
        return [InputMask(self.draws.row.shape)]

    def repeated(self, repeat: int) -> DrawnRow:
        """Return the row with the draws of another repetition."""
        return replace(self, draws=self.draws.repeated(repeat))

    @property
    def has_refits(self) -> bool:
        """Whether the distribution knows the draws of other fits."""
        return self.draws.draws.log_ratios is not None

    def log_ratios(self, masks: Mask) -> FloatArray:
        """Return those of the draws of masks, (P, K, F)."""
        return self.draws.log_ratios(masks)

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Return one masked row for each draw."""
        (inputs,) = self.masked(mask[None])
        return inputs.parts

    def masked(self, masks: Mask) -> list[MaskedInputs]:
        """Return the masked rows of all masks; that of all features once, it has no draws."""
        masked = []
        is_full = np.asarray(masks.all(axis=1))
        for run in np.split(np.arange(len(masks)), np.flatnonzero(np.diff(is_full)) + 1):
            if is_full[run[0]]:
                rows = np.repeat(self.draws.row[None], len(run), axis=0)
            else:
                rows = self._drawn(masks[run]).reshape(-1, len(self.draws.row))
            masked.append(MaskedInputs(run, (self.to_model_input(rows),)))
        return masked

    def _drawn(self, masks: Mask) -> npt.NDArray[Any]:
        """Return the draws of masks, (P, K, D)."""
        return self.draws(masks)


@dataclass
class SplitRow(DrawnRow):
    """A row each of whose D features is present in two ways, feature i by the entries i and D + i.

    The first one puts the value into the model's rows. The second one lets the other features
    follow their distribution given the value.

    Attributes
    ----------
    columns : list
        Names of the D features.
    """

    columns: list[Any]

    @cached_property
    def masks(self) -> list[InputMask]:
        """Two entries per feature, with the row for both of them."""
        names = [f"{name}, {part}" for part in ("direct", "indirect") for name in self.columns]
        return [InputMask((len(names),), names, np.tile(self.draws.row, 2))]

    def log_ratios(self, masks: Mask) -> FloatArray:
        """Return those of the draws given the present features, whatever of these is shown."""
        return super().log_ratios(np.split(masks, 2, axis=1)[1])

    def _drawn(self, masks: Mask) -> npt.NDArray[Any]:
        is_shown, is_given = np.split(masks, 2, axis=1)
        return np.where(is_shown[:, None], self.draws.row, self.draws(is_given))

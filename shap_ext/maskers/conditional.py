"""Tables whose absent features are drawn given the present ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapley_adapters import conditional as core
from shapley_adapters.array_types import BoolArray
from shapley_adapters.conditional.draws import (
    ConditionalDistribution,
    ConditionalDraws,
    RowDraws,
    checked_draws,
)
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.graphs.causal_graph import CausalEdges, CausalOrder

from ..argument_types import Rows
from ..inputs.backgrounds import Background
from ..inputs.datasets import checked_dataset, one_array
from ..inputs.masked_rows import Mask, MaskedInputs, MaskedRow
from ..inputs.native_frames import empty_table


class ConditionalMasker:
    """Draws absent features given the present ones; its subclasses say from which distribution.

    Attributes
    ----------
    background : Background
        The data, and the names of its columns.
    draws : ConditionalDraws
        The distribution, with its random numbers.
    is_split : bool
        Whether the value that the model sees of a feature, and what it tells about other features,
        are two features: see `SplitRow`.
    """

    background: Background
    draws: ConditionalDraws
    is_split = False

    def _fit(
        self,
        data: Rows,
        fitted: Callable[[npt.NDArray[Any], Any], ConditionalDistribution],
        draws: int,
        seed: int | None,
        are_rows_drawn: bool = False,
    ) -> None:
        """Fit a distribution to data and the names of its columns.

        Frames keep the types of their columns where whole rows are drawn; else they hold numbers.
        """
        self.data_frame = empty_table(data)
        dataset = checked_dataset(data, name="data")
        if dataset.is_sparse:
            raise InvalidArgumentError("data is sparse; pass data.toarray().")
        values = one_array(dataset.values)
        if values.ndim != 2:
            raise InvalidArgumentError(f"data has shape {values.shape}; a table of rows is needed.")
        distribution = fitted(values, dataset.columns)
        if not are_rows_drawn:
            values = values.astype(np.float64)
        columns = None if dataset.columns is None else pd.Index(dataset.columns)
        self.background = Background(values, columns, dataset.dtypes if are_rows_drawn else None)
        self.draws = checked_draws(distribution, values.shape[1], draws, seed)

    # What shap's own explainers ask a masker.

    @property
    def shape(self) -> tuple[int, int]:
        """The number of masked rows for each mask, and of features."""
        return self.draws.points.n_draws, int(self.background.values.shape[1])

    def __call__(self, mask: BoolArray, row: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a row once for each draw of its absent features, (K, D)."""
        masks = np.broadcast_to(np.asarray(mask, dtype=bool), (1, self.shape[1]))
        drawn: npt.NDArray[Any] = self.draws.of_row(np.asarray(row))(masks)[0]
        return drawn


class Gaussian(ConditionalMasker):
    """Draws absent features from a normal distribution, given the present ones.

    The value of a coalition is the mean of the model over these draws. Features that follow from
    present ones keep to them, so that the model sees likely rows only; a feature that the model
    does not use shares the attribution of those that it tells. Its closed form costs little: about
    a microsecond for each row of the model.

    Parameters
    ----------
    data : array or DataFrame, (N, D)
        Rows from which mean and covariance are computed: numbers without missing values, more rows
        than columns.
    draws : int
        Rows of the model for each coalition. They are scrambled Sobol points with a random shift
        for each coalition, whose errors are .3 to .5 of those of 16 independent draws, and .14 to
        .35 of those of 64. Powers of 2 are best.
    seed : int, optional
        Seed of the shifts. None draws one.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the data are not numbers, or too few.

    Notes
    -----
    Each evaluation of an explainer of shap_ext costs `draws` rows of the model. A part of the
    coalitions is drawn twice, so that standard errors and intervals hold the noise of the draws, of
    enumeration, too; they do not hold the error of the fitted distribution. Values do not depend on
    the order of rows, on batches, or on threads. shap's own explainers take the masker, too: they
    draw each coalition once, and call the model with arrays.

    The mean over draws is unbiased, but a loss, a link or a logarithm of it has a bias that falls
    with their number: take 64 draws or more for these.

    Missing values of an explained row stay missing for the model, and say nothing about the other
    features.

    References
    ----------
    Aas, Jullum and Løland (2021), Explaining individual predictions when features are dependent.
    Artificial Intelligence 298, section 3.1.

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

    def __init__(self, data: Rows, draws: int = 16, seed: int | None = 0) -> None:
        self._fit(data, core.Gaussian.fitted, draws, seed)


class Causal(ConditionalMasker):
    """Draws absent features as they would be if the present ones were set by an intervention.

    Setting a feature changes its effects and not its causes, so that a feature gets credit for its
    effects on others only, where the order of causes is known. The distribution is normal: the
    notes of `Gaussian` apply.

    Parameters
    ----------
    data : array or DataFrame, (N, D)
        Rows of numbers without missing values, more than columns.
    order : list of columns, or of lists of columns, optional
        Causes before effects: `["age", ["income", "rent"], "savings"]`. Columns whose order is not
        known are in one list. By name, or by index; each column once.
    confounded : bool, list of bool, or list of nodes
        For each entry of an order, for some nodes of a graph, or for all: whether columns together
        are related by common causes that are not observed, so that setting one does not change the
        others. Otherwise they influence each other. One list of all columns with True gives
        marginal values, with False conditional ones.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.
    graph : networkx.DiGraph, or list of pairs, optional
        In place of an order: edges from causes to effects, such as
        `[("age", "income"), ("income", ("rent", "savings"))]`. Columns whose order is not known are
        a node together, a tuple. Each node depends on its direct causes only; columns without
        edges are independent of all others.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the order does not hold each column once, the graph has a cycle, or the data are not
        numbers, or too few.

    References
    ----------
    Heskes, Sijben, Bucur and Claassen (2020), Causal Shapley values: exploiting causal knowledge to
    explain individual predictions of complex models. NeurIPS 33, equation 6.

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

    def __init__(
        self,
        data: Rows,
        order: CausalOrder | None = None,
        confounded: core.Confounded = False,
        draws: int = 16,
        seed: int | None = 0,
        *,
        graph: CausalEdges | None = None,
    ) -> None:
        fit = core.CausalGaussian.fitted_to_graph
        fitted = partial(fit, order=order, graph=graph, confounded=confounded)
        self._fit(data, fitted, draws, seed)


class Copula(ConditionalMasker):
    """Draws absent features given the present ones: any margins, which depend like normal ones.

    For continuous features whose distributions are skewed or have heavy tails. Otherwise as
    `Gaussian`: its notes apply.

    Parameters
    ----------
    data : array or DataFrame, (N, D)
        Rows of numbers without missing values, more than columns. Draws lie between the least and
        the largest value of each column.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the data are not numbers, or too few.

    References
    ----------
    Aas, Jullum and Løland (2021), section 3.2.
    """

    def __init__(self, data: Rows, draws: int = 16, seed: int | None = 0) -> None:
        self._fit(data, core.Copula.fitted, draws, seed)


class Empirical(ConditionalMasker):
    """Draws the absent features of rows of the data that are near to the present ones.

    Absent features come together from one row, so that they fit each other whatever their
    distribution is. With many present features, few rows are near: the estimates then have less
    noise and more bias. The cost is about that of a hundred passes over the data for each
    coalition and row.

    Parameters
    ----------
    data : array or DataFrame, (N, D)
        Rows of numbers without missing values, more than columns.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.
    sigma : float, optional
        Width of the kernel, in units of the Mahalanobis distance over the root of the number of
        present features. By default it falls with the number of rows and of present features, by
        Scott's rule. shapr takes .1.
    eta : float
        Share of the weights that is kept: rows with the least weights are left out.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the data are not numbers, or too few.

    Warns
    -----
    ShapleyExtWarning
        If present features are far from all rows; the nearest are taken.

    References
    ----------
    Aas, Jullum and Løland (2021), section 3.3.
    """

    def __init__(
        self,
        data: Rows,
        draws: int = 16,
        seed: int | None = 0,
        *,
        sigma: float | None = None,
        eta: float = 0.95,
    ) -> None:
        fitted = partial(core.Empirical.fitted, sigma=sigma, eta=eta)
        self._fit(data, fitted, draws, seed, are_rows_drawn=True)


class Categorical(ConditionalMasker):
    """Draws the absent features of rows of the data that have the same present values.

    For tables of categories. All such rows are equally likely: this is the conditional
    distribution of the data, without any assumption.

    Parameters
    ----------
    data : array or DataFrame, (N, D)
        Rows of categories: texts, numbers or types of pandas, of which missing ones are one. No
        column may have more different values than half of the rows.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.

    Raises
    ------
    InvalidArgumentError
        If a column has too many different values.

    Warns
    -----
    ShapleyExtWarning
        If no row has all present values; those with most of them are taken.

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

    def __init__(self, data: Rows, draws: int = 16, seed: int | None = 0) -> None:
        self._fit(data, core.Categorical.fitted, draws, seed, are_rows_drawn=True)


class Forest(ConditionalMasker):
    """Draws the absent features of rows that share leaves of a forest with the present ones.

    For tables of numbers and categories, with or without missing values, whatever depends on what.
    Absent features come together from one row. For each coalition, 20 trees predict the absent
    features from the present ones, by splits that pass a test on rows of their own, so that
    independent features are drawn from all rows. Fitting takes some 30 ms for each coalition and
    1,000 rows of few columns, .7 s with 2,000 rows of 100, once for all explained rows, and .2 ms
    for each coalition of a row.

    Parameters
    ----------
    data : array or DataFrame, (N, D)
        Rows of numbers, texts or types of pandas. Columns that hold a text, or cannot be converted
        to numbers, are categories. Missing values are a value of their own.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the draws. None draws one. Trees depend on the coalition only.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If there are fewer than 12 rows, or columns of dates.

    References
    ----------
    Meinshausen (2006), Quantile regression forests, Journal of Machine Learning Research 7. Tested
    as in the conditional inference trees of Redelmeier, Jullum and Aas (2020), by t-tests.
    """

    def __init__(self, data: Rows, draws: int = 16, seed: int | None = 0) -> None:
        self._fit(data, core.Forest.fitted, draws, seed, are_rows_drawn=True)


class Sampled(ConditionalMasker):
    """Draws absent features by a function of yours, such as a generative model.

    Parameters
    ----------
    function : callable
        `function(mask, row, n, rng)` returns `n` rows, (n, D), whose absent values, where `mask` is
        False, are drawn given the present values of `row`. All its random numbers must come from
        `rng`, a NumPy Generator, so that results can be repeated.
    data : array or DataFrame
        Any rows, for the types and the names of columns.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the generators. None draws one.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the function is none, or returns rows of another shape.
    """

    def __init__(
        self,
        function: core.SamplingFunction,
        data: Rows,
        draws: int = 16,
        seed: int | None = 0,
    ) -> None:
        sampled = core.Sampled.checked(function)
        self._fit(data, lambda *_: sampled, draws, seed, are_rows_drawn=True)


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

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """One entry of the mask per feature."""
        return [self.draws.row.shape]

    def repeated(self, repeat: int) -> DrawnRow:
        """Return the row with the draws of another repetition."""
        return replace(self, draws=self.draws.repeated(repeat))

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
            masked.append(MaskedInputs((self.to_model_input(rows),), len(run)))
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

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Two entries of the mask per feature."""
        return [(2 * len(self.columns),)]

    @property
    def names(self) -> list[list[str] | None]:
        """Names of the two parts of each feature."""
        parts = ("direct", "indirect")
        return [[f"{column}, {part}" for part in parts for column in self.columns]]

    @property
    def plot_data(self) -> list[Any]:
        """The row for both parts."""
        return [np.tile(self.draws.row, 2)]

    def _drawn(self, masks: Mask) -> npt.NDArray[Any]:
        is_shown, is_given = np.split(masks, 2, axis=1)
        return np.where(is_shown[:, None], self.draws.row, self.draws(is_given))

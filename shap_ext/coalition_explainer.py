"""What all explainers share: shap's arguments in, an Explanation out."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import shap
from shapley_adapters import Estimate, Settings, estimate
from shapley_adapters.arguments import checked_count, checked_flag, checked_seed
from shapley_adapters.array_types import ScoreArray
from shapley_adapters.designs import Estimator
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtWarning,
)

from .column_groups import ColumnGroups, make_groups
from .explanations import Part, explanations
from .inputs import (
    Background,
    Dataset,
    checked_dataset,
    frame_values,
    mask_shapes,
    masker_game,
    tabular_game,
    zero_background,
)
from .links import LinkedAverage
from .masked_model_game import MaskerGame, TabularGame
from .models import inner_model, prediction_function
from .shap_internals import Deserializer, Serializer, background_of

_MAX_BACKGROUND = 100
_BAR_DELAY = 10.0
"""Seconds until a progress bar appears, as in shap."""


class CoalitionExplainer(shap.Explainer):
    """Base of the explainers that evaluate coalitions of features.

    Attributes
    ----------
    seed : int
        Seed of all random choices, drawn from the operating system where none was given. Each call
        starts from it, so that equal calls give equal explanations.
    last_estimate : Estimate or None
        What the latest call estimated and spent.
    """

    name = "coalitions"
    last_estimate: Estimate | None

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Callable[[Any], Any] = shap.links.identity,
        feature_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        linearize_link: bool = True,
        seed: int | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        algorithm: str | None = None,  # noqa: ARG002 shap passes it back in when it unwraps pipelines
    ) -> None:
        masker, self._background_dtypes = _bounded(masker)
        super().__init__(
            model,
            masker,
            link=link,
            feature_names=None if feature_names is None else list(feature_names),  # type: ignore[arg-type]
            output_names=None if output_names is None else list(output_names),
            linearize_link=checked_flag("linearize_link", linearize_link),
        )
        prediction_function(self.model)  # refuses what cannot be called, now rather than later
        if self.masker is not None and background_of(self.masker) is None and not callable(self.masker):
            raise InvalidArgumentTypeError(
                "masker must be background rows (an array or a DataFrame), a shap masker, or a "
                f"function of a mask and a row; got {type(masker).__name__}."
            )
        self.seed = checked_seed(seed)
        self.groups = groups
        self.last_estimate = None
        make_groups(None, [])
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> Estimator[Any]:
        """Return the estimator with the options of this object."""
        raise NotImplementedError

    def _cooperators(self) -> str | ScoreArray | None:
        return None

    def __call__(  # type: ignore[override]
        self,
        *args: Any,
        max_evals: int | str = "auto",
        main_effects: bool = False,
        error_bounds: bool = False,
        batch_size: int | str = "auto",
        outputs: Sequence[int] | None = None,
        silent: bool = False,
    ) -> Any:
        """Explain the model's output for each row.

        Parameters
        ----------
        *args : array, DataFrame or tensor, (R, …)
            The rows, one dataset for each input of the model.
        max_evals : int or "auto"
            The budget: how many coalitions are evaluated for each row, each once for all
            background rows. By default 16 a player, at least 500; where it pays for all 2^M
            coalitions, the explanation is exact.
        main_effects : bool
            Not supported.
        error_bounds : bool
            Whether to give standard errors (`error_std`) and 95 % intervals (`lower_bounds` and
            `upper_bounds`, which waterfall plots draw).
        batch_size : int or "auto"
            How many coalitions are evaluated in one call of the model. By default as many as fill
            a batch of bounded memory.
        outputs : sequence of int, optional
            Which outputs to explain; all by default.
        silent : bool
            Whether to show no progress bar; otherwise one appears after ten seconds.

        Returns
        -------
        shap.Explanation
            Values (R, M), or (R, M, K) for K outputs, in the units of the link; a list of
            explanations where the model has several inputs.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If an argument cannot be used; the message names it.
        BudgetError
            If `max_evals` is too small for the method; the message says what it needs.
        NonFiniteValueError
            If the model returns NaN or an infinite number.
        """
        started = time.time()
        if main_effects:
            raise InvalidArgumentError(
                "main_effects=True is not supported: these estimators do not single them out."
            )
        settings = Settings(
            seed=self.seed,
            budget=_count_or_auto("max_evals", max_evals),
            batch_size=_count_or_auto("batch_size", batch_size),
            cooperators=self._cooperators(),
            with_errors=checked_flag("error_bounds", error_bounds),
            progress_delay=None if checked_flag("silent", silent) else _BAR_DELAY,
            name=self.name,
            budget_name="max_evals",
        )
        task = self._task(args)
        result = estimate(task.game, self._estimator(), settings)
        self.last_estimate = result
        n_outputs = result.values.shape[2]
        return explanations(
            result,
            task.parts,
            error_bounds=error_bounds,
            outputs=_checked_outputs(outputs, n_outputs),
            output_names=self._checked_output_names(n_outputs),
            clustering=self._clustering(task),
            compute_time=time.time() - started,
        )

    def explain_row(
        self,
        *row_args: Any,
        max_evals: int | str = "auto",
        main_effects: bool = False,
        error_bounds: bool = False,
        batch_size: int | str = "auto",
        outputs: Sequence[int] | None = None,
        silent: bool = False,
    ) -> dict[str, Any]:
        """Explain one row; returns what shap's own explainers return for a row."""
        made = self(
            *(np.asarray(arg)[None] for arg in row_args),
            max_evals=max_evals,
            main_effects=main_effects,
            error_bounds=error_bounds,
            batch_size=batch_size,
            outputs=outputs,
            silent=silent,
        )
        parts = made if isinstance(made, list) else [made]
        shapes = [part.values.shape[1 : 1 + len(np.shape(part.data[0]))] for part in parts]
        flat = [
            part.values[0].reshape(int(np.prod(shape)), *part.values.shape[1 + len(shape) :])
            for part, shape in zip(parts, shapes, strict=True)
        ]
        base = parts[0].base_values[0]
        return {
            "values": np.concatenate(flat),
            "expected_values": base,
            "mask_shapes": shapes,
            "main_effects": None,
            "clustering": None if parts[0].clustering is None else parts[0].clustering[0],
            "error_std": None if parts[0].error_std is None else parts[0].error_std[0],
            "output_names": parts[0].output_names,
            "output_indices": np.arange(len(base)) if np.ndim(base) else None,
        }

    def save(
        self,
        out_file: Any,
        model_saver: str | Callable[..., Any] = ".save",
        masker_saver: str | Callable[..., Any] = ".save",
    ) -> None:
        """Write the explainer with all its options, its seed and its names to a file."""
        super().save(out_file, model_saver, masker_saver)
        saved = ("model", "masker", "link", "algorithm")
        options = {
            name: getattr(self, name)
            for name in inspect.signature(type(self)).parameters
            if name not in saved
        }
        with Serializer(out_file, "shap_ext.CoalitionExplainer", version=0) as stream:
            stream.save("options", options)

    @classmethod
    def load(  # type: ignore[override]
        cls,
        in_file: Any,
        model_loader: Callable[..., Any] | None = None,
        masker_loader: Callable[..., Any] | None = None,
        instantiate: bool = True,
    ) -> Any:
        """Read an explainer that `save` wrote."""
        if instantiate:
            return cls._instantiated_load(
                in_file, model_loader=model_loader, masker_loader=masker_loader
            )
        arguments = super().load(in_file, model_loader, masker_loader, instantiate=False)
        with Deserializer(in_file, "shap_ext.CoalitionExplainer", 0, 0) as stream:
            arguments.update(stream.load("options"))  # type: ignore[union-attr]
        return arguments

    def _task(self, args: tuple[Any, ...]) -> _Task:
        if not args:
            raise InvalidArgumentTypeError("X is missing: pass the rows to explain.")
        datasets = [checked_dataset(data, place) for place, data in enumerate(args)]
        background = self._background(datasets)
        average = LinkedAverage(self.link)
        if background is None:
            shapes = mask_shapes(self.masker, tuple(d.values[0] for d in datasets))
            groups = make_groups(self.groups, self._column_names(datasets, None, shapes))
            game: TabularGame | MaskerGame = masker_game(
                self.model, self.masker, datasets, groups, average, self.linearize_link
            )
        else:
            if len(datasets) > 1:
                raise InvalidArgumentError(
                    f"{len(datasets)} datasets were passed, but the masker's background is one "
                    "table. Pass a function of a mask and the inputs as masker=."
                )
            shapes = [datasets[0].row_shape]
            groups = make_groups(self.groups, self._column_names(datasets, background, shapes))
            game = tabular_game(
                self.model, background, datasets[0], groups, average, self.linearize_link
            )
        return _Task(game, self._parts(datasets, shapes, groups), groups)

    def _background(self, datasets: Sequence[Dataset]) -> Background | None:
        if self.masker is None:
            return zero_background(self.model, datasets)
        values = background_of(self.masker)
        if values is None:
            return None
        columns = getattr(self.masker, "feature_names", None)
        return Background(
            np.asarray(values), None if columns is None else list(columns), self._background_dtypes
        )

    def _column_names(
        self,
        datasets: Sequence[Dataset],
        background: Background | None,
        shapes: Sequence[tuple[int, ...]],
    ) -> list[Any]:
        """Return the names of all columns: the rows', else the user's, else the background's."""
        n_columns = int(sum(np.prod(shape) for shape in shapes))
        names = datasets[0].columns if len(datasets) == 1 else None
        if names is None:
            names = self.feature_names  # type: ignore[assignment]
        if names is None and background is not None:
            names = background.columns
        if names is None:
            return [f"Feature {column}" for column in range(n_columns)]
        if len(names) != n_columns:
            raise InvalidArgumentError(
                f"feature_names holds {len(names)} names, but X has {n_columns} columns."
            )
        return list(names)

    def _parts(
        self, datasets: Sequence[Dataset], shapes: Sequence[tuple[int, ...]], groups: ColumnGroups
    ) -> list[Part]:
        if groups.any_joint:
            if len(datasets) > 1:
                raise InvalidArgumentError("groups needs a model with one input.")
            data = np.asarray(datasets[0].values).reshape(len(datasets[0].values), -1)
            numbers, labels = groups.summarize(data)
            return [Part(0, (len(groups.names),), numbers, labels, groups.names)]
        parts, first = [], 0
        for dataset, shape in zip(datasets, shapes, strict=True):
            size = int(np.prod(shape))
            names = groups.names[first : first + size] if len(shape) == 1 else None
            parts.append(Part(first, shape, np.asarray(dataset.values), None, names))
            first += size
        return parts

    def _checked_output_names(self, n_outputs: int) -> Sequence[str] | None:
        names = self.output_names
        if names is None:
            names = getattr(inner_model(self.model), "output_names", None)
        if names is not None and len(names) != n_outputs:
            raise InvalidArgumentError(
                f"output_names holds {len(names)} names, but the model has {n_outputs} outputs."
            )
        return names

    def _clustering(self, task: _Task) -> Any:
        """Return the masker's clustering of the features for each row, for bar plots."""
        clustering = getattr(self.masker, "clustering", None)
        if not isinstance(clustering, np.ndarray) or task.groups.any_joint:
            return None
        return np.repeat(clustering[None], task.game.n_rows, axis=0)


@dataclass(frozen=True)
class _Task:
    """What one call explains."""

    game: TabularGame | MaskerGame
    parts: list[Part]
    groups: ColumnGroups


def _bounded(masker: Any) -> tuple[Any, Any]:
    """Return the masker, and the column types of a DataFrame.

    A table of many rows is sampled as shap does it, but not in silence.
    """
    dtypes = masker.dtypes if isinstance(masker, pd.DataFrame) else None
    is_table = isinstance(masker, pd.DataFrame) or (
        isinstance(masker, np.ndarray) and masker.ndim == 2
    )
    if not is_table:
        return masker, dtypes
    if len(masker) == 0:
        raise InvalidArgumentError("masker holds no background rows; at least one is needed.")
    if len(masker) > _MAX_BACKGROUND:
        warnings.warn(
            f"masker has {len(masker)} rows, of which {_MAX_BACKGROUND} are drawn as background. "
            "To use all of them, pass shap.maskers.Independent(data, max_samples=len(data)); to "
            "use fewer, pass a sample or the mean.",
            ShapleyExtWarning,
            stacklevel=4,
        )
    if isinstance(masker, pd.DataFrame):
        # Values as `frame_values` gives them, so that rows and background have one type.
        masker = pd.DataFrame(frame_values(masker), columns=masker.columns)
    return masker, dtypes


def _count_or_auto(name: str, value: Any) -> int | None:
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, str):
        raise InvalidArgumentTypeError(f"{name} must be a whole number or 'auto'; got {value!r}.")
    return checked_count(name, value)


def _checked_outputs(outputs: Any, n_outputs: int) -> Sequence[int] | None:
    if outputs is None:
        return None
    if isinstance(outputs, (str, bytes)) or not isinstance(outputs, (Sequence, np.ndarray)):
        raise InvalidArgumentTypeError(
            f"outputs must be a list of places of outputs; got {type(outputs).__name__}."
        )
    places = [checked_count("outputs", place, minimum=0) for place in outputs]
    if any(place >= n_outputs for place in places):
        raise InvalidArgumentError(
            f"outputs={places} names outputs beyond the model's {n_outputs}, counted from 0."
        )
    return places

"""From what users pass to the games that are estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import shap

from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    warn_user,
)

from .column_groups import ColumnGroups, make_groups
from .explanations import Part
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
from .models import inner_model, is_torch_module
from .shap_internals import background_of

_MAX_BACKGROUND = 100
"""How many rows shap keeps of a table that is handed over as a masker."""


@dataclass(frozen=True)
class Task:
    """What one call explains: the game, and how each input shows its part of the players."""

    game: TabularGame | MaskerGame
    parts: list[Part]
    groups: ColumnGroups

    def clustering(self, masker: Any) -> Any:
        """Return the masker's clustering of the features for each row, for bar plots."""
        clustering = getattr(masker, "clustering", None)
        if not isinstance(clustering, np.ndarray) or self.groups.any_joint:
            return None
        return np.repeat(clustering[None], self.game.n_rows, axis=0)


@dataclass(frozen=True)
class TaskMaker:
    """Makes tasks of datasets, with what the explainer was built with."""

    model: Any
    masker: Any
    background_dtypes: Any
    average: LinkedAverage
    linearize_link: bool
    feature_names: Any
    groups: Mapping[str, Sequence[Any]] | None

    def __call__(self, args: tuple[Any, ...]) -> Task:
        """Check the rows and make their game."""
        if not args:
            raise InvalidArgumentTypeError("X is missing: pass the rows to explain.")
        datasets = [checked_dataset(data, place) for place, data in enumerate(args)]
        lengths = [len(dataset.values) for dataset in datasets]
        if len(set(lengths)) > 1:
            raise InvalidArgumentError(
                f"The inputs must have the same number of rows; they have {lengths}."
            )
        if is_torch_module(inner_model(self.model)):
            from shapley_adapters.torch_modules import warn_in_training_mode

            warn_in_training_mode(inner_model(self.model))
        background = self._background(datasets)
        if background is None:
            shapes = mask_shapes(self.masker, tuple(d.values[0] for d in datasets))
            if sum(np.prod(shape) for shape in shapes) == 0:
                raise InvalidArgumentError(
                    f"masker {type(self.masker).__name__} has no players; there is nothing to "
                    "explain."
                )
            groups = make_groups(self.groups, self._column_names(datasets, None, shapes))
            game: TabularGame | MaskerGame = masker_game(
                self.model, self.masker, datasets, groups, self.average, self.linearize_link
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
                self.model, background, datasets[0], groups, self.average, self.linearize_link
            )
        return Task(game, self._parts(datasets, shapes, groups), groups)

    def _background(self, datasets: Sequence[Dataset]) -> Background | None:
        if self.masker is None:
            return zero_background(self.model, datasets)
        values = background_of(self.masker)
        if values is None:
            return None
        columns = getattr(self.masker, "feature_names", None)
        return Background(
            np.asarray(values), None if columns is None else list(columns), self.background_dtypes
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
            names = self.feature_names
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
            # A copy: what the user does to the rows later is not part of the explanation.
            parts.append(Part(first, shape, np.array(dataset.values), None, names))
            first += size
        return parts


def bounded_background(masker: Any) -> tuple[Any, Any]:
    """Return the masker, and the column types of a DataFrame.

    A table of many rows is sampled as shap does it, but not in silence.
    """
    if hasattr(masker, "detach"):
        masker = masker.detach().cpu().numpy()
    dtypes = masker.dtypes if isinstance(masker, pd.DataFrame) else None
    is_table = isinstance(masker, pd.DataFrame) or (
        isinstance(masker, np.ndarray) and masker.ndim >= 2
    )
    if not is_table:
        return masker, dtypes
    if len(masker) == 0:
        raise InvalidArgumentError("masker holds no background rows; at least one is needed.")
    if len(masker) > _MAX_BACKGROUND:
        warn_user(
            f"masker has {len(masker)} rows, of which {_MAX_BACKGROUND} are drawn as background. "
            "To use all of them, pass shap.maskers.Independent(data, max_samples=len(data)); to "
            "use fewer, pass a sample or the mean."
        )
    if isinstance(masker, np.ndarray):
        # shap itself samples tables only. A copy, because its maskers keep the very array.
        is_sampled_here = masker.ndim > 2 and len(masker) > _MAX_BACKGROUND
        masker = shap.sample(masker, _MAX_BACKGROUND) if is_sampled_here else masker.copy()
    if isinstance(masker, pd.DataFrame):
        # Values as `frame_values` gives them, so that rows and background have one type.
        masker = pd.DataFrame(frame_values(masker).copy(), columns=masker.columns)
    return masker, dtypes


def check_masker(masker: Any) -> None:
    """Refuse what is neither background rows nor callable."""
    if isinstance(masker, np.ndarray) and masker.ndim < 2:
        raise InvalidArgumentError(
            f"masker has shape {masker.shape}; background rows make a table. For one row pass "
            "masker[None]."
        )
    if scipy.sparse.issparse(getattr(masker, "data", masker)):
        raise InvalidArgumentTypeError("masker is sparse; pass masker.toarray().")
    if masker is not None and background_of(masker) is None and not callable(masker):
        raise InvalidArgumentTypeError(
            "masker must be background rows (an array or a DataFrame), a shap masker, or a "
            f"function of a mask and a row; got {type(masker).__name__}."
        )

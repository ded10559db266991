"""Exact values from the structure of trees and linear models, for the function that is explained.

They only take the place of evaluations: attributions that do not sum to the outputs of the function
are not taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse
import shap

from shapley_adapters import Estimate
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import warn_user
from shapley_adapters.frames import pandas_frame
from shapley_adapters.games.evaluation import Evaluator
from shapley_adapters.pipeline.result import blank_estimate

from ..argument_types import Table
from ..games.table_games import SparseGame, TabularGame

_ROUNDING = 1e-4
"""Largest difference between a model's output and the sum of its attributions, relative to the
outputs: trees of some libraries compute in single precision."""


@dataclass
class NativeExplainer:
    """Exact values from the structure of an estimator.

    Attributes
    ----------
    structure : fitted estimator
        Trees, or a linear model with `coef_` and `intercept_`.
    masker : masker, or None
        The background. Without one, trees take the shares of their training rows at each split
        ("tree_path_dependent"), as shap does by default.
    """

    structure: Any
    masker: Any
    _trees: Any = field(default=None, init=False, repr=False)  # built once; False if refused

    @property
    def is_linear(self) -> bool:
        """Whether the structure is a linear model."""
        return hasattr(self.structure, "coef_")

    @property
    def has_paths(self) -> bool:
        """Whether trees are explained by the paths of their training rows."""
        return self.masker is None and not self.is_linear

    def estimate(self, game: object, rows: Table, seed: int) -> Estimate | None:
        """Return the exact attributions of rows; None where the structure does not give them.

        Parameters
        ----------
        game : Game
            The game of the rows, with the function that is explained.
        rows : table, (R, D)
            The rows as the user passed them.
        seed : int
            The seed that the result states.
        """
        if not isinstance(game, TabularGame | SparseGame):
            return None
        try:
            found = self._values(game, rows)
        except Exception:  # of any kind: then shap has no answer for this structure and rows
            return None
        if found is None:
            return None
        base, values = found
        n_rows, n_players, n_outputs = values.shape
        ends = np.stack([np.broadcast_to(base, (n_rows, n_outputs))] * 2, axis=1)
        ends[:, 1] += values.sum(axis=1)
        outputs = Evaluator(game).values_of(np.ones((1, n_players), dtype=bool))[:, 0]
        if outputs.shape != ends[:, 1].shape:
            return None
        largest = max(1.0, np.abs(outputs).max(initial=0.0))
        if not (np.abs(ends[:, 1] - outputs) <= _ROUNDING * largest).all():
            return None
        name = "LinearExplainer" if self.is_linear else "TreeExplainer"
        choice = f"{name}: exact values from the structure of the model"
        if self.has_paths:
            choice += ", by the paths of its training rows"
            warn_user(
                "No masker was given, so absent features follow the training rows of the trees, "
                'as in shap ("tree_path_dependent"). Pass background rows as masker= for another '
                "reference."
            )
        result = blank_estimate(ends, n_players, seed, name)
        result.values[:] = values
        result.enumerated[:] = True
        result.evaluations[:] = 0
        return replace(result, choice=choice)

    def _values(
        self, game: TabularGame | SparseGame, rows: Table
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the base values, (K,) or (R, K), and attributions, (R, D, K)."""
        if self.has_paths:
            return self._tree_values(_dense(pandas_frame(rows, "X")))
        if self.masker is None or game.rows.dtype.kind not in "biuf":
            return None  # shap's trees know no categories beside a background
        weights = game.background_weights
        if self.is_linear:
            return _linear_values(self.structure, game.rows, game.background, weights)
        if weights is not None or scipy.sparse.issparse(game.background):
            return None  # of sparse rows, shap's C code would only print an error
        return self._tree_values(game.rows, data=game.background)

    def _tree_values(self, rows: Table, **options: Any) -> tuple[FloatArray, FloatArray] | None:
        """Return what shap says of rows; the first call builds its explainer with `options`."""
        if self._trees is None:
            try:
                trees = shap.TreeExplainer(self.structure, **options)
            except Exception:  # of any kind: then shap has no answer for these trees
                trees = False
            self._trees = trees  # at once, because threads may share this object
        if self._trees is False:
            return None
        explained = self._trees(rows, check_additivity=False)
        values = np.asarray(explained.values, dtype=np.float64)
        values = values[:, :, None] if values.ndim == 2 else values
        return np.asarray(explained.base_values, dtype=np.float64).reshape(len(values), -1), values


def _linear_values(
    model: Any, rows: Table, background: Table, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return the base values, (K,), and attributions, (R, D, K)."""
    coefficients = np.atleast_2d(np.asarray(_dense(model.coef_), dtype=np.float64))  # (K, D)
    if weights is None:
        weights = np.full(background.shape[0], 1 / background.shape[0])
    average = weights @ background
    base: FloatArray = average @ coefficients.T + model.intercept_
    return base, (_dense(rows) - average)[:, :, None] * coefficients.T


def _dense(table: Any) -> Any:
    return table.toarray() if scipy.sparse.issparse(table) else table

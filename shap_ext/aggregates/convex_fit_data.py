"""Data to learn convex combinations: explanations of rows and of neighbours, and outputs."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapley_adapters.aggregation import (
    ComplexityLoss,
    CriterionLoss,
    SensitivityLoss,
    UnfaithfulnessLoss,
    on_one_scale,
)
from shapley_adapters.aggregation.losses import Loss
from shapley_adapters.arguments import checked_choice
from shapley_adapters.array_types import FloatArray
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.criteria.faithfulness import removal_losses
from shapley_adapters.criteria.neighbourhoods import explained_neighbours
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.frames import pandas_frame

from ..argument_types import Rows, Table
from ..explainers.criteria_games import game_of
from ..inputs.datasets import plain_array_of
from ..inputs.models import as_outputs, prediction_function
from ..results.output_axes import folded
from .base_explainers import in_form_of

LEARNED = ("complexity", "sensitivity", "faithfulness", "trade_off")

Explain = Callable[[Any], tuple[list[FloatArray], bool]]
"""Rows to the values of all base explainers, and whether their last axis counts outputs."""


@dataclass(frozen=True)
class ConvexFitData:
    """Rows, the function that explains them, and the explainer that holds the options."""

    explainer: Any
    explain: Explain
    rows: Any

    @staticmethod
    def check(weights: object, neighbourhood: object, complexity_weight: object) -> None:
        """Raise an error if weights cannot be learned with these options."""
        if isinstance(weights, str):
            checked_choice("weights", weights, LEARNED)
            if weights in ("sensitivity", "trade_off") and neighbourhood is None:
                raise InvalidArgumentError(
                    f"weights={weights!r} needs neighbourhood=, such as "
                    "Neighbourhood(radius=0.1), from which neighbours are drawn."
                )
        if neighbourhood is not None and not isinstance(neighbourhood, Neighbourhood):
            raise InvalidArgumentError(
                "neighbourhood must be a shapley_adapters.criteria.Neighbourhood; got "
                f"{type(neighbourhood).__name__}."
            )
        if (
            not isinstance(complexity_weight, numbers.Real)
            or not 0 <= float(complexity_weight) < np.inf
        ):
            raise InvalidArgumentError(
                "complexity_weight must be a finite number, not negative; got "
                f"{complexity_weight!r}."
            )

    @classmethod
    def from_rows(cls, explainer: Any, explain: Explain, rows: Rows | None) -> ConvexFitData:
        """Check the rows and return the data."""
        if rows is None or not hasattr(rows, "shape") or rows.shape[0] == 0:
            raise InvalidArgumentError(
                "dataset= is needed, rows on which weights are learned, unless masker= is a table."
            )
        return cls(explainer, explain, plain_array_of(pandas_frame(rows, "dataset"), "dataset"))

    def loss(self, weights: str | Callable[[FloatArray], Any], complexity_weight: float) -> Loss:
        """Return the loss that the name of a criterion, or a function, stands for."""
        if not isinstance(weights, str):
            return CriterionLoss(self._candidates(self.rows), weights)
        if weights == "complexity":
            return self.complexity()
        if weights == "sensitivity":
            return self.sensitivity()
        if weights == "faithfulness":
            return self.unfaithfulness()
        complexity, sensitivity = self.complexity(), self.sensitivity()
        return lambda w: sensitivity(w) + complexity_weight * complexity(w)

    def complexity(self) -> ComplexityLoss:
        """Return the complexity of combinations for the rows."""
        return ComplexityLoss(self._candidates(self.rows))

    def sensitivity(self) -> SensitivityLoss:
        """Return how combinations differ between rows and neighbours that keep the prediction."""
        around = self.explainer.neighbourhood
        ConvexFitData.check("sensitivity", around, 0)
        predict = prediction_function(self.explainer.model)

        def explain(rows: FloatArray) -> FloatArray:
            return np.moveaxis(self._per_output(in_form_of(self.rows, rows)), 0, 1)

        explanations = explained_neighbours(
            explain,
            lambda rows: as_outputs(predict(in_form_of(self.rows, rows)), len(rows)),
            self.rows,
            around,
            seed=self.explainer.seed,
        )
        return SensitivityLoss.from_explanations(*explanations)

    def unfaithfulness(self) -> UnfaithfulnessLoss:
        """Return the distance of combinations from the changes of output without features."""
        explainer = self.explainer
        game = game_of(explainer.model, explainer.masker, self.rows, explainer.link, self._groups())
        candidates = self._per_output(self.rows)
        n_candidates, n_rows, n_outputs, n_features = candidates.shape
        if n_features != game.n_players:
            raise InvalidArgumentError(
                f"weights='faithfulness': the explainers explain {n_features} features, but the "
                f"rows have {game.n_players} players. Where they explain groups of columns, one of "
                "them must be an explainer of this package with groups=."
            )
        subsets, losses = removal_losses(game, n_outputs, seed=explainer.seed)
        merged = candidates.reshape(n_candidates, n_rows * n_outputs, n_features)
        return UnfaithfulnessLoss.from_candidates(
            merged, subsets, losses.reshape(n_rows * n_outputs, -1)
        )

    def _groups(self) -> Any:
        """Return the groups of columns of the first base explainer that has any."""
        candidates = (getattr(explainer, "groups", None) for explainer in self.explainer._specs())
        return next((groups for groups in candidates if groups is not None), None)

    def _per_output(self, rows: Table) -> FloatArray:
        """Return the explanations of all base explainers, (G, R, K, M)."""
        values, with_outputs = self.explain(rows)
        arrays = np.array([folded(array, with_outputs) for array in values])
        per_output = arrays if with_outputs else arrays[:, :, None]
        return on_one_scale(per_output, self.explainer.scale)

    def _candidates(self, rows: Table) -> FloatArray:
        """Return the explanations of all base explainers, one row per row and output, (G, R, M)."""
        per_output = self._per_output(rows)
        return per_output.reshape(len(per_output), -1, per_output.shape[3])

"""Convex combinations of several explanations, for shap."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import shapley_adapters.aggregation as core
from shapley_adapters.aggregation import (
    ComplexityLoss,
    CriterionLoss,
    SensitivityLoss,
    UnfaithfulnessLoss,
    on_one_scale,
)
from shapley_adapters.aggregation.convex import Loss
from shapley_adapters.arguments import checked_choice, checked_seed
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.criteria.faithfulness import removal_losses
from shapley_adapters.criteria.neighbourhoods import explained_neighbours
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.frames import pandas_frame
from shapley_adapters.games.model_outputs import as_outputs

from ..argument_types import Rows, Table
from ..explainers.judged_explanations import in_form_of, rows_with_game
from ..explainers.shared_parameters import documented
from ..inputs.datasets import plain_array_of
from ..inputs.explained_function import prediction_function
from ..results.explanations import folded, has_outputs
from ..shap_internals import background_of
from .candidate_explainer import CandidateExplainer, explained_by_all

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
        game = rows_with_game(
            explainer.model, explainer.masker, self.rows, explainer.link, self._groups()
        ).game
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


@documented
@write_constructor
class ConvexExplainer(CandidateExplainer):
    """A convex combination of the explanations of several explainers.

    Σ_i w_i g_i (Bhatt, Weller and Moura, Evaluating and aggregating feature-based model
    explanations). The weights are passed, or are learned for a criterion on a set of rows. On these
    rows, the combination is at least as good as the best of the explainers. Combinations of Shapley
    estimates sum to the model's output.

    Parameters
    ----------
    {of_aggregates}
    {explainers}
    weights : sequence of float, criterion, or callable, optional
        One number per explainer, not negative; they are divided by their sum. By default they are
        equal. Or the criterion for which weights are learned: `"complexity"`; `"sensitivity"`, the
        average over neighbours; `"faithfulness"`; `"trade_off"`, sensitivity plus
        `complexity_weight` times complexity; or a function of explanations, (R, M), that returns
        one number per explanation, lower is better.
    dataset : array or DataFrame, optional
        The rows on which weights are learned, at the first call or by `learn`; by default those of
        `masker`.
    complexity_weight : float
        λ of `"trade_off"`, in units of the output for a nat.
    neighbourhood : shapley_adapters.criteria.Neighbourhood, optional
        The neighbours for the sensitivity; needed for it and for `"trade_off"`.
    scale : {"none", "l1", "l2", "max"}
        The norm by which each explanation is scaled first, to the mean norm of all. `"none"`: no
        scaling.

    Attributes
    ----------
    learned_weights : LearnedWeights or None
        The learned weights and their losses.

    Notes
    -----
    The cost is that of all explainers. `max_evals` is divided equally among those that have it.
    Learning explains the data once. For sensitivity it also explains their neighbours; for
    faithfulness it also evaluates 100 coalitions per row.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.ConvexExplainer(
    ...     model, np.zeros((1, 2)), seed=0, explainers=["exact", lambda x: x], weights=[3, 1]
    ... )
    >>> explainer(np.array([[1.0, 2.0]]), silent=True).values
    array([[2.5, 5. ]])
    """

    name = "convex"

    weights: Any = None
    dataset: Any = None
    complexity_weight: float = 1.0
    neighbourhood: Neighbourhood | None = None
    scale: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.learned_weights: core.LearnedWeights | None = None
        n_explainers = len(self._specs())
        if self._is_learned:
            ConvexFitData.check(self.weights, self.neighbourhood, self.complexity_weight)
            core.Convex(None, self.scale)
        else:
            core.Convex(self.weights, self.scale)(np.zeros((n_explainers, 1, 1)))

    @property
    def _is_learned(self) -> bool:
        return isinstance(self.weights, str) or callable(self.weights)

    def learn(self, X: Rows | None = None, **arguments: Any) -> core.LearnedWeights:
        """Learn the weights on rows, by default `dataset`, and keep them.

        Parameters
        ----------
        X : array or DataFrame, (R, …), optional
            The rows.
        **arguments
            Arguments of the explainers, such as `max_evals`; each gets those that it takes.
        """
        fit_data = self._fit_data(X, arguments)
        loss = fit_data.loss(self.weights, self.complexity_weight)
        self.learned_weights = core.learned_weights(
            loss, len(self._specs()), seed=checked_seed(self.seed)
        )
        return self.learned_weights

    def _aggregator(self, rows: Table | None, arguments: Mapping[str, Any]) -> core.Convex:
        if not self._is_learned:
            return core.Convex(self.weights, self.scale)
        if self.learned_weights is None:
            self.learn(**{k: v for k, v in arguments.items() if k != "error_bounds"})
        weights = self.learned_weights.weights if self.learned_weights is not None else None
        return core.Convex(weights, self.scale)

    def _fit_data(self, dataset: Rows | None, arguments: Mapping[str, Any]) -> ConvexFitData:
        rows = self.dataset if dataset is None else dataset
        if rows is None and self.masker is not None:
            rows = background_of(self.masker)
        base_explainers = self._base_explainers()

        def explain(x: Table) -> Any:
            results = [result.values for result in explained_by_all(base_explainers, x, arguments)]
            return results, has_outputs(results[0], x)

        return ConvexFitData.from_rows(self, explain, rows)

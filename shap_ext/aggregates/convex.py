"""Convex combinations of several explanations, for shap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import shapley_adapters.aggregation as core
from shapley_adapters.arguments import checked_seed
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.criteria import Neighbourhood

from ..argument_types import Rows, Table
from ..explainers.shared_parameters import documented
from ..results.output_axes import has_outputs
from ..shap_internals import background_of
from .candidate_explainer import CandidateExplainer, explained_by_all
from .convex_fit_data import ConvexFitData


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

    def trade_off(
        self, X: Rows | None = None, complexity_weights: FloatArray | None = None, **arguments: Any
    ) -> core.TradeOff:
        """Return the curve of sensitivity against complexity over all combinations, to be plotted.

        Parameters
        ----------
        X : array or DataFrame, (R, …), optional
            The rows; by default `dataset`.
        complexity_weights : sequence of float, optional
            λ; by default 16 over three decades.
        **arguments
            Arguments of the explainers, such as `max_evals`.
        """
        fit_data = self._fit_data(X, arguments)
        return core.trade_off(
            fit_data.complexity(),
            fit_data.sensitivity(),
            complexity_weights,
            seed=checked_seed(self.seed),
        )

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

"""Convex combinations of several explanations, for shap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import shap

import shapley_adapters.aggregation as core
from shapley_adapters.criteria import Neighbourhood

from ..explainers.shared_parameters import documented
from ..results.output_axes import has_outputs
from ..shap_internals import background_of
from .candidate_explainer import CandidateExplainer, explained_by_all
from .convex_fit_data import LearningMaterial


@documented
class ConvexExplainer(CandidateExplainer):
    """A convex combination of the explanations of several explainers.

    Σ_i w_i g_i (Bhatt, Weller and Moura, Evaluating and aggregating feature-based model
    explanations), with given weights, or with weights learned for a criterion on a set of rows,
    on which the combination is at least as good as the best of the explainers. Combinations of
    Shapley estimates sum to the model's output.

    Parameters
    ----------
    {of_aggregates}
    {explainers}
    weights : sequence of float, criterion, or callable, optional
        One number for each explainer, not negative; they are divided by their sum; equal by
        default. Or what they are learned for: `"complexity"`; `"sensitivity"`, on average over
        neighbours; `"faithfulness"`; `"trade_off"`, sensitivity plus `complexity_weight` times
        complexity; or a function of explanations, (R, M), to one number each, lower is better.
    dataset : array or DataFrame, optional
        The rows on which weights are learned, at the first call or by `learn`; by default those of
        `masker`.
    complexity_weight : float
        λ of `"trade_off"`, in units of the output for a nat.
    neighbourhood : shapley_adapters.criteria.Neighbourhood, optional
        Where sensitivity looks for neighbours; needed for it and for `"trade_off"`.
    scale : {{"none", "l1", "l2", "max"}}
        Whether each explanation is first brought to the mean size of all, measured so.

    Attributes
    ----------
    learned : LearnedWeights or None
        The learned weights, and what they reach.

    Notes
    -----
    Costs what the explainers cost; `max_evals` is shared equally by those that take it. Learning
    explains the data once, for sensitivity their neighbours, too, and for faithfulness evaluates
    100 coalitions of each row.

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

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Callable[[Any], Any] | str = shap.links.identity,
        feature_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        linearize_link: bool = True,
        seed: int | None = None,
        algorithm: str | None = None,  # shap passes it back in when it unwraps a pipeline
        explainers: Sequence[Any] | None = None,
        weights: Any = None,
        dataset: Any = None,
        complexity_weight: float = 1.0,
        neighbourhood: Neighbourhood | None = None,
        scale: str = "none",
    ) -> None:
        super().__init__(
            model, masker, link, feature_names, output_names, linearize_link, seed, algorithm
        )
        self.explainers, self.weights, self.dataset = explainers, weights, dataset
        self.complexity_weight, self.neighbourhood, self.scale = (
            complexity_weight,
            neighbourhood,
            scale,
        )
        self.learned: core.LearnedWeights | None = None
        n_explainers = len(self._specs())
        if self._is_learned:
            LearningMaterial.check(weights, neighbourhood, complexity_weight)
            core.Convex(None, scale)
        else:
            core.Convex(weights, scale)(np.zeros((n_explainers, 1, 1)))

    @property
    def _is_learned(self) -> bool:
        return isinstance(self.weights, str) or callable(self.weights)

    def learn(self, X: Any = None, **arguments: Any) -> core.LearnedWeights:
        """Learn the weights on rows, by default `dataset`, and keep them.

        Parameters
        ----------
        X : array or DataFrame, (R, …), optional
            The rows.
        **arguments
            Arguments of the explainers, such as `max_evals`; each gets those that it takes.
        """
        material = self._material(X, arguments)
        loss = material.loss(self.weights, self.complexity_weight)
        self.learned = core.learned_weights(loss, len(self._specs()), seed=self.seed)
        return self.learned

    def trade_off(
        self, X: Any = None, complexity_weights: Any = None, **arguments: Any
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
        material = self._material(X, arguments)
        return core.trade_off(
            material.complexity(), material.sensitivity(), complexity_weights, seed=self.seed
        )

    def _aggregator(self, rows: Any, arguments: Mapping[str, Any]) -> core.Convex:
        if not self._is_learned:
            return core.Convex(self.weights, self.scale)
        if self.learned is None:
            self.learn(**{k: v for k, v in arguments.items() if k != "error_bounds"})
        weights = self.learned.weights if self.learned is not None else None
        return core.Convex(weights, self.scale)

    def _material(self, given: Any, arguments: Mapping[str, Any]) -> LearningMaterial:
        rows = self.dataset if given is None else given
        if rows is None and self.masker is not None:
            rows = background_of(self.masker)
        members = self._members()

        def explain(x: Any) -> Any:
            results = [one.values for one in explained_by_all(members, x, arguments)]
            return results, has_outputs(results[0], x)

        return LearningMaterial.of(self, explain, rows)

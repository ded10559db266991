"""Convex combinations of several explanations, for shap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

import shapley_adapters.aggregation as core
from shapley_adapters.aggregation.convex import check_criterion, loss_of_criterion
from shapley_adapters.arguments import checked_number, checked_seed
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.criteria.faithfulness import removal_losses
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
from .methods import CandidateExplainer, explained_by_all

LEARNED = ("complexity", "sensitivity", "faithfulness", "trade_off")


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
    learned_weights: core.LearnedWeights | None = field(default=None, init=False)

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
        self._check_options()
        rows = self._rows_to_learn(X)
        base_explainers = self._base_explainers()
        seed = checked_seed(self.seed)

        def candidates(x: Table) -> FloatArray:
            results = [result.values for result in explained_by_all(base_explainers, x, arguments)]
            with_outputs = has_outputs(results[0], x)
            arrays = np.array([folded(values, with_outputs) for values in results])
            return core.on_one_scale(arrays if with_outputs else arrays[:, :, None], self.scale)

        def sensitivity() -> core.SensitivityLoss:
            predict = prediction_function(self.model)
            return core.SensitivityLoss.around(
                lambda x: candidates(in_form_of(rows, x)),
                lambda x: as_outputs(predict(in_form_of(rows, x)), len(x)),
                rows,
                self.neighbourhood,  # type: ignore[arg-type] # which is there: checked
                seed=seed,
            )

        loss = loss_of_criterion(
            self.weights,
            lambda: candidates(rows),
            {
                "sensitivity": sensitivity,
                "faithfulness": lambda: self._unfaithfulness(rows, candidates(rows), seed),
            },
            self.complexity_weight,
        )
        self.learned_weights = core.learned_weights(loss, len(base_explainers), seed=seed)
        return self.learned_weights

    def _aggregator(self, arguments: Mapping[str, Any]) -> core.Convex:
        if not self._is_learned:
            return core.Convex(self.weights, self.scale)
        if self.learned_weights is None:
            self.learn(**{k: v for k, v in arguments.items() if k != "error_bounds"})
        weights = self.learned_weights.weights if self.learned_weights is not None else None
        return core.Convex(weights, self.scale)

    def _check_options(self) -> None:
        if not self._is_learned:
            core.Convex(self.weights, self.scale)(np.zeros((len(self._specs()), 1, 1)))
            return
        core.Convex(None, self.scale)
        check_criterion("weights", self.weights, LEARNED, self.neighbourhood)
        what = "a finite number, not negative"
        checked_number("complexity_weight", self.complexity_weight, what, lambda x: 0 <= x < np.inf)

    def _rows_to_learn(self, dataset: Rows | None) -> Any:
        rows: Any = self.dataset if dataset is None else dataset
        if rows is None and self.masker is not None:
            rows = background_of(self.masker)
        if rows is None or not hasattr(rows, "shape") or rows.shape[0] == 0:
            raise InvalidArgumentError(
                "dataset= is needed, rows on which weights are learned, unless masker= is a table."
            )
        return plain_array_of(pandas_frame(rows, "dataset"), "dataset")

    def _unfaithfulness(
        self, rows: Table, candidates: FloatArray, seed: int
    ) -> core.UnfaithfulnessLoss:
        """Return the distance of combinations from the changes of output without features."""
        # Groups of columns are those of the first explainer that has any.
        of_members = (getattr(explainer, "groups", None) for explainer in self._specs())
        groups = next((groups for groups in of_members if groups is not None), None)
        game = rows_with_game(self.model, self.masker, rows, self.link, groups).game
        *_, n_outputs, n_features = candidates.shape
        if n_features != game.n_players:
            raise InvalidArgumentError(
                f"weights='faithfulness': the explainers explain {n_features} features, but the "
                f"rows have {game.n_players} players. Where they explain groups of columns, one of "
                "them must be an explainer of this package with groups=."
            )
        subsets, losses = removal_losses(game, n_outputs, seed=seed)
        merged = candidates.reshape(len(candidates), -1, n_features)
        flat = losses.reshape(merged.shape[1], -1)
        return core.UnfaithfulnessLoss.from_candidates(merged, subsets, flat)

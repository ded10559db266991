"""Aggregates of several explanations, as explainers of shap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import shap

import shapley_adapters.aggregation as core
from shapley_adapters.aggregation import Aggregator, SpentEvaluations
from shapley_adapters.aggregation.aggregators import with_options_of
from shapley_adapters.aggregation.convex import check_criterion, loss_of_criterion
from shapley_adapters.arguments import checked_number, checked_seed
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.criteria.attribution_arrays import plain_array
from shapley_adapters.criteria.faithfulness import removal_losses
from shapley_adapters.errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.frames import pandas_frame
from shapley_adapters.games.model_outputs import as_outputs

from ..argument_types import Explanation, Rows, Table, Values
from ..explainers.judged_explanations import in_form_of, rows_with_game
from ..explainers.shared_parameters import documented
from ..inputs.datasets import plain_array_of
from ..inputs.explained_function import prediction_function
from ..results.explanations import folded, has_outputs, unfolded, with_outputs
from ..shap_internals import background_of
from .aggregate_explainer import AggregateExplainer, Combination, Spread
from .base_explainers import BaseExplainer, ExplainerResult, check_explainer

DEFAULT_EXPLAINERS = ("oddgp", "leastsquares", "shear")
LEARNED = ("complexity", "sensitivity", "faithfulness", "trade_off")


@write_constructor
class CandidateExplainer(AggregateExplainer):
    """Base of the aggregates of several explainers' answers for the same rows."""

    _kind: ClassVar[type[Any]]

    explainers: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._specs()  # refuses explainers that cannot be used, as the next line options
        self._check_options()

    def _check_options(self) -> None:
        with_options_of(self._kind, self)

    def _specs(self) -> list[Any]:
        explainers = DEFAULT_EXPLAINERS if self.explainers is None else self.explainers
        if isinstance(explainers, str) or not isinstance(explainers, Sequence):
            raise InvalidArgumentTypeError(
                f"explainers must be a list of explainers; got {type(explainers).__name__}."
            )
        if not explainers:
            raise InvalidArgumentError("explainers must hold at least 1 explainers; got 0.")
        for index, explainer in enumerate(explainers):
            check_explainer(f"explainers[{index}]", explainer)
        return list(explainers)

    def _aggregator(self, arguments: Mapping[str, Any]) -> Any:
        """Return the aggregator of the core with the options of this object."""
        return with_options_of(self._kind, self)

    def _combine(
        self, rows: Table, arguments: Mapping[str, Any], error_bounds: bool
    ) -> Combination:
        base_explainers = self._base_explainers()
        results = explained_by_all(base_explainers, rows, arguments)
        aggregator = self._aggregator(arguments)
        with_outputs = has_outputs(results[0].values, rows)
        aggregate = aggregator([folded(result.values, with_outputs) for result in results])
        self.last_aggregate = aggregate
        self.last_candidates = [result.values for result in results]
        self.last_evaluations = SpentEvaluations.from_members(
            (explainer.name, result.n_evaluations)
            for explainer, result in zip(base_explainers, results, strict=True)
        )
        template = next(
            (result.explanation for result in results if result.explanation is not None), None
        )
        return Combination(
            unfolded(aggregate.values, results[0].values.shape, with_outputs),
            aggregate.base_values([result.base_values for result in results]),
            _bounded_spread(base_explainers, results, aggregate.shared_weights)
            if error_bounds
            else None,
            template,
            _plot_data(results[0].values, rows, template),
            None if template is None else template.display_data,
        )


def explained_by_all(
    base_explainers: Sequence[BaseExplainer], rows: Table, arguments: Mapping[str, Any]
) -> list[ExplainerResult]:
    """Return the answers of all base explainers; an error about the budget names the shares."""
    results = []
    for explainer in base_explainers:
        try:
            results.append(explainer.explain(rows, arguments))
        except BudgetError as error:
            n_shares = sum(other.takes("max_evals") for other in base_explainers)
            total = None if error.needed is None else n_shares * error.needed
            remedy = "" if total is None else f" Pass max_evals={total} or more to the aggregate."
            raise BudgetError(
                f"{error} It is this explainer's part of the budget, which {n_shares} "
                f"share.{remedy}"
            ) from error
    if len({result.values.shape for result in results}) > 1:
        shapes = ", ".join(
            f"{explainer.name}: {result.values.shape}"
            for explainer, result in zip(base_explainers, results, strict=True)
        )
        raise InvalidArgumentError(
            f"the explainers must explain the same features and outputs; their values have the "
            f"shapes {shapes}."
        )
    return results


def _bounded_spread(
    base_explainers: Sequence[BaseExplainer],
    results: Sequence[ExplainerResult],
    weights: FloatArray | None,
) -> Spread:
    if weights is None:
        raise InvalidArgumentError(
            "error_bounds=True: this aggregate is no fixed linear combination of its explainers, "
            "so that their standard errors say nothing about it. Pass error_bounds=False."
        )
    shape = results[0].values.shape
    errors, half_widths = np.zeros(shape), np.zeros(shape)
    for explainer, result, weight in zip(base_explainers, results, weights, strict=True):
        if result.errors is None or result.half_widths is None:
            raise InvalidArgumentError(
                f"error_bounds=True, but {explainer.name} gives no standard errors."
            )
        errors += weight * result.errors
        half_widths += weight * result.half_widths
    return Spread(errors, half_widths)


def _plot_data(values: FloatArray, rows: Table, template: Explanation | None) -> Any:
    """Return the plot data of an explanation of the same rows, if it has the same features."""
    shape = values.shape[:-1] if has_outputs(values, rows) else values.shape
    if template is not None and np.shape(template.data) == shape:
        return template.data
    return np.asarray(rows)


@documented
@write_constructor
class CentroidExplainer(CandidateExplainer):
    """The explanation nearest to those of several explainers.

    argmin_g Σ_i D(g, g_i)^p (Bhatt, Weller and Moura, Evaluating and aggregating feature-based
    model explanations). The mean lowers the noise of explainers whose errors are independent. The
    median ignores single outliers. The Kemeny–Young rule uses only their rankings. The mean of
    Shapley estimates sums to the model's output; medians and ranks do not.

    Parameters
    ----------
    {of_aggregates}
    {explainers}
    distance : {"l2", "l1", "kendall"} or float
        D: Euclidean, ℓ1, Kendall's between rankings, or the order q ≥ 1 of a norm. By default, with
        p = 2, the mean.
    power : float, optional
        p ≥ 1, by default q: each feature by itself. `distance="l1"` is the median,
        `distance="l2", power=1` the geometric median.
    scale : {"none", "l1", "l2", "max"}
        The norm by which each explanation is scaled first, to the mean norm of all. `"none"`: no
        scaling.
    order : {"value", "magnitude"}
        Whether the rankings of `"kendall"` sort by value or by magnitude. The values of this
        centroid are M for the first feature down to 1 for the last.
    approximate : bool
        Whether rankings may be approximate if no majority orders more than 60 of their features.
        `last_aggregate.rankings` holds the bound that proves each of them, or the gap.

    Notes
    -----
    The cost is that of all explainers. `max_evals` is divided equally among those that have it.
    Others, such as `shap.KernelExplainer`, spend their own budget in addition, which may be larger:
    `max_evals` does not limit it.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.CentroidExplainer(model, np.zeros((1, 3)), seed=0, distance="l1")
    >>> explainer(np.array([[1.0, 2.0, 3.0]]), silent=True).values.round(6)
    array([[ 6., 12., 18.]])
    """

    name = "centroid"
    _kind = core.Centroid

    distance: str | float = "l2"
    power: float | None = None
    scale: str = "none"
    order: str = "value"
    approximate: bool = False


@documented
@write_constructor
class LowComplexityExplainer(CandidateExplainer):
    """An explanation no more complex than that of any of several explainers.

    The answer comes from the region that the explanations span, and its complexity, the entropy of
    ``|φ_i| / Σ|φ|``, is at most that of the simplest of them. Bhatt, Weller and Moura (Evaluating
    and aggregating feature-based model explanations) show two such algorithms as a figure; these
    are readings of it. Neither sums to the model's output.

    Parameters
    ----------
    {of_aggregates}
    {explainers}
    method : {"descent", "shrinking"}
        `"descent"`: from each explanation towards their mean, and from the mean towards each, one
        feature at a time, keeping a step only if the complexity falls; ends in the box that they
        span. `"shrinking"`: keeps the lowest points of the segments between the corners of their
        convex hull until the region is small; ends in the hull. It goes below the simplest
        explanation only where they disagree in the sign of a feature.
    scale : {"none", "l1", "l2", "max"}
        The norm by which each explanation is scaled first, to the mean norm of all. `"none"`: no
        scaling.
    n_steps : int
        Steps of each feature on its whole way (descent).
    n_rounds, tolerance, n_points : int, float, int
        Rounds at most, the part of its width at which the region is small, and how many changes of
        sign are looked at on a segment (shrinking).

    Notes
    -----
    The cost is that of all explainers. `max_evals` is divided equally among those that have it.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> explainer = shap_ext.LowComplexityExplainer(
    ...     lambda x: x.sum(axis=1),
    ...     explainers=[lambda x: x * [1, 2, -1], lambda x: x * [1, 3, 1]],
    ...     method="shrinking",
    ... )
    >>> explainer(np.ones((1, 3))).values
    array([[1. , 2.5, 0. ]])
    """

    name = "low complexity"
    _kind = core.LowComplexity

    method: str = "descent"
    scale: str = "none"
    n_steps: int = 20
    n_rounds: int = 20
    tolerance: float = 1e-3
    n_points: int = 1000


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


def combine(explanations: Sequence[Any], aggregator: Aggregator) -> Any:
    """Combine explanations of the same rows, of shap or captum, into one.

    Parameters
    ----------
    explanations : sequence of Explanations, arrays or tensors
        At least one Explanation of shap, from which names, data and outputs come. Tensors of
        captum's attributions have the shape of the rows; those of several outputs, (R, K, …), are
        brought to shap's order, (R, …, K).
    aggregator : aggregator
        `shapley_adapters.aggregation.Centroid`, `Convex` or `LowComplexity`, with its options.

    Returns
    -------
    shap.Explanation
        Base values are the mean of those of the Explanations, with the aggregator's weights where
        it is a convex combination; 0 for rankings.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If there is no Explanation, or shapes differ.

    Examples
    --------
    >>> import numpy as np, shap, shap_ext
    >>> from shapley_adapters.aggregation import Centroid
    >>> first = shap.Explanation(np.array([[1.0, 2.0]]), np.array([0.5]), np.ones((1, 2)))
    >>> shap_ext.combine([first, np.array([[3.0, 2.0]])], Centroid()).values
    array([[2., 2.]])
    """
    if isinstance(explanations, shap.Explanation) or not isinstance(explanations, Sequence):
        raise InvalidArgumentTypeError(
            f"explanations must be a list; got {type(explanations).__name__}."
        )
    template = next((item for item in explanations if isinstance(item, shap.Explanation)), None)
    if template is None:
        raise InvalidArgumentError(
            "explanations must hold a shap.Explanation, for data and names; captum_ext.combine "
            "makes tensors of tensors."
        )
    shape = np.shape(template.values)
    has_outputs = with_outputs(template)
    arrays = [
        _in_order(f"explanations[{index}]", item, shape, has_outputs)
        for index, item in enumerate(explanations)
    ]
    aggregate = aggregator([folded(array, has_outputs) for array in arrays])
    base_values = [getattr(item, "base_values", None) for item in explanations]
    base_shape = aggregate.values.shape[:-1]
    bases = [None if base is None else _in_shape(base, base_shape) for base in base_values]
    return shap.Explanation(
        unfolded(aggregate.values, shape, has_outputs),
        base_values=aggregate.base_values(bases),
        data=template.data,
        display_data=template.display_data,
        feature_names=template.feature_names,
        output_names=template.output_names,
    )


def _in_order(
    name: str, attributions: Explanation | Values, shape: tuple[int, ...], has_outputs: bool
) -> Any:
    """Return values in shap's order of axes."""
    values = plain_array(name, attributions)
    if has_outputs and hasattr(attributions, "detach") and values.ndim == len(shape):
        values = np.moveaxis(values, 1, -1)
    if values.shape != shape:
        raise InvalidArgumentError(
            f"{name} has shape {values.shape}, but the first Explanation's values have {shape}; "
            "they must explain the same rows, features and outputs."
        )
    return values


def _in_shape(base: npt.ArrayLike, shape: tuple[int, ...]) -> Any:
    """Return base values of all rows; some explainers give one number, or keep an axis of it."""
    base = np.asarray(base)
    return base[..., 0] if base.shape == (*shape, 1) else np.broadcast_to(base, shape)

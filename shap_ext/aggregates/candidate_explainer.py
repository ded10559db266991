"""Explainers that combine the explanations of several others for the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from shapley_adapters.aggregation import SpentEvaluations
from shapley_adapters.aggregation.aggregators import with_options_of
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError

from ..argument_types import Explanation, Table
from ..results.explanations import folded, has_outputs, unfolded
from .aggregate_explainer import AggregateExplainer, Combination, Spread
from .base_explainers import BaseExplainer, ExplainerResult, check_explainer

DEFAULT_EXPLAINERS = ("oddgp", "leastsquares", "shear")


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

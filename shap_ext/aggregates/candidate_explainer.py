"""Explainers that combine what several others say of the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import BudgetError, InvalidArgumentError

from ..results.output_axes import folded, has_outputs, unfolded
from .aggregate_explainer import AggregateExplainer, Combined, Spread
from .base_explainers import Member, MemberResult, checked_members

DEFAULT_EXPLAINERS = ("oddgp", "leastsquares", "shear")


@write_constructor
class CandidateExplainer(AggregateExplainer):
    """Base of the aggregates of several explainers' answers for the same rows."""

    explainers: Sequence[Any] | None = None

    def _specs(self) -> list[Any]:
        given = DEFAULT_EXPLAINERS if self.explainers is None else self.explainers
        return checked_members("explainers", given)

    def _aggregator(self, rows: Any, arguments: Mapping[str, Any]) -> Any:
        """Return the aggregator of the core with the options of this object."""
        raise NotImplementedError

    def _combine(self, rows: Any, arguments: Mapping[str, Any], error_bounds: bool) -> Combined:
        members = self._members()
        results = explained_by_all(members, rows, arguments)
        aggregator = self._aggregator(rows, arguments)
        with_outputs = has_outputs(results[0].values, rows)
        made = aggregator([folded(one.values, with_outputs) for one in results])
        self.last_aggregate = made
        self.last_candidates = [one.values for one in results]
        template = next((one.explanation for one in results if one.explanation is not None), None)
        return Combined(
            unfolded(made.values, results[0].values.shape, with_outputs),
            made.base_values([one.base_values for one in results]),
            _bounded_spread(members, results, made.shared_weights) if error_bounds else None,
            template,
            _shown(results[0].values, rows, template),
            None if template is None else template.display_data,
        )


def explained_by_all(
    members: Sequence[Member], rows: Any, arguments: Mapping[str, Any]
) -> list[MemberResult]:
    """Return what all members say; a budget that is too small is told with its sharing."""
    results = []
    for member in members:
        try:
            results.append(member.explain(rows, arguments))
        except BudgetError as error:
            raise BudgetError(f"{error} {_sharing(error, members)}") from error
    _check_alike(members, results)
    return results


def _sharing(error: BudgetError, members: Sequence[Member]) -> str:
    """Say how the members share the budget, and what it must be where this is known."""
    n_shares = sum(one.takes("max_evals") for one in members)
    total = None if error.needed is None else n_shares * error.needed
    remedy = "" if total is None else f" Pass max_evals={total} or more to the aggregate."
    return f"It is this explainer's part of the budget, which {n_shares} share.{remedy}"


def _check_alike(members: Sequence[Member], results: Sequence[MemberResult]) -> None:
    """Refuse answers of different shapes."""
    if len({one.values.shape for one in results}) > 1:
        shapes = ", ".join(
            f"{member.name}: {one.values.shape}"
            for member, one in zip(members, results, strict=True)
        )
        raise InvalidArgumentError(
            f"the explainers must explain the same features and outputs; their values have the "
            f"shapes {shapes}."
        )


def _bounded_spread(
    members: Sequence[Member], results: Sequence[MemberResult], weights: Any
) -> Spread:
    if weights is None:
        raise InvalidArgumentError(
            "error_bounds=True: this aggregate is no fixed linear combination of its explainers, "
            "so that their standard errors say nothing about it. Pass error_bounds=False."
        )
    shape = results[0].values.shape
    errors, half_widths = np.zeros(shape), np.zeros(shape)
    for member, one, weight in zip(members, results, weights, strict=True):
        if one.errors is None or one.half_widths is None:
            raise InvalidArgumentError(
                f"error_bounds=True, but {member.name} gives no standard errors."
            )
        errors += weight * one.errors
        half_widths += weight * one.half_widths
    return Spread(errors, half_widths)


def _shown(values: FloatArray, rows: Any, template: Any) -> Any:
    """Return what the explanation of the same rows shows, where its features are these."""
    shape = values.shape[:-1] if has_outputs(values, rows) else values.shape
    of_features = template is not None and np.shape(template.data) == shape
    return template.data if of_features else np.asarray(rows)

"""Interactions of pairs from the values that a row has, without further evaluations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..array_types import AttributionArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ..errors import InvalidArgumentError
from ..estimators.exact import MAX_PLAYERS, FullDesign
from ..estimators.protocol import Estimator, Solution
from ..interactions.indices import pairs_of, weights_of_members
from ..interactions.result import PairInteractions, PairSolution
from .budgets import RowBudget, needs_enumeration
from .row_groups import PendingRows
from .settings import Settings
from .value_scales import pairs_near_one

_COALITIONS_AT_ONCE = 2**14


def enumerated_pairs(index: str, coalitions: CoalitionArray, values: ValueArray) -> PairSolution:
    """Return the interactions of all pairs, exact up to rounding.

    Parameters
    ----------
    index : str
        The name of the index.
    coalitions : array, (2^M, M)
        All coalitions.
    values : array, (R, 2^M, K)
        Their values.
    """
    n_rows, n_coalitions, n_outputs = values.shape
    n_players = coalitions.shape[1]
    if n_players < 2:
        return PairSolution.exact(np.zeros((n_rows, 0, n_outputs)), n_players)
    sums = np.zeros((n_rows, n_outputs, n_players, n_players))
    for start in range(0, n_coalitions, _COALITIONS_AT_ONCE):
        part = slice(start, start + _COALITIONS_AT_ONCE)
        sums += _sums(index, coalitions[part], values[:, part])
    first, second = pairs_of(n_players)
    return PairSolution.exact(sums[:, :, first, second].swapaxes(1, 2), n_players)


def _sums(index: str, coalitions: CoalitionArray, values: ValueArray) -> FloatArray:
    """Return the weighted sums of the values of some coalitions, (R, K, M, M).

    With z = 1 for members and 0 for others, the weight of v(S) is quadratic in z. With the weights
    a, b and c for none, one and both of the players in S, it is
    a + (b − a)(z_i + z_j) + (a − 2b + c) z_i z_j.
    """
    members = coalitions.astype(np.float64)
    weights = weights_of_members(index, coalitions.shape[1])
    absent, single, joint = weights[:, coalitions.sum(axis=1)]
    by_output = values.swapaxes(1, 2)  # (R, K, C)
    of_pairs = (members.T * (by_output * (absent - 2 * single + joint))[:, :, None]) @ members
    of_players = (by_output * (single - absent)) @ members
    constant = by_output @ absent
    sums: FloatArray = of_pairs + of_players[..., None] + of_players[..., None, :]
    sums += constant[..., None, None]
    return sums


ABLE = (
    "'oddgp' and 'best' (OddGP and Best in captum) estimate all indices of interaction, and "
    "'leastsquares' (LeastSquares) estimates 'shapley'"
)
"""The methods that estimate interactions, for messages."""


def check_interactions(
    estimator: Estimator[Any],
    settings: Settings,
    budgets: Iterable[RowBudget],
    shape: tuple[int, int],
) -> None:
    """Refuse interactions that the estimator cannot compute, before anything is evaluated.

    `shape` has the numbers of rows and players. Interactions that do not even fit into memory for
    one output are refused, too; the number of outputs is not known before an evaluation.

    Enumeration gives the interactions for every estimator, but for those on graphs: their values
    are others than those that the interactions belong to.
    """
    index = settings.interactions
    if index is None:
        return
    if estimator.needs_graph:
        raise InvalidArgumentError(
            f"interactions={index!r}: {settings.name} estimates values on a graph, which are not "
            f"the Shapley values that interactions belong to. {ABLE}."
        )
    PairInteractions.check_memory((*shape, 1))
    if not needs_enumeration(estimator, settings):
        return
    for budget in budgets:
        if budget.n_players > 1 and not budget.enumerates_now:
            raise InvalidArgumentError(
                f"interactions={index!r}: {settings.name} cannot estimate these interactions. "
                f"{ABLE}; every method of Shapley values has them exactly"
                f"{_where_exact(budget, settings)}."
            )


def _where_exact(budget: RowBudget, settings: Settings) -> str:
    """Return which budget enumerates a row, if any does."""
    if budget.n_players > MAX_PLAYERS:
        return f" for at most {MAX_PLAYERS} players"
    return f" with {settings.budget_name}={2**budget.n_players}"


def record_pairs(
    estimator: Estimator[Any],
    interactions: PairInteractions,
    first_row: int,
    pending: PendingRows,
    indices: IntArray | slice,
    solution: Solution,
) -> None:
    """Write the interactions of some of the rows, given by their indices, into the result.

    `interactions` are those of the rows from `first_row` on, and `solution` that of all rows of
    `pending`.
    """
    if not isinstance(indices, slice):
        if not len(indices):
            return
        pending = pending.subset_rows(indices)
    errors = solution.standard_errors[indices]
    pairs = _solved(estimator, pending, errors, interactions.index)
    interactions.record(pending.group.rows - first_row, pending.group.players, pairs)


def _solved(
    estimator: Estimator[Any], pending: PendingRows, errors: Any, index: str
) -> PairSolution:
    """Return the interactions of rows whose evaluation has ended."""
    design = pending.design
    n_rows, n_players, n_outputs = errors.shape
    if n_players < 2:
        return PairSolution.exact(np.zeros((n_rows, 0, n_outputs)), n_players)

    def solve(values: ValueArray, errors: AttributionArray) -> PairSolution:
        if isinstance(design, FullDesign):
            return enumerated_pairs(index, design.table.coalitions[0], values)
        return estimator.pair_interactions(design, values, errors, index)

    return pairs_near_one(solve, pending.values, errors)

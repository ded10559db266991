"""Solutions of rows: attributions at any scale of the values, their traces, and interactions.

Estimators square values for variances, and square these again for degrees of freedom. So values
far from 1 are first multiplied by powers of two, which rounds nothing, and their solutions are
multiplied back. All other values are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..array_types import AttributionArray, BoolArray, FloatArray, IntArray, ValueArray
from ..errors import InvalidArgumentError
from ..estimators.exact import MAX_PLAYERS, FullDesign, solve_full
from ..estimators.protocol import Design, Estimator, Solution
from ..estimators.value_errors import ValueErrors
from ..interactions.enumeration import enumerated, enumerated_variances
from ..interactions.result import Interactions, SetSolution
from .designs import PendingRows
from .settings import RowBudget, Settings, needs_enumeration

_MOST_EXPONENT = 200
"""Values up to 2 to this power, and down to its reciprocal, have fourth powers that are numbers. So
have differences between them that are rounding."""

_LEAST_EXPONENT = -2000
"""Of values that are all 0: less than that of any number."""

_FEWEST = 4
"""Evaluations below which no estimate is tried."""

ABLE = (
    "'oddgp' and 'best' (OddGP and Best in captum) estimate all interactions and semivalues. "
    "'leastsquares' (LeastSquares) estimates Shapley interactions of pairs. 'randomorder' and "
    "'semivalue' (RandomOrder and Semivalue) estimate semivalues"
)
"""The methods that estimate interactions, for messages."""

_MOST_LABELS, _ROUNDING = 3, 1e-9
"""Values of a game of labels, and by which share of their range equal ones may differ. Two players
that only add up have four values, and pairs of players almost always more."""


def scale_exponents(values: ValueArray) -> IntArray:
    """Return exponents, (R, 1, K): values, (R, n, K), are 2 to these powers times values near 1.

    They are 0 for ordinary values. Outputs of a row have one scale, unless they are so different
    that one does not serve them: a share over all outputs then is the same as before.
    """
    largest = np.maximum(values.max(axis=1), -values.min(axis=1))
    own = np.where(largest > 0, np.frexp(largest)[1], _LEAST_EXPONENT)
    of_row = own.max(axis=1, keepdims=True)
    exponents = np.where(of_row - own <= _MOST_EXPONENT, of_row, own)
    is_extreme = (np.abs(exponents) > _MOST_EXPONENT) & (largest > 0)
    return np.where(is_extreme, exponents, 0)[:, None]


def solve_near_one(
    estimator: Estimator[Any],
    design: Any,
    values: ValueArray,
    errors: ValueErrors | None = None,
) -> Solution:
    """Return the solution of an estimator for values, (R, n, K), whatever their scale."""
    if isinstance(design, FullDesign):  # which squares nothing
        return solve_full(design, values, errors)
    exponents = scale_exponents(values)
    is_scaled = exponents.any()
    if is_scaled:
        values = np.ldexp(values, -exponents)
        design = _at_scale(design, exponents)
    if errors is None:
        solution = estimator.solve(design, values)
    else:
        errors = errors.at_scale(exponents)
        solution = estimator.solve_with_errors(design, values, errors)
    largest = np.abs(solution.values).max(axis=1, keepdims=True)
    agree = (solution.standard_errors <= _ROUNDING * largest).all(axis=1)
    if agree.any():
        solution = _with_unseen_jumps(solution, agree, design, values)
    if not is_scaled:
        return solution
    unions = solution.union_errors
    return replace(
        solution,
        values=np.ldexp(solution.values, exponents),
        standard_errors=np.ldexp(solution.standard_errors, exponents),
        union_errors=None if unions is None else np.ldexp(unions, exponents),
    )


def _with_unseen_jumps(
    solution: Solution, agree: BoolArray, design: Design, values: ValueArray
) -> Solution:
    """Return the solution, with errors where all draws of labels `agree`, (R, K), by chance.

    Draws of games of single players and pairs agree always, and have no error. In a game of labels,
    where n draws agree for all players, the next one differs with probability 1 / (n + 2), by the
    rule of succession. An order and its reverse then move half of a jump from a player that has it
    to any player. Chance is not noticed where other players add up to many different values, as
    with three players that interact beside a linear model, and where all values were equal.
    """
    errors, sizes = solution.standard_errors, np.abs(solution.values)
    n_draws = np.broadcast_to(solution.degrees_of_freedom, errors.shape)
    rows, outputs = np.nonzero(agree & np.isfinite(n_draws).all(axis=1))
    seen, counts = values[rows, :, outputs], np.broadcast_to(design.table.counts, len(values))
    is_seen = np.arange(seen.shape[1]) < counts[rows, None]  # rows are padded with zeros
    seen = np.sort(np.where(is_seen, seen, seen[:, :1]), axis=1)
    jump = seen[:, -1:] - seen[:, :1]
    are_labels = (np.diff(seen) > _ROUNDING * jump).sum(axis=1, keepdims=True) < _MOST_LABELS
    draws, sizes = n_draws[rows, :, outputs], sizes[rows, :, outputs]
    shares = sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1e-300) + 1 / sizes.shape[1]
    added = np.zeros_like(errors)
    added[rows, :, outputs] = are_labels * shares * (jump / 2) ** 2 / ((draws + 2) * draws)
    return solution.with_variances(added)


def _at_scale(design: Any, exponents: IntArray) -> Any:
    """Return a design with the passes of values times 2 to minus these powers."""
    if design.passes is None:
        return design
    return replace(design, passes=design.passes.at_scale(exponents))


@dataclass(frozen=True)
class Trace:
    """The estimates that the first evaluations of a run give, without further evaluations.

    The evaluations of a run are in the order of their design, so that the first of them are a
    smaller run. Each point has about √2 times the evaluations of the point before; the last is the
    estimate of the run. NaN stands for points with too few evaluations for the estimator.

    Attributes
    ----------
    evaluations : array, (R, T)
        The evaluations of each row at each point; 0 where there are too few.
    values, standard_errors, degrees_of_freedom : arrays, (R, M, T, K)
        The attributions, their standard errors, and the degrees of freedom of these.
    """

    evaluations: IntArray
    values: FloatArray
    standard_errors: FloatArray
    degrees_of_freedom: FloatArray

    @classmethod
    def blank(cls, limit: int, shape: tuple[int, int, int]) -> Trace:
        """Return a trace without points for attributions of a shape, (R, M, K)."""
        n_rows, n_players, n_outputs = shape
        n_points = 1 + int(2 * np.log2(max(limit, _FEWEST) / _FEWEST))
        evaluations = np.zeros((n_rows, n_points), dtype=np.intp)
        unknown = np.full((n_rows, n_players, n_points, n_outputs), np.nan)
        return cls(evaluations, unknown, unknown.copy(), unknown.copy())

    def set_rows(self, start: int, stop: int, trace: Trace) -> None:
        """Store the trace of the rows from `start` to `stop`."""
        for one in fields(self):
            getattr(self, one.name)[start:stop] = getattr(trace, one.name)

    def record(
        self,
        first_row: int,
        estimator: Estimator[Any],
        pending: PendingRows,
        last: Solution,
        minimum: int,
    ) -> None:
        """Store the points of rows whose evaluation has ended.

        Parameters
        ----------
        first_row : int
            The row of the game that has the first entries here.
        estimator : Estimator
            The estimator.
        pending : PendingRows
            The rows, with their values.
        last : Solution
            Their solution.
        minimum : int
            The fewest evaluations that an estimate of these rows needs.
        """
        rows, design = pending.group.rows - first_row, pending.design
        n_beside = pending.group.n_beside_values
        counts = np.minimum(design.table.counts, pending.round_end) + n_beside
        n_points = self.evaluations.shape[1]
        end = int(counts.max()) - n_beside
        self._store(rows, n_points - 1, pending, last, counts)
        # A player without influence has the attribution 0 at each point.
        if isinstance(design, FullDesign) or design.is_whole:
            return
        fewest = max(minimum, design.fewest_coalitions)
        for point in range(n_points - 1):
            n_coalitions = int(np.ceil(end * 2 ** (-(n_points - 1 - point) / 2)))
            if n_coalitions < fewest:
                continue
            smaller = design.within(n_coalitions)
            errors = None if pending.errors is None else pending.errors.first(n_coalitions)
            values = pending.values[:, :n_coalitions]
            solution = solve_near_one(estimator, smaller, values, errors)
            self._store(rows, point, pending, solution, np.minimum(counts, n_coalitions + n_beside))

    def _store(
        self,
        rows: IntArray,
        point: int,
        pending: PendingRows,
        solution: Solution,
        counts: IntArray,
    ) -> None:
        """Store the solution of some rows at a point; a solution on a graph has all players."""
        errors = solution.standard_errors
        arrays = (
            (self.values, solution.values, 0.0),
            (self.standard_errors, errors, 0.0),
            (self.degrees_of_freedom, solution.degrees_of_freedom, np.inf),
        )
        n_players = self.values.shape[1]
        everyone = np.tile(np.arange(n_players), (len(rows), 1))
        players = pending.group.players if pending.group.graph is None else everyone
        for array, numbers, without in arrays:
            array[rows, :, point] = without
            array[rows[:, None], players, point] = np.broadcast_to(numbers, errors.shape)
        self.evaluations[rows, point] = counts


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
    request = settings.interactions
    if request is None:
        return
    if estimator.needs_graph:
        raise InvalidArgumentError(
            f"{request}: {settings.name} estimates values on a graph, which are not the Shapley "
            f"values that these belong to. {ABLE}."
        )
    request.check_memory((*shape, 1))
    if not needs_enumeration(estimator, settings):
        return
    for budget in budgets:
        if budget.n_players > 1 and not budget.enumerates_now:
            where_exact = f" with {settings.budget_name}={2**budget.n_players}"
            if budget.n_players > MAX_PLAYERS:
                where_exact = f" for at most {MAX_PLAYERS} players"
            raise InvalidArgumentError(
                f"{settings.name} cannot estimate {request}. "
                f"{ABLE}; every method of Shapley values has them exactly{where_exact}."
            )


def record_interactions(
    estimator: Estimator[Any],
    interactions: Interactions,
    first_row: int,
    pending: PendingRows,
    errors: AttributionArray,
) -> None:
    """Write the interactions of rows into those of a result, whose first row is `first_row`.

    `errors` are the standard errors of the attributions.
    """
    design, request = pending.design, interactions.request
    n_rows, n_players, n_outputs = errors.shape
    index = request.index(n_players)
    exponents = scale_exponents(pending.values)
    values, value_errors = pending.values, pending.errors
    is_scaled = bool(index.parts) and exponents.any()
    if is_scaled:
        values, errors = np.ldexp(values, -exponents), np.ldexp(errors, -exponents)
        design = _at_scale(design, exponents)
        value_errors = value_errors and value_errors.at_scale(exponents)
    if not index.parts:
        found = SetSolution.exact(np.zeros((n_rows, 0, n_outputs)), n_players)
    elif not isinstance(design, FullDesign):
        further = () if value_errors is None else (value_errors,)
        found = estimator.interactions(design, values, errors, request, *further)
    else:
        coalitions = design.table.coalitions[0]
        found = SetSolution.exact(enumerated(index, coalitions, values), n_players)
        if value_errors is not None:
            parts = value_errors.even, value_errors.odd
            variances = enumerated_variances(index, coalitions, *parts)
            found = SetSolution(found.values, np.sqrt(variances), errors)
    if is_scaled:
        arrays = found.values, found.standard_errors, found.main_errors
        found = SetSolution(*(np.ldexp(array, exponents) for array in arrays))
    interactions.record(pending.group.rows - first_row, pending.group.players, found)

"""Units (coalitions that are useful only together), strata, and the residual of efficiency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..array_types import AttributionArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ..coalitions.tables import pack, select_units, units_within
from ..errors_of_means import pooled_variances
from .protocol import Design, DesignRequest, Solution
from .value_errors import ValueErrors

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class UnitDesign(Design):
    """Units of S coalitions each, such as a coalition and its complement.

    Estimators that need more than the coalitions inherit from it and add arrays. `unit_fields`
    names the arrays with an entry per unit, of which a smaller design has the first entries.

    Attributes
    ----------
    positions : array, (U, S)
        Indices of the coalitions of each unit into the table.
    """

    positions: IntArray

    unit_fields: ClassVar[tuple[str, ...]] = ("positions",)

    @property
    def sharing_units(self) -> IntArray:
        """The coalitions of each unit."""
        return self.positions

    def within(self, n_coalitions: int) -> Self:
        """Return the design of the units whose coalitions are among the first of the table."""
        n_units = int(units_within(self.positions[None], n_coalitions)[0])
        first: dict[str, Any] = {name: getattr(self, name)[:n_units] for name in self.unit_fields}
        return replace(self, table=self.table.first(n_coalitions), **first)


def select_within_budget(request: DesignRequest, units: CoalitionArray) -> UnitDesign:
    """Return the design of the first units that are within the budget.

    Each distinct coalition is evaluated once. Those of `request.known` and of earlier units cost
    nothing. The budget therefore usually covers more units than its quotient by the unit size:
    offer about twice as many.

    Parameters
    ----------
    request : DesignRequest
        The request that `Estimator.design` received.
    units : array of bool, (U, S, M)
        The units in the order in which they are to be evaluated: S coalitions of M players each.
    """
    selection = select_units(request.known, pack(units)[None], request.budget)
    return UnitDesign(selection.table, selection.positions[0, : selection.n_units[0]])


def share_residual(
    attributions: AttributionArray,
    variances: FloatArray,
    values: ValueArray,
    shares: FloatArray,
    freedom: FloatArray | float = np.inf,
) -> Solution:
    """Add the efficiency residual v(N) − v(∅) − Σφ to the players, in proportion to `shares`.

    The expected residual of an unbiased estimate is 0. The result is therefore unbiased if the
    shares do not depend on the draws.

    Parameters
    ----------
    attributions, variances : array, (R, M, K)
        The estimates and their variances, independent of each other.
    values : array, (R, C, K)
        Coalition values; the first is that of the empty coalition, the second of all players.
    shares : array, (R, M) or (1, M)
        The share of each player; all 0 for no change.
    freedom : array or float
        Degrees of freedom of the variances. They are returned unchanged, because by far the
        largest part of a player's variance is its variance before the residual is added.
    """
    total = values[:, 1] - values[:, 0]
    residuals = total[:, None] - attributions.sum(axis=1, keepdims=True)  # (R, 1, K)
    shares = shares[:, :, None]
    # φ_i includes its share of the error of every player, also of player i.
    variances = (1 - 2 * shares) * variances + shares**2 * variances.sum(axis=1, keepdims=True)
    errors = np.sqrt(np.maximum(variances, 0.0))
    return Solution(attributions + shares * residuals, errors, freedom)


def solution_by_strata(
    certain: AttributionArray, strata: Sequence[FloatArray], values: ValueArray, efficient: bool
) -> Solution:
    """Return the certain part plus the mean of the draws of each stratum.

    A draw adds a number to every player, and these numbers depend on each other. Therefore the
    efficiency residual is shared within each draw, before variances are estimated. The standard
    errors then need no assumption on the correlation of the players' errors.

    Parameters
    ----------
    certain : array, (R, M, K)
        The part of the attributions that does not depend on the draws.
    strata : sequence of arrays, (R, n, M, K)
        The n independent draws of each stratum, which are added to the players. n is at least 1.
    values : array, (R, C, K)
        Coalition values; the first is that of the empty coalition, the second of all players.
    efficient : bool
        Whether all players get an equal share of v(N) − v(∅) − Σφ.
    """
    if efficient:
        share = (values[:, 1] - values[:, 0])[:, None] / certain.shape[1]
        certain = certain - certain.mean(axis=1, keepdims=True) + share
        strata = [draws - draws.mean(axis=2, keepdims=True) for draws in strata]
    attributions = sum((draws.mean(axis=1) for draws in strata), start=certain)
    variances = np.array([_variance_of_mean(draws) for draws in strata])
    free = np.array([draws.shape[1] - 1 for draws in strata])
    pooled, freedom = pooled_variances(variances.sum(axis=0), _freedom(variances, free))
    return Solution(attributions, np.sqrt(pooled), freedom)


_MOST_PROBED, _PROBES = 2**13, 2**8
"""Values, at most, whose errors are followed one by one, and how many at once. Far more coalitions
than this hardly share any, so that their spread shows their errors."""


def with_errors_of_answers(
    solution: Solution, solve: Callable[[ValueArray], Solution], errors: ValueErrors
) -> Solution:
    """Return a solution with what independent errors of values leave in it.

    The solution is linear in the values, and its variances are quadratic in them. So unit values
    give the share of each error that is left, and the share that the variances hold already. These
    differ where units share coalitions, or differences from common values.

    Parameters
    ----------
    solution : Solution
        The solution for the values.
    solve : callable
        Values, (n, C, 1), to their solutions.
    errors : ValueErrors
        The errors of the values.
    """
    n_coalitions = errors.odd.shape[1]
    left, in_spread = np.zeros((2, *solution.values.shape))
    for start in range(0, n_coalitions, _PROBES):
        part = slice(start, min(start + _PROBES, n_coalitions))
        units = np.eye(part.stop - start, n_coalitions, k=start)[..., None]
        found = solve(units)
        variances = errors.variances[:, part]
        left += (found.values[..., 0] ** 2).T @ variances
        in_spread += (found.standard_errors[..., 0] ** 2).T @ variances
    others = np.maximum(solution.standard_errors**2 - in_spread, 0.0)
    total = left + others
    squares = left**2 / errors.freedom + others**2 / solution.degrees_of_freedom
    freedom = np.divide(total**2, squares, out=np.full_like(total, np.inf), where=squares > 0)
    return replace(solution, standard_errors=np.sqrt(total), degrees_of_freedom=freedom)


def _variance_of_mean(draws: FloatArray) -> FloatArray:
    """Return the variance of the mean over axis 1; NaN if there is only one draw."""
    n = draws.shape[1]
    if n < 2:
        return np.full_like(draws[:, 0], np.nan)
    variance: FloatArray = draws.var(axis=1, ddof=1) / n
    return variance


def _freedom(variances: FloatArray, free: FloatArray) -> FloatArray:
    """Return the degrees of freedom of sums of variances over axis 0 (Welch and Satterthwaite).

    The square of an estimated variance is too large by the factor 1 + 2 / f on average, which the
    number 2 takes back: many strata of two draws each have about as many degrees of freedom.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = variances**2 / (free[:, None, None, None] + 2)
        freedom: FloatArray = variances.sum(axis=0) ** 2 / squares.sum(axis=0) - 2
    # All draws of a player may be equal.
    return np.where(np.isnan(freedom), float(free.sum()), freedom)

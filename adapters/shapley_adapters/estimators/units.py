"""Units (coalitions that are useful only together), means of draws, and efficiency."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse

from ..array_types import AttributionArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ..coalitions.tables import pack, select_units, units_within
from .protocol import Design, DesignRequest, Solution
from .value_errors import ValueErrors, pooled_mean_and_error


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


def shared_variances(
    positions: IntArray,
    of_players: FloatArray,
    shares: FloatArray,
    errors: ValueErrors,
    coalitions: CoalitionArray,
) -> FloatArray:
    """Return the variances that units share, which their spread does not show, (R, M, K).

    Parameters
    ----------
    positions : array, (U, S)
        The coalitions of each unit, without and with a player in turn. Its contribution is the mean
        of the differences of their values.
    of_players : array, (M, U)
        The weights of the contributions in the attributions.
    shares : array, (M,)
        The share of each player in the efficiency residual.
    errors : ValueErrors
        The errors of the values.
    coalitions : array, (C, M)
        The coalitions of the values, those of no and of all players first.
    """
    n_units, size = positions.shape
    signs, starts = np.tile([-2 / size, 2 / size], n_units * size // 2), size * np.arange(n_units)
    units = scipy.sparse.csr_matrix(
        (signs, positions.ravel(), np.append(starts, positions.size)),
        shape=(n_units, len(coalitions)),
    )
    units.sum_duplicates()
    residuals = np.zeros((len(shares), len(coalitions)))
    residuals[:, :2] = shares[:, None] * [-1.0, 1.0]
    sums = scipy.sparse.csr_matrix(of_players - shares[:, None] * of_players.sum(axis=0))
    return errors.beside_spread(units, sums, scipy.sparse.csr_matrix(residuals), coalitions)


def average_draws(draws: FloatArray, values: ValueArray, efficient: bool) -> Solution:
    """Return the mean of independent draws, with standard errors of pooled variances.

    A draw gives a number to every player, and these numbers may depend on each other. Therefore the
    efficiency residual is shared within each draw, before variances are estimated. The standard
    errors then need no assumption on the correlation of the players' errors.

    Parameters
    ----------
    draws : array, (R, n, M, K)
        The n draws, at least 1. The standard errors of a single draw are NaN.
    values : array, (R, C, K)
        Coalition values; the first is that of the empty coalition, the second of all players.
    efficient : bool
        Whether all players get an equal share of v(N) − v(∅) − Σφ.
    """
    if efficient:
        share = (values[:, 1] - values[:, 0])[:, None, None] / draws.shape[2]  # (R, 1, 1, K)
        draws = draws - draws.mean(axis=2, keepdims=True) + share
    return Solution(*pooled_mean_and_error(draws))

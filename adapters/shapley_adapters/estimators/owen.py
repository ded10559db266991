"""Marginal contributions to coalitions that each player joins with the same probability."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ..arguments import checked_count, checked_flag
from ..array_types import CoalitionArray, FloatArray, IntArray, ValueArray
from .protocol import DesignRequest, Estimator, Solution
from .units import (
    UnitDesign,
    select_within_budget,
    solution_by_strata,
    with_errors_of_answers,
)
from .value_errors import ValueErrors


@dataclass(frozen=True)
class OwenDesign(UnitDesign):
    """Draws of a coalition, each with the coalitions that differ from it in one player.

    A unit contains the drawn coalition, then the same with player 0, …, M − 1 added or removed,
    then the complements of all of these if draws are antithetic.

    Attributes
    ----------
    levels : array, (U,)
        The level of the inclusion probability of each draw.
    n_levels : int
        Number of levels.
    """

    levels: IntArray
    n_levels: int

    unit_fields: ClassVar[tuple[str, ...]] = ("positions", "levels")

    @property
    def fewest_coalitions(self) -> int:
        """Those of two draws of each level, which standard errors need."""
        n_draws = 2 * self.n_levels  # in rounds of one draw for each level
        return int(self.positions[:n_draws].max()) + 1 if len(self.positions) >= n_draws else 0


@dataclass(frozen=True)
class Owen(Estimator[OwenDesign]):
    """Owen sampling of the multilinear extension, Okhrati and Lipani, 2021.

    The Shapley value of player i is the integral over q from 0 to 1 of its expected marginal
    contribution to a coalition that each other player joins with probability q (Owen, 1972).
    One coalition S serves all players: the contribution of player i is
    v(S∪i) − v(S∖i), where one of the two values is v(S). The other players join S independently of
    i. The contribution therefore has the same distribution as for a coalition that is drawn for
    player i alone, and takes M + 1 evaluations instead of 2 M.

    The paper computes the integral on a fixed grid of q. This has a bias that does not vanish with
    the number of coalitions per q. Here the interval of q is divided into levels of equal length,
    and each draw has a q that is drawn uniformly from its level. The mean over the levels is
    unbiased, because the integral over a level is the expectation of its draws.

    Parameters
    ----------
    levels : int, optional
        Number of levels. By default half the number of draws within the budget, so that each level
        has the two draws that standard errors need.
    antithetic : bool
        Draw each coalition together with its complement, and q from 0 to 1/2 (halved Owen
        sampling). Quadratic games are then exact.
    efficient : bool
        Share the efficiency residual equally. The paper does not.
    """

    levels: int | None = None
    has_units: ClassVar[bool] = True

    antithetic: bool = True
    efficient: bool = True

    def __post_init__(self) -> None:
        if self.levels is not None:
            checked_count("levels", self.levels)
        checked_flag("antithetic", self.antithetic)
        checked_flag("efficient", self.efficient)

    @property
    def is_unbiased(self) -> bool:
        """Yes: see the class."""
        return True

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one draw per level, or of two, and the empty and full coalition."""
        return (2 if with_errors else 1) * (self.levels or 1) * self._unit_size(n_players) + 2

    def memory(self, n_players: int, budget: int) -> int:
        """Return the memory of the coalitions, of which more are drawn than evaluated."""
        return 11 * budget * n_players

    def design(self, request: DesignRequest) -> OwenDesign:
        """Draw coalitions until the budget is spent, in rounds of one draw per level."""
        unit_size = self._unit_size(request.n_players)
        n_levels = self.levels or max(1, (request.planned - 2) // unit_size // 2)
        # Duplicates are free, so offer more rounds than the budget covers without duplicates.
        n_rounds = 2 * (request.budget // (unit_size * n_levels)) + 2
        identity = np.tile(np.arange(n_levels), (n_rounds, 1))
        levels = request.rng.permuted(identity, axis=1).ravel()
        design = select_within_budget(request, self._units(levels, n_levels, request))
        n_units = len(design.positions)
        return OwenDesign(design.table, design.positions, levels[:n_units], n_levels)

    def solve(self, design: OwenDesign, values: ValueArray) -> Solution:
        """Average the marginal contributions of each level; errors from their spread."""
        coalitions = design.table.coalitions[0]
        # The drawn coalition first, then with each player changed; twice if antithetic.
        positions = design.positions.reshape(len(design.positions), -1, coalitions.shape[1] + 1)
        coalition_values: FloatArray = np.take(values, positions, axis=1)  # (R, U, D, M + 1, K)
        changes = coalition_values[:, :, :, 1:] - coalition_values[:, :, :, :1]
        is_member = coalitions[positions[..., 0]][..., None]  # (U, D, M, 1)
        contributions = np.where(is_member, -changes, changes).mean(axis=2) / design.n_levels
        strata = [contributions[:, design.levels == level] for level in range(design.n_levels)]
        certain = np.zeros_like(contributions[:, 0])
        return solution_by_strata(certain, strata, values, self.efficient)

    def solve_with_errors(
        self, design: OwenDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Average the marginal contributions; units may share coalitions of a random model."""
        if np.isinf(errors.freedom):
            return super().solve_with_errors(design, values, errors)
        solution = self.solve(design, values)
        return with_errors_of_answers(solution, partial(self.solve, design), errors)

    def _unit_size(self, n_players: int) -> int:
        return (n_players + 1) * (2 if self.antithetic else 1)

    def _units(self, levels: IntArray, n_levels: int, request: DesignRequest) -> CoalitionArray:
        """Draw a coalition per level, with all that differ from it in a player, (U, S, M)."""
        n_players, rng = request.n_players, request.rng
        q = (levels + rng.random(len(levels))) / n_levels * (0.5 if self.antithetic else 1.0)
        coalitions = rng.random((len(levels), n_players)) < q[:, None]
        empty_and_singles = np.eye(n_players + 1, n_players, k=-1, dtype=bool)
        units: CoalitionArray = coalitions[:, None] ^ empty_and_singles
        return np.concatenate([units, ~units], axis=1) if self.antithetic else units

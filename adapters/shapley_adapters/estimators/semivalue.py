"""Marginal contributions of each player to coalitions drawn for it alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arguments import checked_flag
from ..array_types import CoalitionArray, FloatArray, IntArray, ValueArray
from ..coalitions.sizes import random_subsets
from ..coalitions.tables import pack, select_units, units_within
from .efficiency import share_residual
from .protocol import Design, DesignRequest, Estimator, Solution


@dataclass(frozen=True)
class SemivalueDesign(Design):
    """Marginal contributions, in rounds of one for each player.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions, shared by all rows.
    players : array, (U,)
        Whose contribution each unit is.
    positions : array, (U, S)
        Where the coalitions of a unit stand in the table: without and with the player; twice
        where a coalition comes with the complement among the other players.
    """

    players: IntArray
    positions: IntArray

    def within(self, n_coalitions: int) -> SemivalueDesign:
        """Return the units that the first coalitions of the table serve."""
        n = int(units_within(self.positions[None], n_coalitions)[0])
        return SemivalueDesign(self.table.first(n_coalitions), self.players[:n], self.positions[:n])


@dataclass(frozen=True)
class Semivalue(Estimator[SemivalueDesign]):
    """Semivalue by importance sampling, Zhang et al., 2023, Eq. 2 (ApproSemivalue).

    Each player has draws of its own: a size uniform in 0, …, M − 1, then a coalition of that size
    among the others. Unbiased. Random orders draw from the same distribution, but one order
    serves all players, so that a draw costs half as much.

    Parameters
    ----------
    antithetic : bool
        Draw each coalition together with its complement among the other players.
    efficient : bool
        Share the efficiency residual equally.
    """

    antithetic: bool = True
    efficient: bool = True

    def __post_init__(self) -> None:
        checked_flag("antithetic", self.antithetic)
        checked_flag("efficient", self.efficient)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of a unit for each player and the end points; of two for errors."""
        return (2 if with_errors else 1) * (4 if self.antithetic else 2) * n_players + 2

    def memory(self, n_players: int, budget: int) -> int:
        """Return what the coalitions take, of which more are drawn than the budget pays for."""
        return 11 * budget * n_players

    def design(self, request: DesignRequest) -> SemivalueDesign:
        """Draw rounds until the budget is spent; the players of a round stand in random order."""
        n_players, unit_size = request.n_players, 4 if self.antithetic else 2
        # Duplicates are free, so offer more rounds than the budget pays for at full price.
        n_rounds = 2 * (request.budget // (unit_size * n_players)) + 2
        identity = np.tile(np.arange(n_players), (n_rounds, 1))
        players = request.rng.permuted(identity, axis=1).ravel()
        units = self._units(players, n_players, request.rng)
        selection = select_units(request.known, pack(units)[None], request.budget)
        n = selection.n_units[0]
        return SemivalueDesign(selection.table, players[:n], selection.positions[0, :n])

    def solve(self, design: SemivalueDesign, values: ValueArray) -> Solution:
        """Average the contributions of each player; errors from their spread."""
        found = values[:, design.positions]  # (R, U, S, K)
        contributions = (found[:, :, 1::2] - found[:, :, ::2]).mean(axis=2)
        n_players = design.table.coalitions.shape[2]
        counts = np.bincount(design.players, minlength=n_players)[:, None]  # (M, 1)
        owns = (design.players == np.arange(n_players)[:, None]).astype(np.float64)  # (M, U)
        means = owns @ contributions / counts
        spread = owns @ (contributions - means[:, design.players]) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = spread / (counts - 1) / counts
        shares: FloatArray = np.full((1, n_players), 1.0 / n_players if self.efficient else 0.0)
        return share_residual(means, variances, values, shares, (counts - 1).astype(np.float64))

    def _units(self, players: IntArray, n_players: int, rng: np.random.Generator) -> CoalitionArray:
        """Draw a coalition of the others for each of `players`, (U, S, M)."""
        sizes = rng.integers(n_players, size=len(players))
        among_others = random_subsets(sizes, n_players - 1, rng)
        own = players[:, None] == np.arange(n_players)
        without = np.zeros((len(players), n_players), dtype=bool)
        without[~own] = among_others.ravel()
        units = [without, without | own]
        if self.antithetic:
            units += [~(without | own), ~without]
        return np.stack(units, axis=1)

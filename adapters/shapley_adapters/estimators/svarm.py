"""Means of the coalition values per size, of coalitions with and without each player."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ..arguments import checked_flag
from ..array_types import (
    AttributionArray,
    CoalitionArray,
    FloatArray,
    IntArray,
    ValueArray,
    WordArray,
)
from ..coalitions.tables import pack, select_uneven_units, units_within
from .protocol import Design, DesignRequest, Estimator, Solution
from .units import solution_by_strata, with_errors_of_answers
from .value_errors import ValueErrors


@dataclass(frozen=True)
class SVARMDesign(Design):
    """Partitions of the players into coalitions of one size, several for each size.

    Attributes
    ----------
    partitions : sequence of arrays, (n, D, C)
        Indices into the table, one array per size: n partitions, each of C coalitions whose union
        is all players. D is 2 if their complements follow, else 1. The first array contains
        the single partition into coalitions of one player.
    """

    partitions: Sequence[IntArray]

    def within(self, n_coalitions: int) -> SVARMDesign:
        """Return the partitions whose coalitions are among the first of the table."""
        counts = [
            int(units_within(indices.reshape(1, len(indices), -1), n_coalitions)[0])
            for indices in self.partitions
        ]
        partitions = [indices[:n] for indices, n in zip(self.partitions, counts, strict=True)]
        return SVARMDesign(self.table.first(n_coalitions), partitions)


@dataclass(frozen=True)
class SVARM(Estimator[SVARMDesign]):
    """Stratified SVARM, Kolpaczki et al., 2024, Algorithm 2.

    The Shapley value of player i is the mean over the sizes s = 0, …, M − 1 of the mean value of
    the coalitions of s + 1 players that contain i, less the mean value of the coalitions of s
    players that do not. Each of these 2 M means is a stratum of player i. A coalition belongs to
    one stratum of every player, so that one evaluation serves all players. The sizes 0, 1, M − 1
    and M are evaluated completely, and their strata are exact.

    All other sizes are drawn as in the paper's warm-up: a random order of the players is divided
    into coalitions of the size, so that each player has coalitions in each of its strata. Such a
    partition is one draw. The paper then draws single coalitions. With partitions, all strata have
    the same number of draws, and the draws are independent, so that there are standard errors. The
    estimate is unbiased: in each stratum, the weights of the drawn coalitions sum to 1, and all
    coalitions have the same expected weight.

    Parameters
    ----------
    paired : bool
        Draw each coalition together with its complement.
    centred : bool
        Subtract from each value the additive game in which the value of player i is the mean of
        v({i}) − v(∅) and v(N) − v(N∖i). Its Shapley values are known, and the evaluations are part
        of every design. Additive games are then exact, and with `paired` also quadratic games. The
        paper does not subtract it.
    efficient : bool
        Share the efficiency residual equally. The paper does not.
    """

    has_orders_for_few_rows: ClassVar[bool] = True

    paired: bool = True
    centred: bool = True
    efficient: bool = True

    def __post_init__(self) -> None:
        checked_flag("paired", self.paired)
        checked_flag("centred", self.centred)
        checked_flag("efficient", self.efficient)

    @property
    def is_drawn_by_labels(self) -> bool:
        """With random labels, a fixed partition is a random partition."""
        return True

    @property
    def is_unbiased(self) -> bool:
        """Yes: see the class."""
        return True

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of the exact sizes and of one draw of each stratum, or of two."""
        cost = sum(stratum.cost(n_players) for stratum in self._strata(n_players))
        return 2 * n_players + 2 + (2 if with_errors else 1) * cost

    def memory(self, n_players: int, budget: int) -> int:
        """Return the memory of the coalitions, of which more are drawn than evaluated."""
        return 14 * budget * n_players

    def design(self, request: DesignRequest) -> SVARMDesign:
        """Draw a partition of each stratum in turn, in random order, until the budget is spent."""
        n_players, rng = request.n_players, request.rng
        strata = self._strata(n_players)
        # Duplicates are free, so offer more draws than the budget covers without duplicates.
        cost = sum(stratum.cost(n_players) for stratum in strata)
        n_rounds = 2 * (request.budget // max(1, cost)) + 2
        identity = np.arange(n_players)
        players = np.tile(identity, (n_rounds, 1))
        exact = pack(_EXACT_SIZES.partitions(identity[None]))
        words = [pack(stratum.partitions(rng.permuted(players, axis=1))) for stratum in strata]
        rounds = rng.permuted(np.tile(np.arange(len(strata)), (n_rounds, 1)), axis=1)
        units = [exact[0], *(words[i][n] for n, order in enumerate(rounds) for i in order)]
        of_unit = np.array([-1, *rounds.ravel()])
        return _select_within_budget(request, units, of_unit, len(strata))

    def solve(self, design: SVARMDesign, values: ValueArray) -> Solution:
        """Add up the means of the strata; errors from the spread between partitions."""
        coalitions = design.table.coalitions[0]
        slopes, remainder = self._centred(design, values)
        strata = [
            _differences(coalitions[indices], np.take(remainder, indices, axis=1))
            for indices in design.partitions
        ]
        ends = (remainder[:, 1] - remainder[:, 0])[:, None] / coalitions.shape[1]
        certain = slopes + ends + strata[0][:, 0]
        return solution_by_strata(certain, strata[1:], values, self.efficient)

    def solve_with_errors(
        self, design: SVARMDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Add what the errors of values add that are always evaluated: those of single players."""
        if np.isfinite(errors.freedom):
            solution = self.solve(design, values)
            return with_errors_of_answers(solution, partial(self.solve, design), errors)
        solution = super().solve_with_errors(design, values, errors)
        one, all_but_one = design.partitions[0][0]
        probes = np.zeros((2 * len(one), values.shape[1], 1))
        probes[np.arange(len(probes)), np.concatenate([one, all_but_one])] = 1.0
        of_one, of_others = np.split(self.solve(design, probes).values[:, :, 0], 2)  # (M, M) each
        added = ((of_one - of_others) ** 2).T @ np.take(errors.odd, one, axis=1)
        added += ((of_one + of_others) ** 2).T @ np.take(errors.even, one, axis=1)
        return solution.with_variances(added)

    def _strata(self, n_players: int) -> list[_Stratum]:
        """Return the strata whose coalitions are drawn."""
        strata = []
        for size in range(2, n_players // 2 + 1):
            if 2 * size == n_players:  # the complement has the same size
                strata.append(_Stratum(size, (False,)))
            elif self.paired:
                strata.append(_Stratum(size, (False, True)))
            else:
                strata += [_Stratum(size, (False,)), _Stratum(size, (True,))]
        return strata

    def _centred(
        self, design: SVARMDesign, values: ValueArray
    ) -> tuple[AttributionArray, ValueArray]:
        """Return the values of an additive game for the players, and the values less that game."""
        coalitions = design.table.coalitions[0]
        if not self.centred:
            return np.zeros((len(values), coalitions.shape[1], values.shape[2])), values
        of_one, of_all_but_one = design.partitions[0][0]
        first = np.take(values, of_one, axis=1) - values[:, :1]
        last = values[:, 1:2] - np.take(values, of_all_but_one, axis=1)
        slopes = (first + last) / 2
        remainder: FloatArray = values - values[:, :1] - coalitions @ slopes
        return slopes, remainder


@dataclass(frozen=True)
class _Stratum:
    """Coalitions of one size, their complements, or both.

    Attributes
    ----------
    size : int
        Number of players of the coalitions; at most M / 2.
    complements : tuple of bool
        (False,) for the coalitions, (True,) for their complements, (False, True) for both.
    """

    size: int
    complements: tuple[bool, ...]

    def cost(self, n_players: int) -> int:
        """Return the number of coalitions of a partition."""
        return len(self.complements) * -(-n_players // self.size)

    def partitions(self, orders: IntArray) -> CoalitionArray:
        """Divide orders of the players, (n, M), into coalitions, (n, D, C, M)."""
        n_players = orders.shape[1]
        starts = np.arange(0, n_players, self.size)
        starts = np.minimum(starts, n_players - self.size)[
            :, None
        ]  # the last coalition may overlap
        ranks = orders[:, None]
        chunks = (starts <= ranks) & (ranks < starts + self.size)
        return np.stack([chunks ^ flag for flag in self.complements], axis=1)


_EXACT_SIZES = _Stratum(1, (False, True))


def _select_within_budget(
    request: DesignRequest, units: Sequence[WordArray], of_unit: IntArray, n_strata: int
) -> SVARMDesign:
    """Return the design of the first units, (D, C, W) each, that the budget pays for.

    `of_unit` holds the stratum of each unit, −1 for the exact sizes.
    """
    n_coalitions = np.array([unit.shape[0] * unit.shape[1] for unit in units])
    words = np.concatenate([unit.reshape(-1, unit.shape[2]) for unit in units])
    selection = select_uneven_units(request.known, words, n_coalitions, request.budget)
    n = selection.n_units
    of_coalition = np.repeat(of_unit[:n], n_coalitions[:n])
    partitions = []
    for stratum in range(-1, n_strata):
        shape = units[np.flatnonzero(of_unit == stratum)[0]].shape[:2]
        partitions.append(selection.positions[of_coalition == stratum].reshape(-1, *shape))
    return SVARMDesign(selection.table, partitions)


def _differences(members: CoalitionArray, values: ValueArray) -> FloatArray:
    """Return the differences of means with and without each player, (R, n, M, K).

    Parameters
    ----------
    members : array, (n, D, C, M)
        The coalitions. For each of the D sizes, every player is in some of the C coalitions, but
        not in all.
    values : array, (R, n, D, C, K)
        Their values.

    Returns
    -------
    array
        Means over the coalitions with the player, less means over those without, summed over the
        sizes and divided by M. One entry per partition.
    """
    n, n_sizes, n_coalitions, n_players = members.shape
    n_with = members.sum(axis=2, keepdims=True)
    weights = np.where(members, 1 / n_with, -1 / (n_coalitions - n_with)) / n_players
    by_player = weights.reshape(n, n_sizes * n_coalitions, n_players).transpose(0, 2, 1)
    differences: FloatArray = by_player @ values.reshape(len(values), n, -1, values.shape[4])
    return differences

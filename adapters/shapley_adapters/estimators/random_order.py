"""Marginal contributions of the players in random orders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ..arguments import checked_flag
from ..array_types import CoalitionArray, IntArray, ValueArray
from ..coalitions.tables import pack, select_units, units_within
from ..errors_of_means import pooled_mean_and_error
from .protocol import Design, DesignRequest, Estimator, Solution
from .units import with_errors_of_answers
from .value_errors import ValueErrors


@dataclass(frozen=True)
class RandomOrderDesign(Design):
    """Chains of coalitions that grow by one player at a time.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions, shared by all rows.
    ranks : array, (U, M)
        The rank of each player in each order.
    chains : array, (U, D, M + 1)
        Indices into the table: the coalitions of each order. D is 2 if a unit also contains the
        reverse of its order, else 1.
    """

    ranks: IntArray
    chains: IntArray

    @property
    def sharing_units(self) -> IntArray:
        """The coalitions of each order, and of its reverse."""
        return self.chains.reshape(len(self.chains), -1)

    def within(self, n_coalitions: int) -> RandomOrderDesign:
        """Return the orders whose coalitions are among the first of the table."""
        of_unit = self.chains.reshape(1, len(self.chains), -1)
        n = int(units_within(of_unit, n_coalitions)[0])
        return RandomOrderDesign(self.table.first(n_coalitions), self.ranks[:n], self.chains[:n])


@dataclass(frozen=True)
class RandomOrder(Estimator[RandomOrderDesign]):
    """Random orders, each followed by its reverse if `antithetic`.

    The estimate is unbiased and exactly efficient. A single pair is exact for quadratic games.
    """

    has_units: ClassVar[bool] = True

    antithetic: bool = True

    def __post_init__(self) -> None:
        checked_flag("antithetic", self.antithetic)

    @property
    def is_drawn_by_labels(self) -> bool:
        """With random labels, a fixed order is a random order."""
        return True

    @property
    def is_unbiased(self) -> bool:
        """Yes: see the class."""
        return True

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one unit, or of two for errors, and the empty and full coalition."""
        return (2 if with_errors else 1) * self._unit_size(n_players) + 2

    def design(self, request: DesignRequest) -> RandomOrderDesign:
        """Draw orders until the budget is spent."""
        n_players, unit_size = request.n_players, self._unit_size(request.n_players)
        # Duplicates are free, so offer more orders than the budget covers without duplicates.
        n_offered = 2 * (request.budget // unit_size) + 2
        identity = np.tile(np.arange(n_players), (n_offered, 1))
        ranks = request.rng.permuted(identity, axis=1)
        selection = select_units(request.known, pack(self._interiors(ranks))[None], request.budget)
        n_units = selection.n_units[0]
        interiors = selection.positions[0, :n_units].reshape(n_units, -1, n_players - 1)
        chains = np.empty((*interiors.shape[:2], n_players + 1), dtype=np.intp)
        chains[..., 0], chains[..., 1:-1], chains[..., -1] = 0, interiors, 1
        return RandomOrderDesign(selection.table, ranks[:n_units], chains)

    def solve(self, design: RandomOrderDesign, values: ValueArray) -> Solution:
        """Average the marginal contributions; errors from the spread between units, pooled."""
        steps = np.diff(np.take(values, design.chains, axis=1), axis=3)  # (R, U, D, M, K)
        forward = np.take_along_axis(steps[:, :, 0], design.ranks[None, :, :, None], axis=2)
        if self.antithetic:
            # The first player of an order is the last of its reverse.
            reverse_ranks = design.ranks.shape[1] - 1 - design.ranks
            forward += np.take_along_axis(steps[:, :, 1], reverse_ranks[None, :, :, None], axis=2)
            forward /= 2
        return Solution(*pooled_mean_and_error(forward))

    def solve_with_errors(
        self, design: RandomOrderDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Average the marginal contributions; add the errors that orders have in common.

        Several orders may begin with the same coalition. The error of its value then enters each of
        them, and the spread between them does not show it.
        """
        if np.isfinite(errors.freedom):
            solution = self.solve(design, values)
            return with_errors_of_answers(solution, partial(self.solve, design), errors)
        solution = super().solve_with_errors(design, values, errors)
        n_players, n_coalitions = design.ranks.shape[1], values.shape[1]
        n_units, n_each = design.chains.shape[:2]
        ranks = design.ranks[:, None].repeat(n_each, axis=1)
        if n_each == 2:
            ranks[:, 1] = n_players - 1 - ranks[:, 1]
        weights, squares = np.zeros((2, n_players, n_coalitions))
        players = np.broadcast_to(np.arange(n_players), (n_units, n_players))
        for side, sign in ((0, -1.0), (1, 1.0)):
            for which in range(n_each):
                position = np.take_along_axis(design.chains[:, which], ranks[:, which] + side, 1)
                np.add.at(weights, (players, position), sign / (n_units * n_each))
                np.add.at(squares, (players, position), 1 / (n_units * n_each) ** 2)
        shared = np.maximum(weights**2 - squares, 0.0)
        shared[:, :2] = 0.0  # the ends are in the errors above
        return solution.with_variances(shared @ errors.variances)

    def _unit_size(self, n_players: int) -> int:
        return (n_players - 1) * (2 if self.antithetic else 1)

    def _interiors(self, ranks: IntArray) -> CoalitionArray:
        """Return the coalitions of each unit, without the empty and the full one, (U, S, M)."""
        lengths = np.arange(1, ranks.shape[1])
        forward = ranks[:, None, :] < lengths[:, None]
        if not self.antithetic:
            return forward
        return np.concatenate([forward, ~forward[:, ::-1]], axis=1)

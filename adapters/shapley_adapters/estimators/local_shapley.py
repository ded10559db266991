"""L-Shapley: the Shapley value of the game among the players of a neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arguments import checked_choice
from ..array_types import BoolArray, IntArray, ValueArray
from ..averages import mean_and_error
from ..coalition_sets import CoalitionTable, all_coalitions, buy, pack, units_within
from ..designs import DesignRequest, GraphPlace, OnGraph, Solution
from ..errors import BudgetError
from ..linear_designs import (
    LinearDesign,
    Terms,
    TooManyCoalitionsError,
    solve_linear,
)
from ..orders import MOST_COALITIONS, affordable, allowed, checked_order
from ..size_distributions import size_weights

CONTEXTS = ("removed", "kept")


@dataclass(frozen=True)
class LocalDraws:
    """Random orders of neighbourhoods that are too large to be enumerated.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions; those of `enumerated` open it.
    enumerated : LinearDesign
        The design of the players whose neighbourhoods are small.
    positions : array, (U, 4)
        Where the coalitions of each unit stand in the table: who is before the player in an order
        of its neighbourhood, with the player and without; then the same in the reverse order.
    owners : array, (U,)
        The node that each unit is about. Nodes take turns.
    drawn : array
        The nodes that have units.
    order : int
        The order of the neighbourhoods.
    """

    table: CoalitionTable
    enumerated: LinearDesign
    positions: IntArray
    owners: IntArray
    drawn: IntArray
    order: int

    def within(self, n_coalitions: int) -> LocalDraws:
        """Return the units that the first coalitions of the table serve."""
        n = int(units_within(self.positions[None], n_coalitions)[0])
        return LocalDraws(
            self.table.first(n_coalitions),
            self.enumerated,
            self.positions[:n],
            self.owners[:n],
            self.drawn,
            self.order,
        )

    def of_rows(self, _: IntArray) -> LocalDraws:
        """Return the design itself: all rows share it."""
        return self


@dataclass(frozen=True)
class LShapley(OnGraph):
    """L-Shapley of order k, Chen et al., 2019, Definition 1 (Eq. 5), on any graph.

    φ_i is the Shapley value of i in the game among the players within k edges. Exact where the
    order reaches everyone; otherwise an approximation for games in which players that are far apart
    do not interact. Not efficient. Where a given order costs more than the budget, small
    neighbourhoods are enumerated, and of the others random orders and their reverses are drawn
    (§4.3.1): unbiased for the L-Shapley value, with standard errors.

    Parameters
    ----------
    order : int or "auto"
        How many edges away players are considered; the largest whose coalitions the budget pays
        for.
    context : {"removed", "kept"}
        Whether players outside the neighbourhood are absent, as the paper has it, or present.
    """

    order: int | str = "auto"
    context: str = "removed"

    def __post_init__(self) -> None:
        checked_order(self.order)
        checked_choice("context", self.context, CONTEXTS)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one unit for each player and the end points; of two for errors."""
        return (8 if with_errors else 4) * n_players + 2

    def design(self, request: DesignRequest) -> LinearDesign | LocalDraws:
        """Enumerate the neighbourhoods, or draw orders of those that are too large."""
        place = request.on_graph

        def make(order: int, most: int) -> LinearDesign:
            terms = Terms(place, request.known, most)
            for near, owners in _neighbourhoods(place, order):
                self._enumerate(terms, near, owners)
            terms.count()
            return terms.design(order)

        if isinstance(self.order, str):
            return affordable(self.order, make, request, 0, place.graph.is_covered)
        if request.must_draw:
            return self._draw(self.order, place, request)
        try:
            return make(self.order, allowed(request))
        except TooManyCoalitionsError:
            return self._draw(self.order, place, request)

    def solve(self, design: LinearDesign | LocalDraws, values: ValueArray) -> Solution:
        """Weigh the values; average over orders where they were drawn, errors from their spread."""
        if isinstance(design, LinearDesign):
            return solve_linear(design, values)
        return _solve_draws(design, values)

    def _enumerate(self, terms: Terms, near: IntArray, owners: IntArray) -> None:
        """Add the Shapley values of `owners` in the game among the active players `near`."""
        n_near = len(near)
        if 2**n_near > terms.most:
            raise TooManyCoalitionsError(2**n_near)
        members = all_coalitions(n_near)
        present, absent = size_weights(n_near)
        sizes = members.sum(axis=1)[:, None]
        is_in = members[:, np.searchsorted(near, owners)]
        shares = np.where(is_in, present[sizes], -absent[sizes])
        terms.add(terms.coalitions(near, members, self.context == "kept"), shares, owners)

    def _draw(self, order: int, place: GraphPlace, request: DesignRequest) -> LocalDraws:
        groups = _neighbourhoods(place, order)
        budget = request.budget
        # What an equal share of the budget pays for is enumerated; it is no more than drawing.
        share = (budget - 2) / request.n_players
        terms = Terms(place, request.known, MOST_COALITIONS)
        for near, owners in groups:
            if 2 ** len(near) <= share:
                self._enumerate(terms, near, owners)
        enumerated = terms.design(order)
        near_of = {
            int(owner): near
            for near, owners in groups
            if 2 ** len(near) > share
            for owner in owners
        }
        drawn = np.array(sorted(near_of), dtype=np.intp)
        n_rounds = max(0, budget - int(enumerated.table.counts[0])) // (2 * len(drawn)) + 2
        members, owners = _orders(near_of, place.graph.n_players, n_rounds, request.rng)
        kept = self.context == "kept"
        units = np.empty((len(owners), 4, request.n_players), dtype=bool)
        for node, near in near_of.items():
            own = members[owners == node][..., near]
            flat = terms.coalitions(near, own.reshape(-1, len(near)), kept)
            units[owners == node] = flat.reshape(-1, 4, request.n_players)
        purchase = buy(enumerated.table.coalitions[0], pack(units)[None], budget)
        n = int(purchase.n_units[0])
        n_least = len(drawn) * (2 if request.needs_errors else 1)
        if n < n_least:
            needed = int(enumerated.table.counts[0]) + 4 * n_least
            raise BudgetError(
                f"order={order} needs up to {needed} evaluations for a row of "
                f"{request.n_players} players, drawing orders of their neighbourhoods"
                f"{' to tell standard errors' if request.needs_errors else ''}; lower the order."
            )
        return LocalDraws(
            purchase.table, enumerated, purchase.positions[0, :n], owners[:n], drawn, order
        )


def _neighbourhoods(place: GraphPlace, order: int) -> list[tuple[IntArray, IntArray]]:
    """Return the active players of each neighbourhood, and the active nodes whose it is."""
    is_active = np.zeros(place.graph.n_players, dtype=bool)
    is_active[place.players] = True
    owners_of: dict[tuple[int, ...], list[int]] = {}
    for node in place.players.tolist():
        near = place.graph.neighbourhood(node, order)
        owners_of.setdefault(tuple(np.sort(near[is_active[near]]).tolist()), []).append(node)
    return [(np.array(near), np.array(owners)) for near, owners in owners_of.items()]


def _orders(
    near_of: dict[int, IntArray], n_nodes: int, n_rounds: int, rng: np.random.Generator
) -> tuple[BoolArray, IntArray]:
    """Return who is before each node, with and without it, in orders and their reverses.

    One order of all players makes one of each neighbourhood. Rounds come one after the other, with
    a unit, (4, nodes), of each node in each.
    """
    drawn = np.array(sorted(near_of))
    ranks = rng.permuted(np.tile(np.arange(n_nodes), (n_rounds, 1)), axis=1)
    own = ranks[:, drawn, None]
    before, after = ranks[:, None] < own, ranks[:, None] > own  # (rounds, drawn, nodes)
    with_owner = np.eye(n_nodes, dtype=bool)[drawn]
    units = np.stack([before | with_owner, before, after | with_owner, after], axis=2)
    return units.reshape(-1, 4, n_nodes), np.tile(drawn, n_rounds)


def _solve_draws(design: LocalDraws, values: ValueArray) -> Solution:
    n_rows, n_coalitions, n_outputs = values.shape
    enumerated = design.enumerated
    n_known = int(enumerated.table.counts[0])
    n_nodes = enumerated.operator.shape[0]
    if n_coalitions < n_known:  # a round that has not come to the draws
        nothing = np.full((n_rows, n_nodes, n_outputs), np.nan)
        return Solution(nothing, nothing)
    attributions = enumerated.attributions(values[:, :n_known])
    errors = np.zeros_like(attributions)
    freedom = np.full((n_nodes, 1), np.inf)
    found = values[:, design.positions]  # (R, U, 4, K)
    contributions = (found[:, :, 0] - found[:, :, 1] + found[:, :, 2] - found[:, :, 3]) / 2
    for node in design.drawn:
        own = contributions[:, design.owners == node]
        attributions[:, node], errors[:, node] = mean_and_error(own)
        freedom[node] = own.shape[1] - 1
    return Solution(attributions, errors, freedom)

"""The Myerson value: the Shapley value of a game that is played within connected components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import scipy.sparse

from ..array_types import IntArray, ValueArray
from ..averages import mean_and_error
from ..coalition_sets import CoalitionTable, buy, pack, units_within
from ..connected_sets import all_connected_sets, as_rows, part_of
from ..designs import DesignRequest, GraphPlace, OnGraph, Solution
from ..errors import BudgetError
from ..linear_designs import (
    LinearDesign,
    Terms,
    TooManyCoalitionsError,
    solve_linear,
)
from ..orders import MOST_COALITIONS
from ..set_weights import boundary_weights, set_weights


@dataclass(frozen=True)
class ComponentDraws:
    """Random orders in which players arrive, and join the components next to them.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions: the components that come about.
    positions : array, (U, S)
        Where the components of each unit, in the order in which they come about, stand in the
        table.
    nodes : array, (U, S)
        Who arrives when each comes about.
    joined : array, (n, 3)
        Which component, the last number, each arrival, the second, of a unit, the first, joins.
    n_nodes, n_orders : int
        The number of nodes of the graph, and of orders in a unit.
    """

    table: CoalitionTable
    positions: IntArray
    nodes: IntArray
    joined: IntArray
    n_nodes: int
    n_orders: int

    def within(self, n_coalitions: int) -> ComponentDraws:
        """Return the orders that the first coalitions of the table serve."""
        n = int(units_within(self.positions[None], n_coalitions)[0])
        return ComponentDraws(
            self.table.first(n_coalitions),
            self.positions[:n],
            self.nodes[:n],
            self.joined[self.joined[:, 0] < n],
            self.n_nodes,
            self.n_orders,
        )

    def of_rows(self, _: IntArray) -> ComponentDraws:
        """Return the design itself: all rows share it."""
        return self

    def operator(self, n_coalitions: int) -> scipy.sparse.csr_matrix:
        """Return what each node gets in each unit of the values, (U · nodes, C)."""
        unit = np.arange(len(self.positions))[:, None]
        gains = np.broadcast_to(unit * self.n_nodes, self.nodes.shape) + self.nodes
        of_unit, arrival, component = self.joined.T
        losses = of_unit * self.n_nodes + self.nodes[of_unit, arrival]
        n_joined = np.zeros(self.nodes.shape)
        np.add.at(n_joined, (of_unit, arrival), 1)
        # Each arrival gets v(new) − v(∅) − Σ (v(joined) − v(∅)); nobody stands at 0 of the table.
        owners = np.concatenate([gains.ravel(), losses, gains.ravel()])
        columns = np.concatenate(
            [
                self.positions.ravel(),
                self.positions[of_unit, component],
                np.zeros(gains.size, dtype=np.intp),
            ]
        )
        shares = np.concatenate(
            [np.ones(gains.size), -np.ones(len(losses)), (n_joined - 1).ravel()]
        )
        shape = (len(self.positions) * self.n_nodes, n_coalitions)
        return scipy.sparse.csr_matrix((shares / self.n_orders, (owners, columns)), shape=shape)


@dataclass(frozen=True)
class Myerson(OnGraph):
    """The Myerson value (Myerson, 1977; Chen et al., 2019, §4.2), on any graph.

    The Shapley value of the game v(∅) + Σ_C (v(C) − v(∅)) over the components C of a coalition:
    players that are not connected within it do not act together. Needs the values of connected sets
    only. Where these are more than the budget pays for, random orders and their reverses are drawn:
    unbiased, with standard errors. The values of each component of the graph sum to what it is
    worth, exactly; a player that changes no value may yet be paid for joining others.
    """

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of an order, its reverse and the end points; of two pairs for errors."""
        return 2 * (2 if with_errors else 1) * n_players + 2

    def design(self, request: DesignRequest) -> LinearDesign | ComponentDraws:
        """List all connected sets, or draw orders where they are too many."""
        place = request.on_graph
        if request.must_draw:
            return _draws(place, request)
        try:
            return _all_sets(place, Terms(place, request.known, request.budget))
        except TooManyCoalitionsError:
            return _draws(place, request)

    def solve(self, design: LinearDesign | ComponentDraws, values: ValueArray) -> Solution:
        """Weigh the values; average over orders where they were drawn, errors from their spread."""
        if isinstance(design, LinearDesign):
            return solve_linear(design, values)
        n_rows, n_coalitions, n_outputs = values.shape
        n_units = len(design.positions)
        flat = values.transpose(1, 0, 2).reshape(n_coalitions, n_rows * n_outputs)
        of_units = design.operator(n_coalitions) @ flat
        of_units = of_units.reshape(n_units, design.n_nodes, n_rows, n_outputs)
        return Solution(*mean_and_error(of_units.transpose(2, 0, 1, 3)), n_units - 1)


def _all_sets(place: GraphPlace, terms: Terms) -> LinearDesign:
    """Give members and boundary of each connected set their shares of its value.

    A set is a component of a random order's coalition when its last member has arrived, until the
    first of its boundary does.
    """
    left = min(8 * terms.most, MOST_COALITIONS)
    for part, found in all_connected_sets(place.graph):
        if not terms.is_active[part.nodes].any():
            continue
        sets = list(islice(found, left + 1))
        left -= len(sets)
        if left < 0:
            raise TooManyCoalitionsError(terms.most)
        n_nodes = len(part.nodes)
        members = as_rows([one for one, _ in sets], n_nodes)
        boundary = as_rows([one for _, one in sets], n_nodes)
        sizes, n_next = members.sum(axis=1), boundary.sum(axis=1)
        shares = np.where(members, set_weights(sizes, n_next)[:, None], 0.0)
        shares -= np.where(boundary, boundary_weights(sizes, n_next)[:, None], 0.0)
        nobody = np.zeros((1, n_nodes), dtype=bool)
        terms.add(
            terms.coalitions(part.nodes, np.concatenate([members, nobody]), rest=False),
            np.concatenate([shares, -shares.sum(axis=0, keepdims=True)]),
            part.nodes,
        )
    terms.count()
    return terms.design()


def _draws(place: GraphPlace, request: DesignRequest) -> ComponentDraws:
    """Draw orders of the nodes whose component has active players, each with its reverse."""
    terms = Terms(place, request.known, MOST_COALITIONS)
    components = place.graph.components
    is_relevant = np.isin(components, components[place.players])
    nodes = np.flatnonzero(is_relevant)
    part = part_of(place.graph, nodes)
    n = len(nodes)
    n_offered = 2 * (request.budget // (2 * n)) + 2
    orders = request.rng.permuted(np.tile(np.arange(n), (n_offered, 1)), axis=1)
    arrivals = np.concatenate([orders, orders[:, ::-1]], axis=1)
    units, joined = [], []
    for unit, (forward, backward) in enumerate(zip(orders, orders[:, ::-1], strict=True)):
        for start, order in ((0, forward), (n, backward)):
            sets, joins = _arrive(part.links, order.tolist())
            units.append(terms.coalitions(nodes, as_rows(sets, n), rest=False))
            joined += [(unit, start + arrival, start + one) for arrival, one in joins]
    packed = pack(np.array(units).reshape(n_offered, 2 * n, -1))
    purchase = buy(request.known, packed[None], request.budget)
    n_units = int(purchase.n_units[0])
    n_least = 2 if request.needs_errors else 1
    if n_units < n_least:
        raise BudgetError(
            f"up to {2 * n_least * n + 2} evaluations are needed for a row of {request.n_players} "
            f"players, {n_least} random order{'s' * (n_least > 1)} and the reverse"
            f"{' of each, to tell standard errors' if request.needs_errors else ''}."
        )
    every = np.array(joined, dtype=np.intp).reshape(-1, 3)
    return ComponentDraws(
        purchase.table,
        purchase.positions[0, :n_units],
        nodes[arrivals[:n_units]],
        every[every[:, 0] < n_units],
        place.graph.n_players,
        n_orders=2,
    )


def _arrive(links: Sequence[int], order: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Let nodes arrive in an order; return the components that come about, and who joins which.

    Each arrival makes one component, of itself and those next to it, so that components go by the
    number of their last arrival.
    """
    sets: list[int] = []
    joins = []
    last_of: dict[int, int] = {}  # the components there are, by their last arrival
    for arrival, node in enumerate(order):
        component = 1 << node
        for other in [o for o, members in last_of.items() if members & links[node]]:
            component |= last_of.pop(other)
            joins.append((arrival, other))
        last_of[arrival] = component
        sets.append(component)
    return sets, joins

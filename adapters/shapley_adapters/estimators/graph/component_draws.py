"""Random orders in which players arrive, and join the components next to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse

from ...array_types import IntArray, ValueArray, WordArray
from ...coalitions.tables import pack, select_units, units_within
from ...errors import BudgetError
from ...errors_of_means import mean_and_error
from ...graphs.connected_sets import Part, as_rows, members_of, part_of
from ..protocol import Design, DesignRequest, GraphView, Solution
from .linear_design import Terms, check_memory_of_draws
from .neighbourhood_draws import MOST_OFFERS
from .order_selection import MOST_COALITIONS


@dataclass(frozen=True)
class ComponentDraws(Design):
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

    @cached_property
    def operator(self) -> scipy.sparse.csr_matrix:
        """What each node gets in each unit of the values, (U · nodes, C)."""
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
        shape = (len(self.positions) * self.n_nodes, int(self.table.counts[0]))
        return scipy.sparse.csr_matrix((shares / self.n_orders, (owners, columns)), shape=shape)

    def solution(self, values: ValueArray) -> Solution:
        """Average over the units; the errors are those of the averages."""
        n_rows, n_coalitions, n_outputs = values.shape
        n_units = len(self.positions)
        flat = values.transpose(1, 0, 2).reshape(n_coalitions, n_rows * n_outputs)
        of_units = (self.operator @ flat).reshape(n_units, self.n_nodes, n_rows, n_outputs)
        return Solution(*mean_and_error(of_units.transpose(2, 0, 1, 3)), n_units - 1)


def draw_components(view: GraphView, request: DesignRequest) -> ComponentDraws:
    """Draw orders until the budget is spent, each with its reverse.

    They are orders of the nodes whose component has active players.
    """
    terms = Terms(view, request.known, MOST_COALITIONS)
    components = view.graph.components
    nodes = np.flatnonzero(np.isin(components, components[view.players]))
    offer = _Offer(nodes, part_of(view.graph, nodes), terms)
    n_pairs = request.budget // (2 * len(nodes)) + 1
    most_pairs = MOST_OFFERS * n_pairs
    while True:
        n_offered = 2 * len(nodes) * (len(offer.words) + n_pairs)
        check_memory_of_draws(request.n_players, request.budget, n_offered)
        offer.extend(n_pairs, request.rng)
        selection = select_units(request.known, np.concatenate(offer.words)[None], request.budget)
        n_units, n_pairs = int(selection.n_units[0]), len(offer.words)
        if n_units < n_pairs or n_pairs >= most_pairs:
            break
    _check_number(n_units, len(nodes), request)
    joined = np.array(offer.joined, dtype=np.intp).reshape(-1, 3)
    return ComponentDraws(
        selection.table,
        selection.positions[0, :n_units],
        nodes[np.array(offer.arrivals[:n_units])],
        joined[joined[:, 0] < n_units],
        view.graph.n_players,
        n_orders=2,
    )


@dataclass
class _Offer:
    """Orders of some nodes in pairs, and the components that come about in them.

    Attributes
    ----------
    nodes : array, (n,)
        The nodes.
    part : Part
        The part of the graph that they make.
    terms : Terms
        Turns sets of nodes into coalitions of the players.
    words : list of arrays, (1, 2n, W)
        The components of each pair of orders, packed.
    arrivals : list of lists
        Who arrives when each comes about.
    joined : list of tuples
        As in `ComponentDraws`.
    """

    nodes: IntArray
    part: Part
    terms: Terms
    words: list[WordArray] = field(default_factory=list)
    arrivals: list[list[int]] = field(default_factory=list)
    joined: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._near = [list(members_of(links)) for links in self.part.links]

    def extend(self, n_pairs: int, rng: np.random.Generator) -> None:
        """Draw further orders."""
        n = len(self.nodes)
        for order in rng.permuted(np.tile(np.arange(n), (n_pairs, 1)), axis=1).tolist():
            unit, sets = len(self.words), []
            for start, arrivals in ((0, order), (n, order[::-1])):
                made, joins = _arrive(self._near, arrivals)
                sets += made
                self.joined += [(unit, start + arrival, start + one) for arrival, one in joins]
            coalitions = self.terms.coalitions(self.nodes, as_rows(sets, n), rest=False)
            self.words.append(pack(coalitions)[None])
            self.arrivals.append(order + order[::-1])


def _check_number(n_units: int, n_nodes: int, request: DesignRequest) -> None:
    n_least = 2 if request.needs_errors else 1
    if n_units < n_least:
        raise BudgetError(
            f"needs up to {2 * n_least * n_nodes + 2} evaluations for a row of "
            f"{request.n_players} players: {n_least} random order{'s' * (n_least > 1)} and the "
            f"reverse{' of each, to tell standard errors' if request.needs_errors else ''}."
        )


def _arrive(
    near: Sequence[Sequence[int]], order: Sequence[int]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Let nodes arrive in an order; return the components that come about, and who joins which.

    Each arrival makes one component, of itself and those next to it, so that components go by the
    number of their last arrival.
    """
    sets: list[int] = []
    joins = []
    joined_by = list(range(len(order)))  # which arrival each component was joined by
    arrival_of = [-1] * len(near)
    for arrival, node in enumerate(order):
        component = 1 << node
        for other in near[node]:
            last = arrival_of[other]
            if last < 0:
                continue
            while joined_by[last] != last:
                joined_by[last] = joined_by[joined_by[last]]  # shortens the way for the next
                last = joined_by[last]
            if last != arrival:
                component |= sets[last]
                joined_by[last] = arrival
                joins.append((arrival, last))
        arrival_of[node] = arrival
        sets.append(component)
    return sets, joins

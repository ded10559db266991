"""The Myerson value: the Shapley value of a game that is played within connected components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import scipy.sparse

from ...array_types import FloatArray, IntArray, ValueArray, WordArray
from ...coalitions.tables import pack, select_units, units_within
from ...errors import BudgetError
from ...graphs.connected_sets import (
    Subgraph,
    all_connected_sets,
    as_rows,
    boundary_weights,
    members_of,
    n_sets_at_least,
    set_weights,
    subgraph_of,
)
from ..protocol import Declaration, Design, DesignRequest, GraphView, Solution
from ..value_errors import ValueErrors, mean_and_error, weighted_sums
from .linear_design import (
    LinearDesign,
    LinearDesignBuilder,
    LinearEstimator,
    TooManyCoalitionsError,
    check_memory_of_draws,
)
from .neighbourhood_draws import OFFER_FACTOR
from .order_selection import MAX_COALITIONS


@dataclass(frozen=True)
class ComponentDraws(Design):
    """Random orders of the players, in which each joins the components next to it.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions: the components that arrivals create.
    positions : array, (U, S)
        Indices into the table: the component that each arrival of a unit creates.
    nodes : array, (U, S)
        The node that arrives.
    joined : array, (n, 3)
        The unit, the arrival, and the earlier arrival whose component the arrival joins.
    n_nodes, n_orders : int
        The number of nodes of the graph, and of orders in a unit.
    """

    positions: IntArray
    nodes: IntArray
    joined: IntArray
    n_nodes: int
    n_orders: int

    def within(self, n_coalitions: int) -> Self:
        """Return the orders whose coalitions are among the first of the table."""
        n = int(units_within(self.positions[None], n_coalitions)[0])
        return replace(
            self,
            table=self.table.first(n_coalitions),
            positions=self.positions[:n],
            nodes=self.nodes[:n],
            joined=self.joined[self.joined[:, 0] < n],
        )

    @cached_property
    def operator(self) -> scipy.sparse.csr_matrix:
        """Maps the values to the contribution of each node in each unit, (U · nodes, C)."""
        unit = np.arange(len(self.positions))[:, None]
        gains = np.broadcast_to(unit * self.n_nodes, self.nodes.shape) + self.nodes
        of_unit, arrival, component = self.joined.T
        losses = of_unit * self.n_nodes + self.nodes[of_unit, arrival]
        n_joined = np.zeros(self.nodes.shape)
        np.add.at(n_joined, (of_unit, arrival), 1)
        # Each arrival gets v(new) − v(∅) − Σ (v(joined) − v(∅)). The table's index 0 is ∅.
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

    def contributions(self, values: ValueArray) -> FloatArray:
        """Return the contribution of each node in each unit, (R, U, nodes, K)."""
        draws = weighted_sums(self.operator, values)  # (R, U · nodes, K)
        return draws.reshape(len(values), len(self.positions), self.n_nodes, -1)

    def solution(self, values: ValueArray) -> Solution:
        """Return the means over the units and their standard errors."""
        return Solution(*mean_and_error(self.contributions(values)), len(self.positions) - 1)

    def added_variances(self, errors: ValueErrors) -> FloatArray:
        """Return what errors that units share add to the variances of attributions."""
        n_units = len(self.positions)
        each = scipy.sparse.identity(self.n_nodes) / n_units
        means = scipy.sparse.hstack([each] * n_units, format="csr")
        nothing = scipy.sparse.csr_matrix((self.n_nodes, self.operator.shape[1]))
        shared = errors.beside_spread(self.operator, means, nothing, self.table.coalitions[0])
        # The spread is that around the mean, so that it is less by what the units share.
        return shared * n_units / max(1, n_units - 1)


def draw_components(view: GraphView, request: DesignRequest) -> ComponentDraws:
    """Draw orders until the budget is spent, each with its reverse.

    The orders contain the nodes whose component has active players.
    """
    builder = LinearDesignBuilder(view, request.known, MAX_COALITIONS)
    components = view.graph.components
    nodes = np.flatnonzero(np.isin(components, components[view.players]))
    offer = _Offer(nodes, subgraph_of(view.graph, nodes), builder)
    n_pairs = request.budget // (2 * len(nodes)) + 1
    max_pairs = OFFER_FACTOR * n_pairs
    while True:
        n_offered = 2 * len(nodes) * (len(offer.words) + n_pairs)
        check_memory_of_draws(request.n_players, request.budget, n_offered)
        offer.extend(n_pairs, request.rng)
        selection = select_units(request.known, np.concatenate(offer.words)[None], request.budget)
        n_units, n_pairs = int(selection.n_units[0]), len(offer.words)
        if n_units < n_pairs or n_pairs >= max_pairs:
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
    """Pairs of orders of some nodes, and the components that arrivals create.

    Attributes
    ----------
    nodes : array, (n,)
        The nodes.
    part : Subgraph
        The part of the graph that these nodes make.
    builder : LinearDesignBuilder
        Converts sets of nodes to coalitions of the players.
    words : list of arrays, (1, 2n, W)
        The components of each pair of orders, packed.
    arrivals : list of lists
        The nodes in the order of their arrival, for each pair of orders.
    joined : list of tuples
        As in `ComponentDraws`.
    """

    nodes: IntArray
    part: Subgraph
    builder: LinearDesignBuilder
    words: list[WordArray] = field(default_factory=list)
    arrivals: list[list[int]] = field(default_factory=list)
    joined: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._neighbours = [list(members_of(links)) for links in self.part.neighbour_sets]

    def extend(self, n_pairs: int, rng: np.random.Generator) -> None:
        """Draw more orders."""
        n = len(self.nodes)
        for order in rng.permuted(np.tile(np.arange(n), (n_pairs, 1)), axis=1).tolist():
            unit, sets = len(self.words), []
            for start, arrivals in ((0, order), (n, order[::-1])):
                components, joins = _arrive(self._neighbours, arrivals)
                sets += components
                self.joined += [(unit, start + later, start + earlier) for later, earlier in joins]
            coalitions = self.builder.coalitions(self.nodes, as_rows(sets, n), False)
            self.words.append(pack(coalitions)[None])
            self.arrivals.append(order + order[::-1])


def _check_number(n_units: int, n_nodes: int, request: DesignRequest) -> None:
    n_needed = 2 if request.needs_errors else 1
    if n_units < n_needed:
        raise BudgetError(
            f"needs up to {2 * n_needed * n_nodes + 2} evaluations for a row of "
            f"{request.n_players} players: {n_needed} random order{'s' * (n_needed > 1)} and the "
            f"reverse{' of each, to estimate standard errors' if request.needs_errors else ''}."
        )


def _arrive(
    neighbours: Sequence[Sequence[int]], order: Sequence[int]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Let nodes arrive in an order; return the components, and the pairs that are joined.

    Each arrival creates one component: the node and the components next to it. The index of the
    arrival is therefore the index of its component.
    """
    sets: list[int] = []
    joins = []
    joined_by = list(range(len(order)))  # the arrival that joined each component
    arrival_of = [-1] * len(neighbours)
    for arrival, node in enumerate(order):
        component = 1 << node
        for neighbour in neighbours[node]:
            last = arrival_of[neighbour]
            if last < 0:
                continue
            while joined_by[last] != last:
                joined_by[last] = joined_by[joined_by[last]]  # a shorter path for later nodes
                last = joined_by[last]
            if last != arrival:
                component |= sets[last]
                joined_by[last] = arrival
                joins.append((arrival, last))
        arrival_of[node] = arrival
        sets.append(component)
    return sets, joins


@dataclass(frozen=True)
class Myerson(LinearEstimator):
    """Myerson values: Shapley values of features that act together only where connected.

    For features with neighbours, such as atoms of a molecule. The value of a coalition is the sum
    of the values of its connected components. The Myerson value (1977) is the Shapley value of this
    game (Chen et al., 2019, 4.2). It needs the values of connected sets only. If there are more of
    them than the budget allows, random orders and their reverses are drawn; the estimate is then
    unbiased and has standard errors. The values of each component of the graph sum exactly to the
    value of this component alone. A feature that changes no output may get a value, because it
    connects others.
    """

    declaration: ClassVar[Declaration | None] = Declaration("Myerson", "graph")
    is_unbiased = True

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one pair of orders, or of two, and the empty and full coalition."""
        return 2 * (2 if with_errors else 1) * n_players + 2

    def design(self, request: DesignRequest) -> LinearDesign | ComponentDraws:
        """List all connected sets, or draw orders if they are too many."""
        view = request.required_graph_view
        if request.must_draw:
            return draw_components(view, request)
        builder = LinearDesignBuilder(view, request.known, request.budget)
        try:
            _check_sets(view, builder)
            return _all_sets(view, builder)
        except TooManyCoalitionsError:
            return draw_components(view, request)


def _check_sets(view: GraphView, builder: LinearDesignBuilder) -> None:
    """Refuse a graph with too many or too large connected sets, before listing them."""
    _, firsts = np.unique(view.graph.components, return_index=True)
    n_sets = n_nodes = 0
    for first in firsts.tolist():
        part = subgraph_of(view.graph, view.graph.neighbourhood(first, view.graph.n_players))
        if builder.is_active[part.nodes].any():
            n_sets += n_sets_at_least(part, builder.is_active[part.nodes], is_rooted=False)
            n_nodes = max(n_nodes, len(part.nodes))
    if n_sets > builder.limit:
        raise TooManyCoalitionsError(n_sets)
    builder.check_memory(n_sets, n_nodes)


def _all_sets(view: GraphView, builder: LinearDesignBuilder) -> LinearDesign:
    """Give the members and the boundary of each connected set their shares of its value.

    In a random order, a set is a component from the arrival of its last member until the arrival of
    the first node of its boundary.
    """
    n_allowed = min(8 * builder.limit, MAX_COALITIONS)
    for part, pairs in all_connected_sets(view.graph):
        if not builder.is_active[part.nodes].any():
            continue
        n_nodes = len(part.nodes)
        sets = builder.list_sets(pairs, n_allowed, n_nodes)
        n_allowed -= len(sets)
        members = as_rows([inside for inside, _ in sets], n_nodes)
        boundary = as_rows([outside for _, outside in sets], n_nodes)
        sizes, n_next = members.sum(axis=1), boundary.sum(axis=1)
        shares = np.where(members, set_weights(sizes, n_next)[:, None], 0.0)
        shares -= np.where(boundary, boundary_weights(sizes, n_next)[:, None], 0.0)
        empty_set = np.zeros((1, n_nodes), dtype=bool)
        builder.add(
            builder.coalitions(part.nodes, np.concatenate([members, empty_set]), False),
            np.concatenate([shares, -shares.sum(axis=0, keepdims=True)]),
            part.nodes,
        )
    builder.count()
    return builder.design()

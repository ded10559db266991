"""The Myerson value: the Shapley value of a game that is played within connected components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...array_types import ValueArray
from ...graphs.connected_sets import all_connected_sets, as_rows, n_sets_at_least, subgraph_of
from ...graphs.set_weights import boundary_weights, set_weights
from ..protocol import DesignRequest, Estimator, GraphView, Solution
from .component_draws import ComponentDraws, draw_components
from .linear_design import LinearDesign, LinearDesignBuilder, TooManyCoalitionsError, solve_linear
from .order_selection import MAX_COALITIONS


@dataclass(frozen=True)
class Myerson(Estimator[Any]):
    """The Myerson value (Myerson, 1977; Chen et al., 2019, 4.2), on any graph.

    The Shapley value of the game v(∅) + Σ_C (v(C) − v(∅)) over the components C of a coalition:
    players that are not connected within it do not act together. It needs only the values of
    connected sets. If these cost more than the budget, random orders and their reverses are drawn:
    unbiased, with standard errors. The attributions of a component C of the graph sum to
    v(C) − v(∅) exactly. A null player may have an attribution, because it connects other players.
    """

    needs_graph: ClassVar[bool] = True

    @property
    def is_unbiased(self) -> bool:
        """Yes: see the class."""
        return True

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

    def solve(self, design: LinearDesign | ComponentDraws, values: ValueArray) -> Solution:
        """Weight the values; average over orders if they are random, errors from their spread."""
        if isinstance(design, ComponentDraws):
            return design.solution(values)
        return solve_linear(design, values)


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

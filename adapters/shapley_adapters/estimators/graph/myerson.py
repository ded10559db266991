"""The Myerson value: the Shapley value of a game that is played within connected components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...array_types import ValueArray
from ...graphs.connected_sets import all_connected_sets, as_rows, n_sets_at_least, part_of
from ...graphs.set_weights import boundary_weights, set_weights
from ..protocol import DesignRequest, Estimator, GraphView, Solution
from .component_draws import ComponentDraws, draw_components
from .linear_design import LinearDesign, Terms, TooManyCoalitionsError, solve_linear
from .order_selection import MOST_COALITIONS


@dataclass(frozen=True)
class Myerson(Estimator[Any]):
    """The Myerson value (Myerson, 1977; Chen et al., 2019, 4.2), on any graph.

    The Shapley value of the game v(∅) + Σ_C (v(C) − v(∅)) over the components C of a coalition:
    players that are not connected within it do not act together. Needs the values of connected sets
    only. Where these are more than the budget pays for, random orders and their reverses are drawn:
    unbiased, with standard errors. The values of each component of the graph sum to what it is
    worth, exactly; a player that changes no value may yet be paid for joining others.
    """

    needs_graph: ClassVar[bool] = True

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of an order, its reverse and the end points; of two pairs for errors."""
        return 2 * (2 if with_errors else 1) * n_players + 2

    def design(self, request: DesignRequest) -> LinearDesign | ComponentDraws:
        """List all connected sets, or draw orders where they are too many."""
        view = request.required_graph_view
        if request.must_draw:
            return draw_components(view, request)
        terms = Terms(view, request.known, request.budget)
        try:
            _check_sets(view, terms)
            return _all_sets(view, terms)
        except TooManyCoalitionsError:
            return draw_components(view, request)

    def solve(self, design: LinearDesign | ComponentDraws, values: ValueArray) -> Solution:
        """Weigh the values; average over orders where they were drawn, errors from their spread."""
        if isinstance(design, ComponentDraws):
            return design.solution(values)
        return solve_linear(design, values)


def _check_sets(view: GraphView, terms: Terms) -> None:
    """Refuse a graph with too many connected sets, or too large ones, before they are listed."""
    _, firsts = np.unique(view.graph.components, return_index=True)
    n_least = n_nodes = 0
    for first in firsts.tolist():
        part = part_of(view.graph, view.graph.neighbourhood(first, view.graph.n_players))
        if terms.is_active[part.nodes].any():
            n_least += n_sets_at_least(part, terms.is_active[part.nodes], is_rooted=False)
            n_nodes = max(n_nodes, len(part.nodes))
    if n_least > terms.most:
        raise TooManyCoalitionsError(n_least)
    terms.check_memory(n_least, n_nodes)


def _all_sets(view: GraphView, terms: Terms) -> LinearDesign:
    """Give members and boundary of each connected set their shares of its value.

    A set is a component of a random order's coalition when its last member has arrived, until the
    first of its boundary does.
    """
    left = min(8 * terms.most, MOST_COALITIONS)
    for part, found in all_connected_sets(view.graph):
        if not terms.is_active[part.nodes].any():
            continue
        n_nodes = len(part.nodes)
        sets = terms.listed(found, left, n_nodes)
        left -= len(sets)
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

"""L-Shapley: the Shapley value of the game among the players of a neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...arguments import checked_choice
from ...array_types import IntArray, ValueArray
from ...coalitions.sizes import size_weights
from ...coalitions.tables import all_coalitions
from ..protocol import Design, DesignRequest, Estimator, GraphView, Solution
from .linear_design import (
    LinearDesign,
    Terms,
    TooManyCoalitionsError,
    check_memory_of_draws,
    solve_linear,
)
from .neighbourhood_draws import (
    NeighbourhoodDraws,
    Neighbourhoods,
    Samples,
    check_least,
    least_draws,
)
from .order_selection import (
    MOST_COALITIONS,
    affordable_or_drawn,
    checked_order,
    reason_for_first,
)

CONTEXTS = ("removed", "kept")


@dataclass(frozen=True)
class LShapley(Estimator[Any]):
    """L-Shapley of order k, Chen et al., 2019, Definition 1 (Eq. 5), on any graph.

    φ_i is the Shapley value of i in the game among the players within k edges. Exact where the
    order reaches everyone; otherwise an approximation for games in which players that are far apart
    do not interact. Not efficient. Where the order costs more than the budget, small neighbourhoods
    are enumerated, and of the others random orders and their reverses are drawn (4.3.1): unbiased
    for the L-Shapley value of that order, with standard errors.

    Parameters
    ----------
    order : int or "auto"
        How many edges away players are considered, the same number for all of them. "auto" is the
        largest order whose coalitions the budget pays for, and at least 1: where order 1 costs
        more, it is drawn. Only where the budget does not pay for that is the order 0.
    context : {"removed", "kept"}
        Whether players outside the neighbourhood are absent, as the paper has it, or present.
    """

    needs_graph: ClassVar[bool] = True

    order: int | str = "auto"
    context: str = "removed"

    def __post_init__(self) -> None:
        checked_order(self.order)
        checked_choice("context", self.context, CONTEXTS)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one unit for each player and the end points; of two for errors."""
        return (8 if with_errors else 4) * n_players + 2

    def design(self, request: DesignRequest) -> LinearDesign | NeighbourhoodDraws:
        """Enumerate the neighbourhoods, or draw orders of those that are too large."""
        view = request.required_graph_view
        if self.order == "auto":  # grows until the budget is spent
            check_memory_of_draws(request.n_players, request.budget, 0)

        def make(order: int, most: int) -> LinearDesign | NeighbourhoodDraws:
            groups = _neighbourhoods(view, order)
            largest = max(len(near) for near, _ in groups)
            if 2**largest > most:
                raise TooManyCoalitionsError(2**largest)
            terms = Terms(view, request.known, most)
            for near, owners in groups:
                self._enumerate(terms, near, owners)
            terms.count()
            return terms.design(order)

        def draw(order: int) -> LinearDesign | NeighbourhoodDraws:
            return self._draw(order, view, request)

        return affordable_or_drawn(self.order, make, draw, request, view.graph.is_covered)

    def solve(self, design: LinearDesign | NeighbourhoodDraws, values: ValueArray) -> Solution:
        """Weigh the values; average over orders where they were drawn, errors from their spread."""
        if isinstance(design, NeighbourhoodDraws):
            return design.solution(values)
        return solve_linear(design, values)

    def shortfall(self, design: Design, request: DesignRequest) -> str | None:
        """Return why "auto" came down to order 0."""
        needed = least_draws(request.n_players, request.needs_errors)
        return reason_for_first(self.order, design, 0, needed)

    def _enumerate(self, terms: Terms, near: IntArray, owners: IntArray) -> None:
        """Add the Shapley values of `owners` in the game among the active players `near`."""
        n_near = len(near)
        terms.check_memory(2**n_near, n_near + len(owners))
        members = all_coalitions(n_near)
        present, absent = size_weights(n_near)
        sizes = members.sum(axis=1)[:, None]
        is_in = members[:, np.searchsorted(near, owners)]
        shares = np.where(is_in, present[sizes], -absent[sizes])
        terms.add(terms.coalitions(near, members, self.context == "kept"), shares, owners)

    def _draw(self, order: int, view: GraphView, request: DesignRequest) -> NeighbourhoodDraws:
        check_least(order, request.n_players, request)
        # What an equal share of the budget pays for is enumerated: it costs no more than draws.
        share = max(4, (request.budget - 2) // request.n_players)
        terms = Terms(view, request.known, MOST_COALITIONS)
        near_of = {}
        for near, owners in _neighbourhoods(view, order):
            if 2 ** len(near) <= share:
                self._enumerate(terms, near, owners)
            else:
                near_of.update(dict.fromkeys(owners.tolist(), near))
        drawn = {owner: near_of[owner] for owner in sorted(near_of)}
        kept = self.context == "kept"
        neighbourhoods = Neighbourhoods(order, drawn, terms.design(order), terms, kept)
        return neighbourhoods.draw(_predecessors, request)


def _neighbourhoods(view: GraphView, order: int) -> list[tuple[IntArray, IntArray]]:
    """Return the active players of each neighbourhood, and the active nodes whose it is."""
    is_active = np.zeros(view.graph.n_players, dtype=bool)
    is_active[view.players] = True
    owners_of: dict[tuple[int, ...], list[int]] = {}
    for node in view.players.tolist():
        near = view.graph.neighbourhood(node, order)
        owners_of.setdefault(tuple(np.sort(near[is_active[near]]).tolist()), []).append(node)
    return [(np.array(near), np.array(owners)) for near, owners in owners_of.items()]


def _predecessors(owner: int, nodes: IntArray, ranks: IntArray) -> Samples:
    """Return who is before a node, with and without it, in orders and their reverses."""
    is_owner = nodes == owner
    own = ranks[:, is_owner]
    before, after = ranks < own, ranks > own  # (n, L)
    units = np.stack([before | is_owner, before, after | is_owner, after], axis=1)
    return Samples(
        units.reshape(-1, len(nodes)),
        np.tile([0.5, -0.5, 0.5, -0.5], len(ranks)),
        np.repeat(np.arange(len(ranks)), 4),
    )

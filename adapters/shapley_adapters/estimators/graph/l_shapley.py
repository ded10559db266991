"""L-Shapley: the Shapley value of the game among the players of a neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...arguments import checked_choice
from ...array_types import IntArray
from ...coalitions.tables import all_coalitions, size_weights
from ..protocol import Declaration, DesignRequest, GraphView
from .linear_design import (
    LinearDesign,
    LinearDesignBuilder,
    LinearEstimator,
    TooManyCoalitionsError,
    check_memory_of_draws,
)
from .neighbourhood_draws import (
    NeighbourhoodDraws,
    NeighbourhoodSampler,
    Samples,
    approximate_minimum,
    check_minimum,
)
from .order_selection import MAX_COALITIONS, checked_order, enumerate_or_draw, with_shortfall

CONTEXTS = ("removed", "kept")


@dataclass(frozen=True)
class LShapley(LinearEstimator):
    """L-Shapley values: each feature's Shapley value among its neighbours on a graph.

    For features with neighbours, such as words, pixels or atoms, if features that are far apart
    hardly interact. The value of feature i is its Shapley value in the game of the features within
    `order` edges (Chen et al., L-Shapley and C-Shapley, ICLR 2019, Definition 1). Attributions do
    not sum to the difference of the outputs unless the order covers the graph. The cost depends on
    order and graph: 2^(2k) evaluations per word for order k on a text. Without a budget, a given
    order may need up to 65,536 evaluations per row. If the order costs more than the budget, random
    orders of the large neighbourhoods are drawn (4.3.1). This is unbiased for the L-Shapley value
    of that order, and has standard errors. Everything else is exact, with standard errors of 0.
    `last_estimate.orders` holds the order used.

    Parameters
    ----------
    order : int or "auto"
        The largest distance of considered features, in edges. By default the largest order that the
        budget allows, and at least 1; if order 1 costs more, random orders are drawn. If the budget
        does not allow these either, the order is 0, with a warning.
    context : {"removed", "kept"}
        Whether features outside the neighbourhood are absent, as in the paper, or present, as in
        the authors' code.
    """

    declaration: ClassVar[Declaration | None] = Declaration("L-Shapley", "graph")

    order: int | str = "auto"
    context: str = "removed"

    def __post_init__(self) -> None:
        checked_order(self.order)
        checked_choice("context", self.context, CONTEXTS)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one unit per player, or of two, and the empty and full coalition."""
        return (8 if with_errors else 4) * n_players + 2

    def design(self, request: DesignRequest) -> LinearDesign | NeighbourhoodDraws:
        """Enumerate the neighbourhoods, or draw orders of those that are too large."""
        view = request.required_graph_view
        if self.order == "auto":  # the order increases until the budget is spent
            check_memory_of_draws(request.n_players, request.budget, 0)

        def enumerate_all(order: int, limit: int) -> LinearDesign | NeighbourhoodDraws:
            groups = _neighbourhoods(view, order)
            largest = max(len(nodes) for nodes, _ in groups)
            if 2**largest > limit:
                raise TooManyCoalitionsError(2**largest)
            builder = LinearDesignBuilder(view, request.known, limit)
            for nodes, owners in groups:
                self._enumerate(builder, nodes, owners)
            builder.count()
            return builder.design(order)

        def draw(order: int) -> LinearDesign | NeighbourhoodDraws:
            return self._draw(order, view, request)

        covers = view.graph.is_covered
        design = enumerate_or_draw(self.order, enumerate_all, draw, request, covers)
        needed = approximate_minimum(request.n_players, request.needs_errors)
        return with_shortfall(self.order, design, 0, needed)

    def _enumerate(self, builder: LinearDesignBuilder, nodes: IntArray, owners: IntArray) -> None:
        """Add the Shapley values of `owners` in the game among the active players `nodes`."""
        n_nodes = len(nodes)
        builder.check_memory(2**n_nodes, n_nodes + len(owners))
        members = all_coalitions(n_nodes)
        present, absent = size_weights(n_nodes)
        sizes = members.sum(axis=1)[:, None]
        has_owner = members[:, np.searchsorted(nodes, owners)]
        shares = np.where(has_owner, present[sizes], -absent[sizes])
        builder.add(builder.coalitions(nodes, members, self.context == "kept"), shares, owners)

    def _draw(self, order: int, view: GraphView, request: DesignRequest) -> NeighbourhoodDraws:
        check_minimum(order, request.n_players, request)
        # A neighbourhood within an equal share of the budget is enumerated: draws cost no less.
        share = max(4, (request.budget - 2) // request.n_players)
        builder = LinearDesignBuilder(view, request.known, MAX_COALITIONS)
        large: dict[int, IntArray] = {}
        for nodes, owners in _neighbourhoods(view, order):
            if 2 ** len(nodes) <= share:
                self._enumerate(builder, nodes, owners)
            else:
                large.update(dict.fromkeys(owners.tolist(), nodes))
        sampler = NeighbourhoodSampler(
            order,
            {owner: large[owner] for owner in sorted(large)},
            builder.design(order),
            builder,
            self.context == "kept",
        )
        return sampler.draw(_predecessors, request)


def _neighbourhoods(view: GraphView, order: int) -> list[tuple[IntArray, IntArray]]:
    """Return the active players of each neighbourhood, and the nodes that it belongs to."""
    is_active = np.zeros(view.graph.n_players, dtype=bool)
    is_active[view.players] = True
    owners_of: dict[tuple[int, ...], list[int]] = {}
    for node in view.players.tolist():
        nodes = view.graph.neighbourhood(node, order)
        owners_of.setdefault(tuple(np.sort(nodes[is_active[nodes]]).tolist()), []).append(node)
    return [(np.array(nodes), np.array(owners)) for nodes, owners in owners_of.items()]


def _predecessors(owner: int, nodes: IntArray, ranks: IntArray) -> Samples:
    """Return the nodes before a node, with and without it, in orders and their reverses."""
    is_owner = nodes == owner
    owner_rank = ranks[:, is_owner]
    before, after = ranks < owner_rank, ranks > owner_rank  # (n, L)
    units = np.stack([before | is_owner, before, after | is_owner, after], axis=1)
    return Samples(
        units.reshape(-1, len(nodes)),
        np.tile([0.5, -0.5, 0.5, -0.5], len(ranks)),
        np.repeat(np.arange(len(ranks)), 4),
    )

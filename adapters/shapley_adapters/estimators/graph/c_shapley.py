"""C-Shapley: marginal contributions to connected sets within a neighbourhood."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from ...arguments import checked_choice
from ...array_types import BoolArray, FloatArray, IntArray, ValueArray
from ...graphs.connected_sets import (
    Part,
    as_numbers,
    as_rows,
    component_around,
    components_of,
    connected_sets,
    n_sets_at_least,
    part_of,
)
from ...graphs.set_weights import set_weights
from ..protocol import Design, DesignRequest, Estimator, GraphView, Solution
from .linear_design import LinearDesign, Terms, TooManyCoalitionsError, solve_linear
from .neighbourhood_draws import (
    NeighbourhoodDraws,
    Neighbourhoods,
    Samples,
    check_least,
    least_draws,
)
from .order_selection import (
    MOST_COALITIONS,
    affordable,
    affordable_or_drawn,
    checked_order,
    reason_for_first,
)

WEIGHTINGS = ("myerson", "paper")
CONTEXTS = ("removed", "kept")
MARGINALS = ("removal", "components")


@dataclass(frozen=True)
class CShapley(Estimator[Any]):
    """C-Shapley of order k, Chen et al., 2019, Definition 2 (Eq. 6), on any graph.

    φ_i = Σ_U c(U) (v(U) − v(U∖i)) over the connected sets U ∋ i within k edges of i. Not
    efficient: an approximation of the Shapley value of games in which players that are far apart,
    or apart in the coalition, do not interact. There it is exact.

    Where the order costs more than the budget, the sets of small neighbourhoods are listed, and of
    the others random orders and their reverses are drawn: when i arrives, U is the component of i
    among the players of the neighbourhood that have arrived. The chance of a set is its weight
    c(U), so that the draws are unbiased for the C-Shapley value of that order. They come with
    standard errors; what is listed is exact, with standard errors of 0.

    Parameters
    ----------
    order : int or "auto"
        How many edges away players are considered, the same number for all of them. "auto" is the
        largest order whose coalitions the budget pays for, and at least 1: where order 1 costs
        more, it is drawn. Only where the budget does not pay for that is the order 0.
    weighting : {"myerson", "paper"}
        With u nodes in U and b next to it in the neighbourhood, c(U) is
        (u − 1)! b! / (u + b)!, for which additive games come out exactly on every graph; or the
        paper's 2 / (u (u + 1) (u + 2)), which is the same for b = 2, as in the middle of a line.
        The paper's weights are no probabilities, so that nothing is drawn with them.
    context : {"removed", "kept"}
        Whether players outside the neighbourhood are absent, as the paper has it, or present.
    marginals : {"removal", "components"}
        Whether a player is paid v(U) − v(U∖i), as the paper has it, or v(U) less what the
        components of U∖i are worth apart. The latter evaluates fewer coalitions, and is the Myerson
        value where the order covers the graph.
    """

    needs_graph: ClassVar[bool] = True

    order: int | str = "auto"
    weighting: str = "myerson"
    context: str = "removed"
    marginals: str = "removal"

    def __post_init__(self) -> None:
        checked_order(self.order)
        checked_choice("weighting", self.weighting, WEIGHTINGS)
        checked_choice("context", self.context, CONTEXTS)
        checked_choice("marginals", self.marginals, MARGINALS)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of order 0: single players and the end points."""
        del with_errors
        return n_players + 2

    def design(self, request: DesignRequest) -> LinearDesign | NeighbourhoodDraws:
        """List the connected sets of each neighbourhood, or draw some where they are too many."""
        view = request.required_graph_view

        def make(order: int, most: int) -> LinearDesign | NeighbourhoodDraws:
            return self._of_order(order, view, Terms(view, request.known, most))

        def draw(order: int) -> LinearDesign | NeighbourhoodDraws:
            return self._draw(order, view, request)

        covers = view.graph.is_covered
        if self.weighting == "paper":
            return affordable(self.order, make, request, 0, covers)
        return affordable_or_drawn(self.order, make, draw, request, covers)

    def solve(self, design: LinearDesign | NeighbourhoodDraws, values: ValueArray) -> Solution:
        """Weigh the values; average over orders where they were drawn, errors from their spread."""
        if isinstance(design, NeighbourhoodDraws):
            return design.solution(values)
        return solve_linear(design, values)

    def shortfall(self, design: Design, request: DesignRequest) -> str | None:
        """Return why "auto" came down to order 0."""
        needed = least_draws(len(self._owners(request.required_graph_view)), request.needs_errors)
        if self.weighting == "paper":
            needed = f"more than {request.budget} evaluations, with weighting='myerson' {needed}"
        return reason_for_first(self.order, design, 0, needed)

    def _of_order(self, order: int, view: GraphView, terms: Terms) -> LinearDesign:
        # Sets that differ in null players alone are one coalition.
        left = min(8 * terms.most, sys.maxsize - 1)
        owners = self._owners(view)
        hub = owners[np.argmax(view.graph.degrees[owners])]
        _check_number(part_of(view.graph, view.graph.neighbourhood(int(hub), order)), terms)
        for owner in owners.tolist():
            part = part_of(view.graph, view.graph.neighbourhood(owner, order))
            if not terms.is_active[part.nodes].any():
                continue
            _check_number(part, terms)
            sets = terms.listed(connected_sets(part.links), left, len(part.nodes))
            left -= len(sets)
            self._add(terms, part, sets)
        terms.count()
        return terms.design(order)

    def _draw(self, order: int, view: GraphView, request: DesignRequest) -> NeighbourhoodDraws:
        check_least(order, request.n_players, request)
        # What an equal share of the budget pays for is enumerated: it costs no more than draws.
        terms = Terms(view, request.known, MOST_COALITIONS)
        near = [view.graph.neighbourhood(owner, order) for owner in self._owners(view).tolist()]
        parts = [part_of(view.graph, nodes) for nodes in near if terms.is_active[nodes].any()]
        share = max(4, (request.budget - 2) // len(parts))
        drawn = {}
        for part in parts:
            sets: list[tuple[int, int]] = []
            if n_sets_at_least(part, terms.is_active[part.nodes], is_rooted=True) <= share:
                sets = list(islice(connected_sets(part.links), share))
            if 0 < 2 * len(sets) <= share:  # each set is evaluated without the owner, too
                self._add(terms, part, sets)
            else:
                drawn[int(part.nodes[0])] = part
        nodes_of = {owner: part.nodes for owner, part in drawn.items()}
        kept = self.context == "kept"
        neighbourhoods = Neighbourhoods(order, nodes_of, terms.design(order), terms, kept)

        def sampler(owner: int, _: IntArray, ranks: IntArray) -> Samples:
            return self._components_on_arrival(drawn[owner], ranks)

        return neighbourhoods.draw(sampler, request)

    def _owners(self, view: GraphView) -> IntArray:
        """Return the nodes that may get something."""
        # A null player adds nothing to any set, but without it components fall apart.
        if self.marginals == "removal":
            return view.players
        return np.arange(view.graph.n_players, dtype=np.intp)

    def _components_on_arrival(self, part: Part, ranks: IntArray) -> Samples:
        """Return the sets that the first node of a part completes in orders and their reverses.

        In a random order of the neighbourhood, the component of the node and those before it is U
        with the chance (u − 1)! b! / (u + b)!, its weight. What the node adds to it is thus
        unbiased.
        """
        own = ranks[:, :1]
        arrived = np.stack([ranks <= own, ranks >= own], axis=1).reshape(-1, ranks.shape[1])
        sets = [component_around(part.links, 0, one) for one in as_numbers(arrived)]
        members, shares, of_set = self._marginals(part, sets, np.full(len(sets), 0.5))
        in_turn = np.argsort(of_set, kind="stable")
        return Samples(members[in_turn], shares[in_turn], of_set[in_turn] // 2)

    def _add(self, terms: Terms, part: Part, sets: list[tuple[int, int]]) -> None:
        """Add the marginal contributions of the part's first node."""
        members = as_rows([one for one, _ in sets], len(part.nodes))
        sizes = members.sum(axis=1)
        if self.weighting == "myerson":
            weights = set_weights(sizes, np.array([one.bit_count() for _, one in sets]))
        else:
            weights = 2 / (sizes * (sizes + 1.0) * (sizes + 2.0))
        paid, shares, _ = self._marginals(part, [one for one, _ in sets], weights)
        coalitions = terms.coalitions(part.nodes, paid, rest=self.context == "kept")
        terms.add(coalitions, shares[:, None], part.nodes[:1])

    def _marginals(
        self, part: Part, sets: Sequence[int], weights: FloatArray
    ) -> tuple[BoolArray, FloatArray, IntArray]:
        """Return what the part's first node is paid for joining the rest of each set.

        Returns
        -------
        members : array, (n, L)
            Sets of nodes of the part.
        shares : array, (n,)
            How much the value of each counts.
        of_set : array, (n,)
            The set that each is there for.
        """
        members, number = as_rows(sets, len(part.nodes)), np.arange(len(sets))
        if self.marginals == "removal":
            without = members.copy()
            without[:, 0] = False
            parts, lost, of_part = without, -weights, number
            back = np.zeros(len(sets))
        else:
            split = [list(components_of(part.links, one & ~1)) for one in sets]
            counts = np.array([len(pieces) for pieces in split], dtype=np.intp)
            parts = as_rows([piece for of_one in split for piece in of_one], len(part.nodes))
            lost, of_part = -np.repeat(weights, counts), np.repeat(number, counts)
            back = weights * (counts - 1)
        is_back = back != 0
        nobody = np.zeros((int(is_back.sum()), len(part.nodes)), dtype=bool)
        return (
            np.concatenate([members, parts, nobody]),
            np.concatenate([weights, lost, back[is_back]]),
            np.concatenate([number, of_part, number[is_back]]),
        )


def _check_number(part: Part, terms: Terms) -> None:
    """Refuse a neighbourhood of too many sets before they are listed."""
    n_least = n_sets_at_least(part, terms.is_active[part.nodes], is_rooted=True)
    if n_least > terms.most:
        raise TooManyCoalitionsError(n_least)

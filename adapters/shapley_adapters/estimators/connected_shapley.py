"""C-Shapley: marginal contributions to connected sets within a neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from ..arguments import checked_choice
from ..array_types import ValueArray
from ..connected_sets import Part, as_rows, components_of, connected_sets, part_of
from ..designs import DesignRequest, GraphPlace, OnGraph, Solution
from ..linear_designs import (
    LinearDesign,
    Terms,
    TooManyCoalitionsError,
    solve_linear,
)
from ..orders import affordable, checked_order
from ..set_weights import set_weights

WEIGHTINGS = ("myerson", "paper")
CONTEXTS = ("removed", "kept")
MARGINALS = ("removal", "components")


@dataclass(frozen=True)
class CShapley(OnGraph):
    """C-Shapley of order k, Chen et al., 2019, Definition 2 (Eq. 6), on any graph.

    φ_i = Σ_U c(U) (v(U) − v(U∖i)) over the connected sets U ∋ i within k edges of i. Deterministic,
    without standard errors. Not efficient: an approximation of the Shapley value of games in which
    players that are far apart, or apart in the coalition, do not interact. There it is exact.

    Parameters
    ----------
    order : int or "auto"
        How many edges away players are considered; the largest that the budget pays for.
    weighting : {"myerson", "paper"}
        With u nodes in U and b next to it in the neighbourhood, c(U) is
        (u − 1)! b! / (u + b)!, for which additive games come out exactly on every graph; or the
        paper's 2 / (u (u + 1) (u + 2)), which is the same for b = 2, as in the middle of a line.
    context : {"removed", "kept"}
        Whether players outside the neighbourhood are absent, as the paper has it, or present.
    marginals : {"removal", "components"}
        Whether a player is paid v(U) − v(U∖i), as the paper has it, or v(U) less what the
        components of U∖i are worth apart. The latter evaluates fewer coalitions, and is the Myerson
        value where the order covers the graph.
    """

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

    def design(self, request: DesignRequest) -> LinearDesign:
        """List the connected sets of each neighbourhood, each coalition once."""
        place = request.on_graph

        def make(order: int, most: int) -> LinearDesign:
            return self._of_order(order, place, Terms(place, request.known, most))

        return affordable(self.order, make, request, 0, place.graph.is_covered)

    def solve(self, design: LinearDesign, values: ValueArray) -> Solution:
        """Weigh the values."""
        return solve_linear(design, values)

    def _of_order(self, order: int, place: GraphPlace, terms: Terms) -> LinearDesign:
        # A null player adds nothing to any set, but without it components fall apart.
        owners = (
            place.players
            if self.marginals == "removal"
            else np.arange(place.graph.n_players, dtype=np.intp)
        )
        left = 8 * terms.most  # sets that differ in null players alone are one coalition
        for owner in owners:
            part = part_of(place.graph, place.graph.neighbourhood(owner, order))
            if not terms.is_active[part.nodes].any():
                continue
            sets = list(islice(connected_sets(part.links), left + 1))
            left -= len(sets)
            if left < 0:
                raise TooManyCoalitionsError(terms.most)
            self._add(terms, part, sets)
        terms.count()
        return terms.design(order)

    def _add(self, terms: Terms, part: Part, sets: list[tuple[int, int]]) -> None:
        """Add the marginal contributions of the part's first node."""
        members = as_rows([one for one, _ in sets], len(part.nodes))
        sizes = members.sum(axis=1)
        if self.weighting == "myerson":
            weights = set_weights(sizes, np.array([one.bit_count() for _, one in sets]))
        else:
            weights = 2 / (sizes * (sizes + 1.0) * (sizes + 2.0))
        if self.marginals == "removal":
            without = members.copy()
            without[:, 0] = False
            paid, shares = np.concatenate([members, without]), np.concatenate([weights, -weights])
        else:
            split = [list(components_of(part.links, one & ~1)) for one, _ in sets]
            counts = np.array([len(pieces) for pieces in split])
            pieces = as_rows([piece for of_set in split for piece in of_set], len(part.nodes))
            nobody = np.zeros((1, len(part.nodes)), dtype=bool)
            paid = np.concatenate([members, pieces, nobody])
            lost = -np.repeat(weights, counts)
            shares = np.concatenate([weights, lost, [(weights * (counts - 1)).sum()]])
        coalitions = terms.coalitions(part.nodes, paid, rest=self.context == "kept")
        terms.add(coalitions, shares[:, None], part.nodes[:1])

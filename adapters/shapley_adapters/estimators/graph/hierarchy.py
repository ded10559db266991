"""Owen values of a hierarchy of players, exact or from random orders that are refined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from ...array_types import FloatArray, IntArray, ValueArray
from ...errors import BudgetError
from ...hierarchies.player_tree import Unions
from ..protocol import DesignRequest, Estimator, GraphView, Solution
from ..value_errors import ValueErrors
from .linear_design import LinearDesign, LinearDesignBuilder
from .nested_orders import NestedOrders, Refinement, first_order
from .order_selection import MAX_COALITIONS
from .owen_terms import n_coalitions, owen_terms
from .union_moments import UnionMoments

_FEWEST_PAIRS = 2
"""Pairs of orders from which errors are known."""

_PAIRS_PER_ROOT = 0.2
"""Pairs of orders of a tree that is too large for its players, over the root of the budget: 4 with
500 evaluations, 8 with 2,000. Each has errors of a tenth more with half or twice as many (texts of
256 words, images of 32 × 32)."""


@dataclass(frozen=True)
class Hierarchy(Estimator[Any]):
    """Owen values of a tree of players (Owen, 1977; for more levels Winter, 1989).

    The value of a player is its mean contribution over all orders in which the players of each
    union are together. Where the budget pays for all coalitions of these orders, it is exact.
    Elsewhere orders are drawn, each with its reverse. If the budget does not pay for all players in
    two pairs of orders, unions are split from the top, those first whose players are known least.
    Players of a union that is not split share its value equally; their errors hold how far they are
    expected to be from it, by how squares of contributions fell in the splits.
    """

    needs_graph: ClassVar[bool] = True
    has_unions: ClassVar[bool] = True

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of two unions at the top; the design knows that of the tree."""
        del n_players, with_errors
        return 4

    def memory(self, n_players: int, budget: int) -> int:
        """Return the bytes of the coalitions, in a table, in parts and in a batch."""
        return 3 * budget * n_players

    def design(self, request: DesignRequest) -> NestedOrders | LinearDesign:
        """List all coalitions, or draw orders of all players, or of the unions at the top."""
        view = request.required_graph_view
        unions = view.graph.unions(view.players)
        if n_coalitions(unions) <= min(request.budget, MAX_COALITIONS):
            return _all_terms(view, unions, request)
        n_known, n_steps = len(request.known), int(unions.n_parts[0]) - 1
        needed = 2 * _FEWEST_PAIRS * n_steps + n_known
        if needed > request.budget:
            raise BudgetError(
                f"needs at least {needed} evaluations for two orders of the {n_steps + 1} unions "
                "at the top of the hierarchy and their reverses. Put them into larger unions, or "
                "raise the budget.",
                needed,
            )
        n_offered = (request.planned - n_known) // 2
        can_be_whole = n_offered >= _FEWEST_PAIRS * (len(unions.order) - 1)
        n_pairs = _FEWEST_PAIRS
        if not can_be_whole:
            wanted = min(int(_PAIRS_PER_ROOT * np.sqrt(request.planned)), n_offered // n_steps)
            n_pairs = max(n_pairs, wanted)
        refinement = Refinement(first_order(request, unions, n_pairs))
        if not can_be_whole:
            refinement.split(0)
            return refinement.design()
        for union in np.flatnonzero(unions.n_parts).tolist():
            refinement.split(union)
        # Coalitions of several orders are evaluated once, which leaves evaluations for more.
        for _ in range(2 * request.budget // len(unions.order)):
            if not refinement.add_pair():
                break
        return refinement.design()

    def chosen_designs(
        self, design: NestedOrders, values: ValueArray
    ) -> list[tuple[IntArray, NestedOrders]]:
        """Return the design of each row with the next unions split."""
        moments = UnionMoments.from_values(design, values)
        chosen = []
        for row, unknown in enumerate(moments.unknown_sums()):
            refinement = Refinement(design)
            refinement.split_best(unknown)
            chosen.append((np.array([row]), refinement.design()))
        return chosen

    def solve(self, design: NestedOrders | LinearDesign, values: ValueArray) -> Solution:
        """Average the contributions of unions, and share them equally between their players."""
        if isinstance(design, LinearDesign):
            return _alone(design.solution(values), design)
        return _shared(design, values, np.zeros(()))

    def solve_with_errors(
        self, design: NestedOrders | LinearDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Do the same, and add the variances of the errors that the spread does not show."""
        if isinstance(design, LinearDesign):
            added = design.added_variances(errors)
            return _alone(design.solution(values).with_variances(added), design)
        units, n_pairs = (
            design.unit_weights(np.flatnonzero(~design.is_split)),
            len(design.pair_ends),
        )
        n_unions = units.shape[0] // n_pairs
        means = scipy.sparse.kron(scipy.sparse.eye(n_unions), np.full((1, n_pairs), 1 / n_pairs))
        none = scipy.sparse.csr_matrix((n_unions, units.shape[1]))
        added = errors.beside_spread(units, means.tocsr(), none, design.table.coalitions[0])
        return _shared(design, values, added)


def _shared(design: NestedOrders, values: ValueArray, added: FloatArray) -> Solution:
    """Return equal shares of the values of unions; `added` is added to the variances of these."""
    moments = UnionMoments.from_values(design, values)
    sizes, place = moments.sizes[:, None], design.places_of_players(moments.unsplit)
    variances = moments.variances + added
    noise, unknown = variances / sizes**2, moments.unknown
    with np.errstate(divide="ignore", invalid="ignore"):
        # Satterthwaite, for the spread between orders and the decay found in the splits
        squares = noise**2 / moments.freedom + unknown**2 / moments.n_splits
        freedom = np.where(squares > 0, (noise + unknown) ** 2 / squares, np.inf)
    every = design.of_all_players
    first_players = np.array([design.players_in(place).min() for place in moments.unsplit])
    nodes = np.full(design.view.graph.n_players, -1)
    nodes[design.view.players] = design.view.players[first_players[place]]
    return Solution(
        every((moments.means / sizes)[:, place]),
        every(np.sqrt(noise + unknown)[:, place]),
        every(freedom[:, place], np.inf),
        unions=np.tile(nodes, (len(values), 1)),
        union_errors=every(np.sqrt(variances)[:, place]),
    )


def _all_terms(view: GraphView, unions: Unions, request: DesignRequest) -> LinearDesign:
    """Return the design of all coalitions in which the players of each union are together."""
    builder = LinearDesignBuilder(view, request.known, MAX_COALITIONS)
    for player, before, weights in owen_terms(unions):
        node, after = view.players[[player]], before.copy()
        after[:, player] = True
        builder.add(before, -weights[:, None], node)
        builder.add(after, weights[:, None], node)
    return builder.design()


def _alone(solution: Solution, design: LinearDesign) -> Solution:
    """Return a solution in which each player with a value is a union of its own."""
    nodes = np.arange(design.operator.shape[0])
    has_value = np.diff(design.operator.indptr) > 0
    unions = np.tile(np.where(has_value, nodes, -1), (len(solution.values), 1))
    return replace(solution, unions=unions, union_errors=solution.standard_errors)

"""Owen values of a hierarchy of players, exact or from random orders that are refined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import factorial
from typing import Any, ClassVar

import numpy as np

from ...array_types import CoalitionArray, FloatArray, IntArray, ValueArray
from ...coalitions.tables import all_coalitions
from ...errors import BudgetError
from ...hierarchies.player_tree import Unions
from ..protocol import Declaration, DesignRequest, Estimator, GraphView, Solution
from ..value_errors import ValueErrors
from .context_model import ContextModel
from .linear_design import LinearDesign, LinearDesignBuilder
from .order_selection import MAX_COALITIONS
from .union_contexts import Growth, UnionContexts, first_contexts


@dataclass(frozen=True)
class Hierarchy(Estimator[Any]):
    """Owen values of nested groups: words in sentences and paragraphs, or pixels in squares.

    The value of a feature is its mean contribution over all orders in which the features of each
    union stay together (Owen, 1977; for more than two levels Winter, 1989). If the budget pays for
    all coalitions of these orders, values are exact. Otherwise the unions at the top are put in an
    order and its reverse, and then, where most is unknown, the parts of unions in their places. The
    features of a union that is not split share its value equally. A union that is split in some
    places gets predicted values in the others: values are biased by these, and errors hold how far
    they may be off. By default the budget is at most 1,008 evaluations. The values of each union
    sum to its own value, and all of them to the difference of the outputs with all features and
    with none. `last_estimate.unions` holds the unions that are not split, and
    `last_estimate.union_errors` the errors of their values. In shap, `hierarchical_values` and
    `clustering` of the Explanation hold the tree of texts, of images and of maskers with a
    clustering, so that `shap.plots.text` shows unions that are not split as phrases.
    """

    declaration: ClassVar[Declaration | None] = Declaration("hierarchy", "hierarchy")
    needs_graph: ClassVar[bool] = True
    has_unions: ClassVar[bool] = True

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of two unions at the top; the design knows that of the tree."""
        del n_players, with_errors
        return 4

    def memory(self, n_players: int, budget: int) -> int:
        """Return the bytes of the coalitions, in a table, in parts and in a batch."""
        return 3 * budget * n_players

    def design(self, request: DesignRequest) -> UnionContexts | LinearDesign:
        """List all coalitions, or draw two orders of the unions at the top."""
        view = request.required_graph_view
        unions = view.graph.unions(view.players)
        if n_coalitions(unions) <= min(request.budget, MAX_COALITIONS):
            return _all_terms(view, unions, request)
        n_top = int(unions.n_parts[0])
        needed = 2 * (n_top - 1) + len(request.known)
        if needed > request.budget:
            raise BudgetError(
                f"needs at least {needed} evaluations for an order of the {n_top} unions at the "
                "top of the hierarchy and its reverse. Put them into larger unions, or raise the "
                "budget.",
                needed,
            )
        return first_contexts(request, unions)

    def chosen_designs(
        self, design: UnionContexts, values: ValueArray
    ) -> list[tuple[IntArray, UnionContexts]]:
        """Return the design of each row with more orders of the contexts that gain most."""
        n_rows, _, n_outputs = values.shape
        gains = ContextModel(design, _games(values)).gains()
        of_rows = gains.reshape(-1, n_rows, n_outputs).sum(axis=2)
        chosen = []
        for row in range(n_rows):
            growth = Growth(design)
            growth.add_best(of_rows[:, row])
            chosen.append((np.array([row]), growth.design()))
        return chosen

    def solve(self, design: UnionContexts | LinearDesign, values: ValueArray) -> Solution:
        """Add what split contexts observe of each player, and what is predicted of the others."""
        if isinstance(design, LinearDesign):
            return _alone(design.solution(values), design)
        return _solution(design, values, np.zeros((1, len(design.unions.starts), 1)))

    def solve_with_errors(
        self, design: UnionContexts | LinearDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Do the same, and add the variances of the errors of the values.

        The spread between orders and contexts shows some of them already, so that intervals are too
        long by a fifth where these errors are the largest.
        """
        if isinstance(design, LinearDesign):
            added = design.added_variances(errors)
            return _alone(design.solution(values).with_variances(added), design)
        added = errors.sum_variances(design.value_weights, design.table.coalitions[0])
        return _solution(design, values, added)


def _games(values: ValueArray) -> FloatArray:
    """Return values, (R, C, K), with rows and outputs as games, (C, R K)."""
    return values.transpose(1, 0, 2).reshape(values.shape[1], -1).astype(np.float64)


def _solution(design: UnionContexts, values: ValueArray, added: FloatArray) -> Solution:
    """Return the values of players; those in a union that is not split share its value.

    `added`, (R, U, K), is added to the variances of the values of unions.
    """
    n_rows, _, n_outputs = values.shape
    model, unions = ContextModel(design, _games(values)), design.unions
    is_player = unions.n_parts == 0
    leaves = np.empty(len(unions.order), dtype=np.intp)
    leaves[unions.order[unions.starts[is_player]]] = np.flatnonzero(is_player)
    shared = np.arange(len(unions.starts))  # the first union above each that is not split
    for parents, parts in unions.levels:
        is_whole = model.n_split[parents] == 0
        shared[parts[is_whole]] = shared[parents[is_whole]]

    def of_rows(of_games: FloatArray) -> FloatArray:
        return of_games.reshape(-1, n_rows, n_outputs).transpose(1, 0, 2)

    errors = np.sqrt(of_rows(model.variances()) + added)
    n_players = len(leaves)
    first_players = np.full(len(shared), n_players)
    np.minimum.at(first_players, shared[leaves], np.arange(n_players))
    nodes = np.full(design.view.graph.n_players, -1)
    nodes[design.view.players] = design.view.players[first_players[shared[leaves]]]
    return Solution(
        design.of_all_players(of_rows(model.values)[:, leaves]),
        design.of_all_players(errors[:, leaves]),
        model.freedom,
        unions=np.tile(nodes, (n_rows, 1)),
        union_errors=design.of_all_players(errors[:, shared[leaves]]),
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


def n_coalitions(unions: Unions) -> int:
    """Return how many coalitions all orders meet in which the players of each union are together.

    Within a union of k parts, these are all sets of whole parts; and, for each part, the coalitions
    within it beside each of the 2^(k − 1) sets of the other parts.
    """
    inside = [0] * len(unions.starts)
    for union in range(len(inside) - 1, -1, -1):
        parts = unions.parts(union).tolist()
        if parts:
            below = sum(inside[part] for part in parts)
            inside[union] = 2 ** len(parts) - 2 + 2 ** (len(parts) - 1) * below
    return inside[0] + 2


def owen_terms(unions: Unions) -> Iterator[tuple[int, CoalitionArray, FloatArray]]:
    """Yield the terms of each player's value: coalitions without the player, and their weights.

    The value is the weighted sum of what the player adds to these coalitions. In a union of k
    parts, a set of a parts comes before another part with probability a! (k − 1 − a)! / k!, and
    the probabilities of all levels multiply (Winter, 1989; for two levels, Owen, 1977, Eq. 4).

    Yields
    ------
    int, array (n, M), array (n,)
        A player, coalitions without it, and the probability of each.
    """
    n_players = len(unions.order)
    waiting = [(0, np.zeros((1, n_players), dtype=bool), np.ones(1))]
    while waiting:
        union, before, weights = waiting.pop()
        parts = unions.parts(union)
        if not len(parts):
            yield int(unions.players(union)[0]), before, weights
            continue
        members = np.zeros((len(parts), n_players), dtype=bool)
        for row, part in enumerate(parts):
            members[row, unions.players(part)] = True
        k = len(parts)
        of_size = np.array([factorial(a) * factorial(k - 1 - a) / factorial(k) for a in range(k)])
        others = all_coalitions(k - 1)  # sets of the other parts
        of_others = of_size[others.sum(axis=1)]
        for row, part in enumerate(parts):
            beside = others @ np.delete(members, row, axis=0)  # (2^(k−1), M)
            both = (before[:, None] | beside).reshape(-1, n_players)
            waiting.append((int(part), both, np.outer(weights, of_others).ravel()))

"""Shapley values over the orders of players that a partial order allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...array_types import IntArray, ValueArray
from ...coalitions.tables import pack, select_units
from ...errors import BudgetError
from ...graphs.causal_graph import CausalGraph
from ...graphs.linear_extensions import TooManyIdealsError, draw_orders_within, weighted_steps
from ..protocol import Declaration, DesignRequest, GraphView, Solution
from ..value_errors import pooled_mean_and_error
from .linear_design import (
    LinearDesign,
    LinearDesignBuilder,
    LinearEstimator,
    TooManyCoalitionsError,
    check_memory_of_draws,
)
from .myerson import ComponentDraws
from .order_selection import MAX_COALITIONS


@dataclass(frozen=True)
class OrderDraws(ComponentDraws):
    """Random orders, in which each player joins all players before it."""

    def solution(self, values: ValueArray) -> Solution:
        """Return the means over the orders and standard errors of variances that are pooled.

        A player may follow the same players in all of a few orders.
        """
        players = np.sort(self.nodes[0])
        of_players = self.contributions(values)[:, :, players]
        mean, errors, freedom = pooled_mean_and_error(of_players)
        everyone = np.zeros((2, len(values), self.n_nodes, values.shape[2]))
        everyone[:, :, players] = mean, errors
        return Solution(everyone[0], everyone[1], freedom)


@dataclass(frozen=True)
class Asymmetric(LinearEstimator):
    """Asymmetric Shapley values: contributions in causal orderings of the features.

    The value of a feature is its mean contribution over all these orders, each as likely as the
    others (Frye, Rowat and Feige, Asymmetric Shapley Values, NeurIPS 2020). If absent features are
    drawn given the present ones, as by the classes `Gaussian` of both hosts, causes get credit for
    what their effects tell. Attributions sum exactly to the difference of the outputs with all
    features and with none. If the budget pays for all coalitions that begin such orders, they are
    exact; otherwise orders are drawn, which is unbiased. Trees, lists of lists and their
    combinations may have any number of features. Other partial orders may have 65,536 sets of
    features that hold the causes of all of them; more are refused. No other estimator has these
    values: others weight coalitions by their size, or pair them with their complements, which is
    right for the Shapley value alone.
    """

    declaration: ClassVar[Declaration | None] = Declaration("asymmetric", "causes")

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of an order, or of two to estimate standard errors."""
        return 2 * n_players if with_errors else n_players + 1

    def design(self, request: DesignRequest) -> LinearDesign | OrderDraws:
        """List all coalitions that begin an order, or draw orders."""
        view = request.required_graph_view
        try:
            return _all_terms(view, request)
        except (TooManyIdealsError, TooManyCoalitionsError):
            return _drawn(view, request)


def _all_terms(view: GraphView, request: DesignRequest) -> LinearDesign:
    graph: CausalGraph = view.graph
    limit = min(request.budget, MAX_COALITIONS)
    builder = LinearDesignBuilder(view, request.known, limit)
    everyone = np.arange(graph.n_players)
    # Several sets of causes and effects may be one coalition of the players that are not null.
    most_ideals = limit if builder.is_active.all() else MAX_COALITIONS
    for ideals, feature, probability in weighted_steps(graph.precedes, most_ideals):
        before = np.tile(ideals, (1, graph.n_players // graph.n_features))
        for players in _players_of(graph, feature[:, None]).T:
            after = before.copy()
            after[np.arange(len(players)), players] = True
            for coalitions, sign in ((before, -1.0), (after, 1.0)):
                for player in np.unique(players[builder.is_active[players]]):
                    own = players == player
                    shares = sign * probability[own, None]
                    members = builder.coalitions(everyone, coalitions[own], False)
                    builder.add(members, shares, np.array([player]))
            before = after
    builder.count()
    return builder.design()


def _drawn(view: GraphView, request: DesignRequest) -> OrderDraws:
    graph: CausalGraph = view.graph
    n_players = request.n_players
    n_offered = 2 * (request.budget // (n_players - 1)) + 2
    check_memory_of_draws(n_players, request.budget, n_offered * n_players)
    features = draw_orders_within(graph.precedes, n_offered, request.rng)
    columns = np.full(graph.n_players, -1)
    columns[view.players] = np.arange(n_players)
    orders = columns[_players_of(graph, features)]
    orders = orders[orders >= 0].reshape(n_offered, n_players)  # without null players
    ranks = np.argsort(orders, axis=1)
    chains = ranks[:, None, :] <= np.arange(n_players)[:, None]
    selection = select_units(request.known, pack(chains)[None], request.budget)
    n_units, n_needed = int(selection.n_units[0]), 2 if request.needs_errors else 1
    if n_units < n_needed:
        needed = n_needed * (n_players - 1) + 2
        raise BudgetError(
            f"needs up to {needed} evaluations for a row of {n_players} players: {n_needed} random "
            f"order{'s, to estimate standard errors' if n_needed > 1 else ''}.",
            needed,
        )
    units, later = np.indices((n_units, n_players - 1)).reshape(2, -1)
    return OrderDraws(
        selection.table,
        selection.positions[0, :n_units],
        view.players[orders[:n_units]],
        np.stack([units, later + 1, later], axis=1),  # each joins the coalition before it
        graph.n_players,
        n_orders=1,
    )


def _players_of(graph: CausalGraph, features: IntArray) -> IntArray:
    """Return the players of features in their order, (n, …), which follow each other."""
    if not graph.is_split:
        return features
    both = np.stack([features, features + graph.n_features], axis=2)
    return both.reshape(len(features), -1)

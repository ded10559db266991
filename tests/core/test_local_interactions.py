"""Interactions of players that are near each other on a graph."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import scipy.stats

import shapley_adapters as core
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.estimators.odd_gp.local_interactions import NearSets
from shapley_adapters.interactions.result import checked_pairs
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import FunctionGame, from_function

M = 14


def ring_sums(seed, n_games=1):
    """Return functions of rows and coalitions that saturate over arcs of a ring, and the ring.

    Each row has its own order of the players around the ring.
    """
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(M) for _ in range(n_games)])
    weights = rng.normal(size=(n_games, M, 3)) * 2

    def value(rows, coalitions):
        at = np.take_along_axis(coalitions, orders[rows], axis=1)
        arcs = np.stack([np.roll(at, -step, axis=1) for step in range(3)], axis=2)
        return np.tanh((arcs * weights[rows]).sum(axis=2)).sum(axis=1)

    graphs = [
        core.PlayerGraph.from_edges(M, np.stack([order, np.roll(order, -1)], axis=1))
        for order in orders
    ]
    return value, graphs


class RowsGame(FunctionGame):
    """A game of several rows, whose function knows the row."""

    def __call__(self, rows, coalitions):
        return self.function(rows, coalitions)[:, None]

    def row_fingerprints(self):
        """Return what tells the rows apart."""
        return [bytes([row]) * 16 for row in range(self.n_rows)]


def estimate(value, graph=None, n_rows=1, per_player=8, **options):
    settings = core.Settings(seed=0, budget=per_player * M, graph=graph, **options)
    game = RowsGame(value, M, n_rows=n_rows)
    return core.estimate(game, core.OddGP(), settings)


@pytest.mark.slow
def test_a_graph_of_the_interactions_lowers_the_error_and_intervals_hold():
    ratios, inside = [], []
    for seed in range(6):
        value, graphs = ring_sums(seed)
        game = from_function(lambda z, of=value: of(np.zeros(len(z), dtype=int), z), M)
        truth = game_shapley_values(game)[0, :, 0]
        without, found = estimate(value), estimate(value, graphs[0])
        errors = [np.linalg.norm(one.values[0, :, 0] - truth) for one in (without, found)]
        ratios.append(errors[1] / errors[0])
        widths = scipy.stats.t.ppf(0.975, found.degrees_of_freedom) * found.standard_errors
        inside.append(np.abs(found.values[0, :, 0] - truth) <= widths[0, :, 0])
    assert np.exp(np.mean(np.log(ratios))) < 0.7
    assert np.mean(inside) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 6 / M)


def test_a_graph_that_says_nothing_changes_nothing():
    """Votes and sums have no interactions of near players; nor has a graph without edges."""
    value, _ = ring_sums(0)

    def additive(rows, coalitions):
        return coalitions @ np.arange(1.0, M + 1)

    for function, graph in (
        (value, core.PlayerGraph(M, np.empty((0, 2), dtype=int))),
        (additive, core.PlayerGraph.ring(M)),
    ):
        with_graph, without = estimate(function, graph), estimate(function)
        np.testing.assert_allclose(with_graph.values, without.values, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "options", [{}, {"independent_rows": True}, {"interactions": checked_pairs("", True)}]
)
def test_each_row_has_its_own_graph(options):
    value, graphs = ring_sums(1, n_games=3)
    together = estimate(value, graphs, n_rows=3, **options)
    wrong = estimate(value, graphs[::-1], n_rows=3, **options)
    for row, graph in enumerate(graphs):

        def of_row(rows, coalitions, row=row):
            return value(np.full_like(rows, row), coalitions)

        if "independent_rows" not in options:  # each row has draws of its own
            alone = estimate(of_row, graph, **options)
            np.testing.assert_allclose(alone.values[0], together.values[row], rtol=0, atol=1e-10)
    assert np.abs(together.values - wrong.values)[[0, 2]].max() > 1e-3
    if "interactions" in options:
        pairs = [one.interactions.values for one in (together, wrong)]
        assert np.abs(pairs[0] - pairs[1])[[0, 2]].max() > 1e-3


def test_players_without_effect_join_the_others():
    """Null players are no players of the design; paths on the graph lead through them."""
    value, graphs = ring_sums(2)
    wide = core.PlayerGraph.from_edges(
        2 * M, [edge for a, b in graphs[0].edges for edge in ((a, b), (b, M + a))]
    )

    active = np.arange(2 * M)[None] < M
    game = RowsGame(lambda rows, z: value(rows, z[:, :M]), 2 * M, active=active)
    settings = core.Settings(seed=0, budget=8 * M, graph=wide)
    found = core.estimate(game, core.OddGP(), settings)
    plain = estimate(value, graphs[0])
    np.testing.assert_allclose(found.values[0, :M], plain.values[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("graph", "edges"),
    [
        (core.PlayerGraph.line(9), nx.path_graph(9).edges),
        (core.PlayerGraph.grid((3, 4)), None),
        (core.PlayerGraph.from_edges(8, [(0, 1), (0, 2), (0, 3), (3, 4), (3, 5), (5, 6)]), None),
    ],
)
def test_lengths_are_those_of_the_shortest_trees(graph, edges):
    """Steiner trees of three terminals, by trying all centres; player 7 is alone."""
    network = nx.Graph(edges or [tuple(edge) for edge in graph.edges])
    network.add_nodes_from(range(graph.n_players))
    steps = dict(nx.all_pairs_shortest_path_length(network))
    expected = {}
    for size in (2, 3):
        for players in combinations(range(graph.n_players), size):
            totals = [
                sum(steps[centre].get(player, np.inf) for player in players)
                for centre in range(graph.n_players)
            ]
            if min(totals) <= 5:
                expected[players] = min(totals)
    found = {}
    for size in (2, 3):
        near = NearSets.from_distances(graph.distances(), size)
        found |= dict(zip(map(tuple, near.players.tolist()), near.lengths, strict=True))
    assert found == expected


def test_many_sets_leave_out_the_longest():
    sizes = [
        len(NearSets.from_distances(graph.distances(), 3).players)
        for graph in (core.PlayerGraph.line(1000), core.PlayerGraph.grid((40, 40)))
    ]
    assert sizes == [998, 0]  # three in a row; on the grid even those are 9,000


@pytest.mark.parametrize(
    "estimator", [core.OddGP(weights="equal"), core.LeastSquares(), core.RandomOrder()]
)
def test_a_graph_that_is_of_no_use_is_refused(estimator):
    settings = core.Settings(seed=0, budget=100, graph=core.PlayerGraph.ring(M))
    game = RowsGame(ring_sums(0)[0], M)
    with pytest.raises(InvalidArgumentError, match="graph is of no use"):
        core.estimate(game, estimator, settings)


def test_graphs_must_fit():
    value, _ = ring_sums(0)
    with pytest.raises(InvalidArgumentError, match="graph has 3 nodes"):
        estimate(value, core.PlayerGraph.line(3))

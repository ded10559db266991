"""Asymmetric Shapley values: orders of a partial order, against enumeration, drawn, bad input."""

from collections import Counter

import numpy as np
import pytest
import scipy.stats

from shapley_adapters import Asymmetric, Settings, estimate
from shapley_adapters.errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.graphs.causal_graph import CausalGraph, read_causal_graph
from shapley_adapters.graphs.linear_extensions import draw_orders_within
from tests.helpers.partial_orders import (
    asymmetric_values,
    edges_of_layers,
    linear_extensions,
    split_values,
)
from tests.helpers.reference_games import TableGame, random_game, smooth_game

N_PLAYERS = 6
ZIGZAG = [(0, 3), (1, 3), (1, 4), (2, 4), (2, 5)]
"""Neither a tree nor made of parts that follow each other, but for its ends."""
PARTIAL_ORDERS = {
    "none": [],
    "chain": [(5, 4), (4, 3), (3, 2), (2, 1), (1, 0)],
    "tree": [(2, 0), (2, 1), (0, 3), (0, 4)],
    "layers": edges_of_layers([[3, 1], [0, 2, 5], [4]]),
    "zigzag": ZIGZAG,
    "zigzag and one": [(0, 2), (1, 2), (1, 3), (4, 0), (4, 1)],
}
each_order = pytest.mark.parametrize("edges", PARTIAL_ORDERS.values(), ids=PARTIAL_ORDERS)


def run(edges, game=None, budget=200, seed=0, is_split=False, **options):
    graph = CausalGraph.from_edges(edges, N_PLAYERS)
    graph = CausalGraph(graph.components, graph.causes, is_split)
    game = random_game(N_PLAYERS, n_outputs=2, seed=3) if game is None else game
    return estimate(game, Asymmetric(), Settings(seed=seed, budget=budget, graph=graph, **options))


@each_order
def test_orders_are_equally_likely(edges):
    """A test of frequencies that a right sampler fails once in a thousand times."""
    precedes = CausalGraph.from_edges(edges, N_PLAYERS).precedes
    drawn = draw_orders_within(precedes, 8_000, np.random.default_rng(0))
    counts = Counter(map(tuple, drawn.tolist()))
    possible = set(linear_extensions(N_PLAYERS, edges))
    assert set(counts) <= possible
    if len(possible) > 1:
        assert scipy.stats.chisquare([counts[o] for o in sorted(possible)]).pvalue > 1e-3


@each_order
def test_values_of_all_coalitions_are_exact(edges):
    game = random_game(N_PLAYERS, n_rows=2, n_outputs=2, seed=3)
    found = run(edges, game)
    wanted = [asymmetric_values(N_PLAYERS, edges, game.value_of(row)) for row in range(2)]
    np.testing.assert_allclose(found.values, wanted, rtol=0, atol=1e-10)
    assert (found.standard_errors == 0).all()


@pytest.mark.parametrize("budget", [200, 12], ids=["exact", "drawn"])
def test_null_players_keep_their_part_in_the_order(budget):
    """With the null player 1 between 0 and 2, player 0 is before 2 in all orders."""
    game = random_game(N_PLAYERS, seed=3)
    without = np.arange(2**N_PLAYERS) & ~2
    active = np.arange(N_PLAYERS)[None] != 1
    game = TableGame(game.values[:, without], active=active)
    edges = [(0, 1), (1, 2), (3, 2)]
    found = run(edges, game, budget, n_repeats=1)
    wanted = asymmetric_values(N_PLAYERS, edges, game.value_of(0))
    if budget == 200:
        np.testing.assert_allclose(found.values[0], wanted, rtol=0, atol=1e-10)
    assert found.values[0, 1] == 0
    np.testing.assert_allclose(found.values[0].sum(axis=0), wanted.sum(axis=0), atol=1e-10)


@pytest.mark.parametrize("edges", [PARTIAL_ORDERS["tree"], PARTIAL_ORDERS["zigzag"]])
def test_drawn_orders_are_unbiased_and_their_errors_are_right(edges):
    """Means of 120 seeds within 4 of their standard errors; intervals within 3 of theirs."""
    game = smooth_game(N_PLAYERS, seed=4)
    wanted = asymmetric_values(N_PLAYERS, edges, game.value_of(0))
    found = [run(edges, game, 14, seed, with_errors=True) for seed in range(120)]
    values = np.array([one.values[0] for one in found])
    np.testing.assert_allclose(values.sum(axis=1), np.tile(wanted.sum(axis=0), (120, 1)))
    spread = values.std(axis=0, ddof=1)
    assert np.abs(values.mean(axis=0) - wanted).max() < 4 * spread.max() / np.sqrt(120)
    squares = np.mean([one.standard_errors[0] ** 2 for one in found], axis=0)
    assert 0.8 < np.sqrt(squares.sum() / (spread**2).sum()) < 1.2
    assert all(one.evaluations[0] <= 14 for one in found)


def of_parts(seed=0):
    """Return a game of shown and given players, and its values by the two sets."""
    game = random_game(2 * N_PLAYERS, seed=seed)

    def value(shown, given):
        return game.value_of(0)(shown | {player + N_PLAYERS for player in given})[0]

    return game, value


@each_order
def test_both_parts_are_exact(edges):
    game, value = of_parts()
    found = run(edges, game, budget=1000, is_split=True)
    wanted = split_values(N_PLAYERS, edges, value)
    np.testing.assert_allclose(found.values[0, :, 0], wanted.ravel(), rtol=0, atol=1e-10)
    total = asymmetric_values(N_PLAYERS, edges, lambda s: value(s, s))
    np.testing.assert_allclose(wanted.sum(axis=0), total, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_large_partial_orders_take_seconds():
    """A tree of 400 features, lists of 20, and a grid whose ideals are listed."""
    tree = [(parent, child) for child in range(1, 400) for parent in [(child - 1) // 3]]
    grid = [(i, i + 1) for i in range(36) if i % 6 < 5] + [(i, i + 6) for i in range(30)]
    layers = edges_of_layers([range(20 * i, 20 * i + 20) for i in range(10)])
    for n_players, edges in ((400, tree), (200, layers), (36, grid)):
        precedes = CausalGraph.from_edges(edges, n_players).precedes
        orders = draw_orders_within(precedes, 20, np.random.default_rng(0))
        places = np.argsort(orders, axis=1)
        for cause, effect in edges:
            assert (places[:, cause] < places[:, effect]).all()


@pytest.mark.parametrize(
    ("order", "graph", "message"),
    [
        (None, None, "order and graph are missing"),
        ([0, 1, 2], [(0, 1)], "order and graph are both given"),
        ("abc", None, "order must be a list"),
        ([0, 1], None, r"order lacks the features \['c'\]"),
        ([0, 1, 1], None, "order holds 1 twice"),
        ([0, [True], 2], None, "order holds True, which is no feature"),
        (None, [("a", "b"), ("b", "c"), ("c", "a")], "graph has a cycle: 'a' → .*one node"),
        (None, [("a", "a")], "graph has a cycle"),
        (None, [("a", "d")], "graph holds 'd', which is no feature. Features are 'a', 'b', 'c'"),
        (None, [("a", ("b", "c")), ("b", "c")], "graph holds 'b' twice.*one tuple"),
        (None, ["ab"], r"each edge is a pair \(cause, effect\)"),
        (None, 3, "graph must be a networkx.DiGraph"),
    ],
)
def test_orders_and_graphs_that_cannot_be_used(order, graph, message):
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=message):
        read_causal_graph(order, graph, 3, list("abc"))


def test_graphs_of_networkx():
    networkx = pytest.importorskip("networkx")
    edges = [("a", ("b", "c")), (("b", "c"), "d")]
    graph = read_causal_graph(None, networkx.DiGraph(edges), 5, list("abcde"))
    assert (
        graph.precedes.tolist()
        == read_causal_graph(None, edges, 5, list("abcde")).precedes.tolist()
    )
    assert graph.precedes.sum(axis=0).tolist() == [0, 1, 1, 3, 0]
    with pytest.raises(InvalidArgumentError, match="edges without direction"):
        read_causal_graph(None, networkx.Graph(edges), 5, list("abcde"))


def test_budgets_and_orders_that_are_refused():
    with pytest.raises(
        BudgetError, match="needs up to 7 evaluations for a row of 6 players: 1 ran"
    ):
        run([], budget=5)
    with pytest.raises(BudgetError, match="2 random orders, to estimate standard errors"):
        run([], budget=11, with_errors=True)
    crown = [(i, 20 + j) for i in range(20) for j in range(20) if i != j]
    precedes = CausalGraph.from_edges(crown, 40).precedes
    with pytest.raises(InvalidArgumentError, match="40 features has too many orders.*65,536 sets"):
        draw_orders_within(precedes, 2, np.random.default_rng(0))

"""The theorems of the papers, on games that are made for them, by enumeration.

Where a printed statement does not hold, the counterexample is a test as well, beside the form that
holds. docs/errata.md tells of them.
"""

from math import comb, factorial

import networkx as nx
import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters import PlayerGraph
from tests.helpers.brute_force import game_shapley_values, shapley_values
from tests.helpers.graph_oracles import subsets
from tests.helpers.reference_games import TableGame, random_game, smooth_game

EXACT = 1e-10


# --- SHEAR (Wang et al., 2022) ------------------------------------------------------------------


def without(value, n_players, removed, player):
    """Return the Shapley value of a player in the game of the others than `removed`."""
    kept = [other for other in range(n_players) if other not in removed]
    values = shapley_values(len(kept), lambda members: value([kept[k] for k in members]))
    return values[kept.index(player)]


def test_the_bound_of_shear_does_not_hold_for_other_models():
    """Theorem 2 leaves out a remainder: here the mixed derivative at the row is 0, the gap is not.

    With the largest mixed derivative between the reference and the row, the bound holds.
    """
    x, reference = np.array([np.pi / 2, np.pi / 2]), np.zeros(2)

    def value(coalition):
        inputs = reference.copy()
        inputs[list(coalition)] = x[list(coalition)]
        return np.sin(inputs[0]) * np.sin(inputs[1])

    gap = abs(shapley_values(2, value)[0] - without(value, 2, {1}, 0))
    distances = np.prod(np.abs(x - reference))
    printed = abs(np.cos(x[0]) * np.cos(x[1])) / 2 * distances
    largest = 1.0 / 2 * distances  # |cos · cos| is 1 at the reference
    assert printed < 1e-15
    assert gap == pytest.approx(0.5)
    assert gap <= largest


# --- L-Shapley and C-Shapley (Chen et al., 2019) ------------------------------------------------


def test_the_printed_coefficients_break_the_theorem_of_c_shapley():
    """With 2/((u+2)(u+1)u), the error at an end of the line is large although ε is 0.

    If blocks of features and labels of their own are independent, E[log P(Y | x_S) | x] is a sum
    over the blocks. So the Myerson value of the first, with the right coefficients, has no error.
    """
    places = np.arange(2**6)
    of_blocks = [random_game(2, seed=k).values[:, places >> 2 * k & 3] for k in range(3)]
    game = TableGame(np.sum(of_blocks, axis=0))
    settings, exact = core.Settings(seed=0, graph=PlayerGraph.line(6)), game_shapley_values(game)
    right, printed = (
        abs(core.estimate(game, core.CShapley(2, weighting), settings).values - exact)[0, 0, 0]
        for weighting in ("myerson", "paper")
    )
    assert right < EXACT
    assert printed > 1e-3


def test_on_a_ring_the_printed_coefficient_is_right_for_arcs_of_up_to_d_minus_2():
    d, i, ring = 6, 0, nx.cycle_graph(6)
    game = random_game(d)
    value = game.value_of(0)
    graph = PlayerGraph.from_edges(d, list(ring.edges))
    exact = core.estimate(game, core.Myerson(), core.Settings(seed=0, graph=graph)).values[0, i, 0]
    arcs = {frozenset((start + step) % d for step in range(u)) for start in range(d)
            for u in range(1, d + 1)}  # fmt: skip

    def total(largest):
        found = 0.0
        for arc in arcs:
            if i in arc:
                rest = nx.connected_components(ring.subgraph(arc - {i}))
                gain = value(arc)[0] - value(())[0] - sum(value(r)[0] - value(())[0] for r in rest)
                u, b = len(arc), min(2, d - len(arc))
                general = factorial(u - 1) * factorial(b) / factorial(u + b)
                found += gain * (2 / ((u + 2) * (u + 1) * u) if u <= largest else general)
        return found

    assert total(d - 2) == pytest.approx(exact, abs=EXACT)
    assert abs(total(d - 1) - exact) > 1e-3


def test_l_shapley_of_a_grid_takes_other_numbers_of_evaluations_than_printed():
    """On a torus, all of whose players have the neighbours of one inside a grid."""
    torus = nx.grid_2d_graph(6, 6, periodic=True)
    crosses = [[node, *torus[node]] for node in torus]
    coalitions = {frozenset(members) for cross in crosses for members in subsets(cross)}
    assert len(coalitions) == 23 * 36 + 1  # not 16
    large = nx.grid_2d_graph(9, 9, periodic=True)
    for k in (1, 2, 3):
        assert len(nx.ego_graph(large, (0, 0), k)) == 2 * k**2 + 2 * k + 1


# --- SimSHAP (Zhang et al., 2024) ---------------------------------------------------------------


def test_the_bracket_of_the_kernel_sums_closes_before_the_value():
    """Eq. 15: Σ ω(S) φᵀ1_S over S with i is Aφ_i + Σ (A − (d−1)/d) φ_j, not Σ (A − (d−1)/d φ_j)."""
    n, i, phi = 5, 0, np.random.default_rng(0).normal(size=5)
    coalitions, law, gamma = least_squares_law(n)
    total = (n - 1) * gamma * (law * (coalitions @ phi))[coalitions[:, i]].sum()
    a = (n - 1) / n * (1 / np.arange(1, n)).sum()
    others = np.delete(phi, i)
    assert total == pytest.approx(a * phi[i] + ((a - (n - 1) / n) * others).sum(), abs=EXACT)
    assert abs(total - a * phi[i] - (a - (n - 1) / n * others).sum()) > 0.1


def least_squares_law(n_players):
    """Return all proper coalitions and their probabilities p_ls, and γ."""
    places = np.arange(1, 2**n_players - 1)
    coalitions = (places[:, None] >> np.arange(n_players)) % 2 == 1
    sizes = coalitions.sum(axis=1)
    gamma = (1 / (np.arange(1, n_players) * (n_players - np.arange(1, n_players)))).sum()
    counts = np.array([comb(n_players, size) for size in sizes])
    return coalitions, 1 / (gamma * counts * sizes * (n_players - sizes)), gamma


def test_the_printed_probability_of_the_semivalue_lacks_a_factor():
    """Table 1 prints [C(d, |S|)]⁻¹ for i ∈ S; with [C(d, |S|) |S|]⁻¹ the sum is φ_i."""
    n, i = 4, 0
    game = smooth_game(n)
    value = game.value_of(0)
    exact = game_shapley_values(game)[0, i, 0]

    def total(factor):
        return sum(
            (1 if i in members else -1) * value(members)[0]
            / (comb(n, len(members)) * (factor(len(members)) if i in members else n - len(members)))
            for members in subsets(range(n))
        )  # fmt: skip

    assert total(lambda size: size) == pytest.approx(exact, abs=EXACT)
    assert abs(total(lambda size: 1) - exact) > 0.05

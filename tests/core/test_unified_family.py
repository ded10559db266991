"""The estimators of SimSHAP's Table 1, beside each other and against their formulas."""

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.coalitions.tables import capped_shares, kernel_mass
from tests.helpers.reference_games import FunctionGame, random_game, request_of


def run(estimator, game, budget, seed=0, **settings):
    return core.estimate(game, estimator, core.Settings(seed=seed, budget=budget, **settings))


def drawn(estimator, n_players, budget, seed=0):
    """Return the coalitions that an estimator of shared draws asks for."""
    asked = []

    def value(coalitions):
        asked.append(coalitions.copy())
        return np.pi * coalitions.sum(axis=1)  # no labels, which are looked at again

    found = run(estimator, FunctionGame(value, n_players), budget, seed)
    # Three evaluations that look for random answers follow those of the ends, others come last.
    every, n_last = np.concatenate(asked), found.check_evaluations - 3
    return np.concatenate([every[:2], every[5 : len(every) - n_last]])


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("n_players", [3, 7, 11])
def test_sim_semivalue_is_unbiased_least_squares_draw_by_draw(paired, centred, n_players):
    budget = 2 ** min(n_players, 8) - 1
    game = random_game(n_players, n_rows=2, n_outputs=2)
    for n in (budget, max(6, budget // 3)):
        first = run(core.SimSemivalue(paired, centred), game, min(n, budget), seed=n)
        second = run(core.UnbiasedLeastSquares(paired, centred), game, min(n, budget), seed=n)
        np.testing.assert_allclose(first.values, second.values, atol=1e-10)
        np.testing.assert_allclose(first.standard_errors, second.standard_errors, atol=1e-10)
        np.testing.assert_array_equal(first.evaluations, second.evaluations)


@pytest.mark.parametrize(
    ("paired", "sizes"), [(True, "kernel"), (False, "kernel"), (True, "leverage")]
)
@pytest.mark.parametrize("budget", [62, 120, 250, 500])
def test_without_replacement_every_coalition_is_new_and_the_budget_is_spent(paired, sizes, budget):
    estimator = core.LeastSquares(paired, sizes, replacement=False)
    coalitions = drawn(estimator, 9, budget)
    assert len(np.unique(coalitions, axis=0)) == len(coalitions) == budget


def test_without_replacement_sizes_are_drawn_in_their_proportions():
    """Counts differ by less than one from those expected, so that the sum over seeds is close."""
    n_players, budget = 12, 502
    counts = np.zeros(n_players + 1)
    for seed in range(200):
        sizes = drawn(core.LeastSquares(replacement=False), n_players, budget, seed).sum(axis=1)
        counts += np.bincount(sizes, minlength=n_players + 1)
    counts /= 200
    # Sizes 1 and 2 are whole; what is left goes by the kernel's mass.
    assert counts[[0, 1, 2, 10, 11, 12]].tolist() == [1, 12, 66, 66, 12, 1]
    mass = kernel_mass(n_players)[2:9]
    expected = (budget - 2 - 156) * mass / mass.sum()
    np.testing.assert_allclose(counts[3:10], expected, atol=4 * np.sqrt(0.25 / 200))


def test_normal_equations_without_replacement_are_unbiased():
    """The weighted sum of 1_S 1_Sᵀ over the equations has the kernel's as its expectation."""
    n_players = 8
    total = np.zeros((n_players, n_players))
    n_seeds = 400
    estimator = core.LeastSquares(paired=False, replacement=False)
    for seed in range(n_seeds):
        design = estimator.design(request_of(n_players, 90, seed))
        weights = design.weights / np.where(design.is_drawn, design.is_drawn.sum(), 1)
        total += design.members.T @ (weights[:, None] * design.members) / n_seeds
    sizes = np.arange(1, n_players)
    both = kernel_mass(n_players) @ (sizes * (sizes - 1)) / (n_players * (n_players - 1))
    expected = np.full((n_players, n_players), both) + (0.5 - both) * np.eye(n_players)
    np.testing.assert_allclose(total, expected, atol=0.005)


def test_capped_shares():
    shares = capped_shares(np.array([0.5, 0.3, 0.2]), np.array([2.0, 10.0, 10.0]), 10)
    np.testing.assert_allclose(shares, [2, 4.8, 3.2])
    np.testing.assert_allclose(capped_shares(np.ones(2), np.array([1.0, 2.0]), 9), [1, 2])

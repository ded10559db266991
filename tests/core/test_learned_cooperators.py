"""SHEAR with learned cooperators: draws of what a regression leaves, for all players at once."""

from itertools import combinations

import numpy as np
import pytest
import scipy.special
import scipy.stats

import shap_ext  # noqa: F401 # it makes shap know the algorithms
import shapley_adapters as core
from shapley_adapters.coalitions.tables import all_coalitions
from shapley_adapters.errors import InvalidArgumentError
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import TableGame, random_game, request_of

LEARNED = core.Shear(cooperators="learned")


def estimates(game, n_seeds, budget):
    """Return the values and the standard errors, (2, seeds, R, M, K)."""
    settings = [core.Settings(seed=seed, budget=budget) for seed in range(n_seeds)]
    found = [core.estimate(game, LEARNED, of_seed) for of_seed in settings]
    return np.array([[one.values for one in found], [one.standard_errors for one in found]])


def draws(n_players, budget, seed=0):
    """Return the draws of a design with random cooperators."""
    scores = np.random.default_rng(seed).random((1, n_players, n_players))
    options = {"scores": scores, "has_scores": np.zeros(1, dtype=bool)}
    request = request_of(n_players, budget, seed, **options)
    return LEARNED.design(request).draws_of_row(0)


def test_with_hundreds_of_players_the_weights_of_pairs_are_finite():
    found = draws(400, 4 * 400 + 2).draws_of_fold(0)
    assert np.isfinite(found.coefficients).all()
    assert found.factors.min() >= 0


def test_the_budget_is_spent_where_most_draws_are_known():
    found = core.estimate(random_game(8), LEARNED, core.Settings(seed=0, budget=240))
    assert found.evaluations.tolist() == [240]


def hotelling(off):
    """Return the p-value of a mean of 0 over the first axis of off, (S, p)."""
    n, p = off.shape
    mean = off.mean(axis=0)
    squared = n * mean @ np.linalg.solve(np.cov(off.T), mean)
    return scipy.stats.f.sf(squared * (n - p) / (p * (n - 1)), p, n - p)


@pytest.mark.slow
def test_estimates_are_unbiased():
    game = random_game(6)
    off = (estimates(game, 80, 34)[0] - game_shapley_values(game))[:, 0, :, 0]
    assert hotelling(off[:, :-1]) > 1e-3


def test_pairs_and_triples_are_learned_exactly():
    """Once the other folds tell all interactions of a sparse game, nothing is left to draw."""
    present = all_coalitions(9).astype(float)
    values = present @ np.arange(9.0) + 2 * present[:, [0, 3, 6]].prod(axis=1)
    for pair in list(combinations(range(9), 2))[::9]:
        values += present[:, list(pair)].prod(axis=1)
    game = TableGame(values[None, :, None])
    found = core.estimate(game, LEARNED, core.Settings(seed=0, budget=300))
    np.testing.assert_allclose(found.values, game_shapley_values(game), atol=1e-5)


@pytest.mark.parametrize("options", [{"complement": "uniform"}, {"antithetic": False}])
def test_draws_of_unknown_distribution_are_refused(options):
    with pytest.raises(InvalidArgumentError, match="cooperators='learned' needs"):
        core.Shear(cooperators="learned", **options)

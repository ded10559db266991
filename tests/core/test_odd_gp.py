"""Odd Gaussian-process regression against its prior written out, set by set."""

from itertools import combinations

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters import evidence
from shapley_adapters.evidence import GRID, Ratios, best_of_grid, learned, log_evidence
from shapley_adapters.odd_kernels import OddKernels, attribution_covariances
from shapley_adapters.spread_designs import spread_pairs
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import (
    FunctionGame,
    TableGame,
    from_function,
    random_game,
    smooth_game,
)

OPTIONS = ["learned", "equal"]


def run(game, budget, weights="learned", seed=0, **settings):
    return core.estimate(
        game, core.OddGP(weights), core.Settings(seed=seed, budget=budget, **settings)
    )


def odd_sets(n_players):
    return [c for k in (1, 3, 5) for c in combinations(range(n_players), k) if k <= n_players]


def written_out(n_players, weights, signs):
    """Return features, (n, T), their variances by degree, and the maps to Shapley values."""
    sets = odd_sets(n_players)
    features = np.array([[np.prod(z[list(c)]) for c in sets] for z in signs])
    to_values = np.array([[2 / len(c) * (i in c) for c in sets] for i in range(n_players)])
    parts = []
    for degree in (1, 3, 5):
        own = np.array([len(c) == degree for c in sets], dtype=float)
        spread = own * [np.prod(weights[list(c)]) if degree > 1 else 1.0 for c in sets]
        parts.append(spread / max(spread.sum(), 1e-300))
    return features, parts, to_values


def signs_and_weights(n_players, n=12, seed=0):
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random((n, n_players)) < 0.5, 1.0, -1.0)
    signs[0] = 1.0
    return signs, np.exp(rng.normal(size=n_players))


@pytest.mark.parametrize("n_players", [2, 3, 4, 5, 8])
def test_kernels_are_sums_over_sets(n_players):
    signs, weights = signs_and_weights(n_players)
    features, parts, to_values = written_out(n_players, weights, signs)
    found = OddKernels.at(signs, weights).matrices()
    covariances, variances = attribution_covariances(signs, weights)
    for kernel, cross, own, part in zip(found, covariances, variances, parts, strict=True):
        np.testing.assert_allclose(kernel, features * part @ features.T, atol=1e-10)
        np.testing.assert_allclose(cross, to_values * part @ features.T, atol=1e-10)
        np.testing.assert_allclose(own, (to_values**2) @ part, atol=1e-10)


@pytest.mark.parametrize("n_players", [3, 4, 6, 9])
def test_the_gradient_of_the_evidence(n_players):
    rng = np.random.default_rng(1)
    signs, _ = signs_and_weights(n_players, n=10)
    target = rng.normal(size=10)
    at = np.concatenate([rng.normal(size=n_players), np.log([0.05, 0.3, 0.02])])
    _, gradient = evidence._objective(at, signs, target)
    for place in range(len(at)):
        steps = [at + sign * 1e-5 * np.eye(len(at))[place] for sign in (1, -1)]
        values = [evidence._objective(step, signs, target)[0] for step in steps]
        slope = (values[0] - values[1]) / 2e-5
        assert slope == pytest.approx(gradient[place], rel=1e-4, abs=1e-5)


def test_the_evidence_is_that_of_the_normal_distribution():
    """With the scale at its best, differences of log densities."""
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(2)
    signs, weights = signs_and_weights(6)
    target = rng.normal(size=12)
    scores, densities = [], []
    for ratios in (Ratios(0.1, 0.2, 0.3), Ratios(1.0, 0.5, 0.1)):
        covariance = ratios.covariance(OddKernels.at(signs, weights))
        factor = np.linalg.cholesky(covariance)
        scores.append(float(log_evidence(factor, target[:, None])[0]))
        scale = target @ np.linalg.solve(covariance, target) / 12
        densities.append(multivariate_normal.logpdf(target, cov=scale * covariance))
    assert scores[0] - scores[1] == pytest.approx(densities[0] - densities[1], abs=1e-8)


def test_learning_raises_the_evidence_and_finds_who_interacts():
    """A product of players 0, 1, 2 beside additive noise: their weights come out largest."""
    rng = np.random.default_rng(0)
    n_players = 10
    linear = rng.normal(size=n_players)
    signs = np.where(spread_pairs(n_players, 80, rng), 1.0, -1.0)
    signs = np.concatenate([np.ones((1, n_players)), signs])
    target = signs @ linear + signs[:, 0] * signs[:, 1] * signs[:, 2]
    (start,) = best_of_grid(signs, target[:, None])
    weights, ratios = learned(signs, target, start)
    assert set(np.argsort(weights)[-3:]) == {0, 1, 2}
    assert min(weights[:3]) > 3 * max(weights[3:])

    def score(weights, ratios):
        factor = np.linalg.cholesky(ratios.covariance(OddKernels.at(signs, weights)))
        return float(log_evidence(factor, target[:, None])[0])

    assert score(weights, ratios) > score(np.ones(n_players), start) + 5


@pytest.mark.parametrize("weights", OPTIONS)
def test_the_posterior_is_that_of_regression_on_all_sets(weights, monkeypatch):
    """With hyperparameters held still, ridge regression on the features of every set."""
    ratios = Ratios(0.2, 0.3, 0.05)
    monkeypatch.setattr("shapley_adapters.estimators.odd_gp.GRID", (ratios,))
    monkeypatch.setattr("shapley_adapters.estimators.odd_gp._AROUND", (1.0,))
    fixed = np.exp(np.random.default_rng(4).normal(size=7)) if weights == "learned" else np.ones(7)
    monkeypatch.setattr("shapley_adapters.estimators.odd_gp.learned", lambda *_: (fixed, ratios))
    game = random_game(7, n_rows=2, n_outputs=2)
    found = run(game, 40, weights)
    asked = [place for row, place in game.asked if row == 0 and place not in (0, 127)]
    places = np.array(asked)[::2]  # one of each pair
    signs = np.where((places[:, None] >> np.arange(7)) & 1, 1.0, -1.0)
    signs = np.concatenate([np.ones((1, 7)), signs])
    features, parts, to_values = written_out(7, fixed, signs)
    prior = ratios.combine(parts)
    noise = np.full(len(signs), ratios.third * ratios.noise) + 1e-10
    noise[0] = 1e-10
    covariance = features * prior @ features.T + np.diag(noise)
    gain = to_values * prior @ features.T @ np.linalg.inv(covariance)
    n_learned = 10 if weights == "learned" else 3
    for row in range(2):
        for output in range(2):
            value = game.values[row, :, output]
            odd = (value[places] - value[127 - places]) / 2
            target = np.concatenate([[(value[127] - value[0]) / 2], odd])
            np.testing.assert_allclose(found.values[row, :, output], gain @ target, atol=1e-8)
            left = (to_values**2 @ prior) - (gain * (to_values * prior @ features.T)).sum(axis=1)
            scale = target @ np.linalg.solve(covariance, target)
            scale /= max(len(signs) - n_learned, len(signs) / 3)
            errors = found.standard_errors[row, :, output]
            np.testing.assert_allclose(errors, np.sqrt(left * scale), rtol=1e-6)


@pytest.mark.parametrize("weights", OPTIONS)
def test_games_of_odd_degrees_up_to_five_are_recovered(weights):
    """8 + 56 + 56 coefficients from 124 pairs; any even game may be added."""
    rng = np.random.default_rng(0)
    sets = odd_sets(8)
    coefficients = rng.normal(size=len(sets))
    pairs = rng.normal(size=(8, 8))

    def value(coalitions):
        z = 2.0 * coalitions - 1
        products = np.stack([z[:, list(c)].prod(axis=1) for c in sets], axis=1)
        return products @ coefficients + np.einsum("ci,cj,ij->c", z, z, pairs)

    game = from_function(value, 8)
    exact = game_shapley_values(game)
    error = np.abs(run(game, 250, weights).values - exact).max()
    assert error < 0.03  # of values of order five: a ridge is left
    assert np.abs(run(game, 120, weights).values - exact).max() > 0.1


@pytest.mark.parametrize("weights", OPTIONS)
def test_efficiency_and_errors_of_every_small_game(weights):
    for n_players in (2, 3, 4, 5, 6):
        game = random_game(n_players, n_rows=2, n_outputs=2)
        for budget in range(4, 2**n_players):
            found = run(game, budget, weights)
            total = found.values.sum(axis=1) - (found.grand_values - found.empty_values)
            np.testing.assert_allclose(total, 0, atol=1e-10)
            assert np.isfinite(found.standard_errors).all()


@pytest.mark.parametrize("weights", OPTIONS)
def test_fewer_evaluations_than_players(weights):
    """What the regression cannot do; the truth is spread over 40 players."""
    rng = np.random.default_rng(0)
    linear = rng.normal(size=40)
    game = FunctionGame(lambda z: z @ linear, 40)
    found = run(game, 30, weights).values[0, :, 0]
    assert np.abs(found - linear).mean() < np.abs(linear - linear.mean()).mean()
    assert found.sum() == pytest.approx(linear.sum(), abs=1e-9)


def test_it_errs_far_less_than_least_squares():
    game = smooth_game(11, n_rows=12, seed=5)
    exact = game_shapley_values(game)

    def error(estimator, budget):
        found = [
            core.estimate(game, estimator, core.Settings(seed=s, budget=budget)) for s in range(3)
        ]
        return np.mean([np.abs(f.values - exact) for f in found])

    for budget, ratio in ((11 * 8, 0.7), (11 * 16, 0.5), (11 * 32, 0.3)):
        least_squares = error(core.LeastSquares(), budget)
        assert error(core.OddGP(), budget) < ratio * least_squares
        assert error(core.OddGP("equal"), budget) < 0.9 * least_squares


@pytest.mark.parametrize("make", [smooth_game, random_game])
def test_intervals_hold_the_exact_values_about_as_often_as_they_say(make):
    """Games that the prior fits, and games of independent values, which it hardly does."""
    game = make(10, n_rows=60, seed=3)
    exact = game_shapley_values(game)
    for budget in (82, 162, 322):
        found = run(game, budget)
        z = np.abs(found.values - exact) / found.standard_errors
        assert 0.45 < (z < 1).mean() < 0.95
        assert (z < 1.96).mean() > 0.8


def test_outputs_that_are_nothing_get_nothing():
    values = random_game(8, n_outputs=2).values
    values[..., 1] = 3.0
    found = run(TableGame(values), 100)
    assert (found.values[..., 1] == 0).all()
    assert (found.standard_errors[..., 1] == 0).all()
    assert np.abs(found.values[..., 0]).max() > 1e-2


def test_scales_do_not_matter():
    game = smooth_game(9, n_rows=2)
    small = run(TableGame(1e-9 * game.values), 120)
    np.testing.assert_allclose(1e9 * small.values, run(game, 120).values, rtol=1e-4, atol=1e-6)


# --- the pairs ---


def posterior_variance(pairs):
    signs = np.where(np.concatenate([np.ones((1, pairs.shape[1]), bool), pairs]), 1.0, -1.0)
    ratios = Ratios(0.03, 0.1, 0.0)
    equal = np.ones(pairs.shape[1])
    covariances, variances = attribution_covariances(signs, equal)
    cross = ratios.combine(covariances)
    covariance = ratios.covariance(OddKernels.at(signs, equal))
    left = ratios.combine(variances) - (cross * np.linalg.solve(covariance, cross.T).T).sum(axis=1)
    return left.sum()


@pytest.mark.parametrize(("n_players", "n_pairs"), [(8, 20), (13, 26), (13, 104), (30, 240)])
def test_chosen_pairs_leave_far_less_variance_than_drawn_ones(n_players, n_pairs):
    rng = np.random.default_rng(0)
    chosen = spread_pairs(n_players, n_pairs, rng)
    sizes = rng.integers(1, n_players, size=4 * n_pairs)
    ranks = rng.permuted(np.tile(np.arange(n_players), (4 * n_pairs, 1)), axis=1)
    drawn = np.unique((ranks < sizes[:, None]) ^ (ranks[:, :1] < sizes[:, None]), axis=0)
    drawn = rng.permuted(drawn[drawn.any(axis=1)], axis=0)[:n_pairs]
    assert posterior_variance(chosen) < 0.7 * posterior_variance(drawn)


@pytest.mark.parametrize(
    ("n_players", "n_pairs"), [(2, 1), (2, 5), (3, 3), (5, 15), (13, 4095), (60, 1500), (300, 40)]
)
def test_pairs_differ_and_are_as_many_as_there_are(n_players, n_pairs):
    pairs = spread_pairs(n_players, n_pairs, np.random.default_rng(0))
    there = 2 ** (n_players - 1) - 1
    assert pairs.shape == (min(n_pairs, there), n_players)
    both = np.concatenate([pairs, ~pairs])
    assert len(np.unique(both, axis=0)) == len(both)
    assert both.any(axis=1).all()


def test_a_smaller_choice_opens_a_larger_one():
    few = spread_pairs(12, 40, np.random.default_rng(3))
    more = spread_pairs(12, 60, np.random.default_rng(3))
    np.testing.assert_array_equal(few, more[:40])


def test_seeds_relabel_the_players_only():
    first = spread_pairs(12, 40, np.random.default_rng(0))
    other = spread_pairs(12, 40, np.random.default_rng(1))
    assert (first != other).any()
    np.testing.assert_array_equal(first.sum(axis=1), other.sum(axis=1))


def test_the_grid_starts_with_what_suits_the_game():
    signs = np.where(spread_pairs(9, 60, np.random.default_rng(0)), 1.0, -1.0)
    signs = np.concatenate([np.ones((1, 9)), signs])
    linear = signs @ np.arange(9.0)
    cubic = linear + 5 * signs[:, 0] * signs[:, 1] * signs[:, 2]
    starts = best_of_grid(signs, np.stack([linear, cubic], axis=1))
    assert starts[0].third == min(ratios.third for ratios in GRID)
    assert starts[1].third > 1e-3

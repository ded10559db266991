"""Variances that borrow from those of other players."""

import numpy as np
import pytest
import scipy.stats

from shapley_adapters.estimators.shear.estimator import shrink_variances
from shapley_adapters.pipeline.result import quantiles

FREEDOM = np.array([1.0, 2.0, 5.0])


def draw_variances(rng, shared_freedom, n_rows=1, n_players=3000):
    """Draw variances around 2, estimates of these and means, as normal draws would give them."""
    shape = (n_rows, n_players, 1)
    freedom = FREEDOM[rng.integers(3, size=(n_rows, n_players, 1))]
    spread = np.full(shape, 2.0)
    if np.isfinite(shared_freedom):
        spread = 2 * shared_freedom / rng.chisquare(shared_freedom, size=shape)
    estimates = spread * rng.chisquare(freedom) / freedom
    return spread, estimates, freedom, rng.normal(size=shape) * np.sqrt(spread)


@pytest.mark.parametrize("shared_freedom", [3.0, 10.0])
def test_scale_and_freedom_of_many_players_are_estimated(shared_freedom):
    _, estimates, freedom, _ = draw_variances(
        np.random.default_rng(0), shared_freedom, n_players=100_000
    )
    shrunken, posterior_freedom = shrink_variances(estimates, freedom)
    player_freedom = np.broadcast_to(freedom, posterior_freedom.shape)
    np.testing.assert_allclose(posterior_freedom - player_freedom, shared_freedom, rtol=0.1)
    shared = (posterior_freedom * shrunken - player_freedom * estimates) / (
        posterior_freedom - player_freedom
    )
    np.testing.assert_allclose(shared, 2.0, rtol=0.05)


def test_players_that_are_alike_get_one_variance():
    _, estimates, freedom, _ = draw_variances(np.random.default_rng(1), np.inf, n_players=400_000)
    shrunken, posterior_freedom = shrink_variances(estimates, freedom)
    assert posterior_freedom.min() > 50
    np.testing.assert_allclose(np.median(shrunken), 2.0, rtol=0.05)


@pytest.mark.parametrize("shared_freedom", [3.0, 10.0, np.inf])
def test_intervals_of_few_players_hold_what_they_say(shared_freedom):
    """Of 1,000 rows with 13 players; four standard errors of the share, and a hundredth for that
    the shared distribution is itself estimated from 13."""
    rng = np.random.default_rng(2)
    _, estimates, freedom, means = draw_variances(rng, shared_freedom, n_rows=1000, n_players=13)
    variances, posterior_freedom = shrink_variances(estimates, freedom)
    for confidence in (0.68, 0.95):
        held = np.abs(means) < quantiles(confidence, posterior_freedom) * np.sqrt(variances)
        allowed = 4 * held.mean(axis=1).std() / np.sqrt(1000) + 0.01
        assert abs(held.mean() - confidence) < allowed
    plain = np.abs(means) < scipy.stats.norm.ppf(0.975) * np.sqrt(estimates)
    assert plain.mean() < 0.88


def test_variances_are_nearer_to_the_truth():
    spread, estimates, freedom, _ = draw_variances(np.random.default_rng(3), 8.0)
    variances, _ = shrink_variances(estimates, freedom)
    assert (
        np.abs(np.log(variances / spread)).mean() < 0.4 * np.abs(np.log(estimates / spread)).mean()
    )


def test_players_without_variance_keep_none_and_count_for_nothing():
    rng = np.random.default_rng(4)
    _, estimates, freedom, _ = draw_variances(rng, 8.0, n_rows=2, n_players=12)
    with_nulls = np.insert(estimates, [0, 5], [[[0.0], [1e-10]]], axis=1)
    shrunken, posterior_freedom = shrink_variances(
        with_nulls, np.insert(freedom, [0, 5], 2.0, axis=1), 1e-9
    )
    np.testing.assert_array_equal(shrunken[:, [0, 6]], with_nulls[:, [0, 6]])
    np.testing.assert_array_equal(posterior_freedom[:, [0, 6]], 2.0)
    alone, player_freedom = shrink_variances(estimates, freedom)
    others = [player for player in range(14) if player not in (0, 6)]
    np.testing.assert_allclose(shrunken[:, others], alone)
    np.testing.assert_allclose(posterior_freedom[:, others], player_freedom)


def test_few_players_and_unknown_variances_are_left_alone():
    variances = np.array([[[1.0], [2.0], [np.nan], [0.0]], [[np.nan]] * 4])
    freedom = np.full((2, 4, 1), 3.0)
    shrunken, posterior_freedom = shrink_variances(variances, freedom)
    np.testing.assert_array_equal(shrunken, variances)
    np.testing.assert_array_equal(posterior_freedom, freedom)

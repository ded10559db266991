"""Kernels of many values, above the diagonal, beside those between all."""

from dataclasses import replace

import numpy as np
import pytest

from shapley_adapters.estimators.odd_gp.kernels import Kernel, Prior, UpperKernel
from shapley_adapters.estimators.odd_gp.marginal_likelihood import Features, covariance_of

both_parities = pytest.mark.parametrize("is_even", [False, True])


@both_parities
@pytest.mark.parametrize("has_singles", [False, True])
@pytest.mark.parametrize(("n_players", "n"), [(2, 2), (3, 4), (9, 150), (80, 200)])
def test_covariances_above_the_diagonal_are_those_of_the_kernel(n_players, n, has_singles, is_even):
    """Also with more values than one slab holds."""
    rng = np.random.default_rng(0)
    signs = np.where(rng.random((n, n_players)) < 0.5, 1.0, -1.0)
    strengths = rng.uniform(0.05, 0.9, size=(3, n_players)) * min(1, 9 / n_players)
    prior = Prior(strengths, np.array([1e-6, 0.2, 3.0]), np.full(3, 0.1), is_even=is_even)
    if has_singles and not is_even:
        prior = replace(prior, singles=rng.exponential(size=strengths.shape) / n_players)
    features = Features([0.8 * rng.choice([-1.0, 1.0], size=(n, k)) for k in (4, 0, 7)])
    whole = Kernel.at(signs, strengths, is_even=is_even)
    kernel = UpperKernel(signs, strengths, is_even)
    expected = covariance_of(whole, prior)
    found = covariance_of(kernel, prior)
    np.testing.assert_allclose(np.triu(found), np.triu(expected), atol=1e-11)
    by_columns = [columns @ columns.T for columns in features.columns]
    for with_features in (covariance_of(of, prior, features) for of in (whole, kernel)):
        added = np.triu(with_features - expected)
        np.testing.assert_allclose(added, np.triu(by_columns), atol=1e-8)  # and jitter
    games, memory = np.array([2]), np.full((1, n, n), 7.0)
    of_game = UpperKernel(signs, strengths[games], is_even)
    alone = covariance_of(of_game, prior.subset_games(games), out=memory)
    assert alone is memory
    np.testing.assert_array_equal(np.triu(alone[0]), np.triu(found[2]))


@both_parities
def test_slabs_of_a_kernel_make_the_whole(is_even):
    """Slabs of some rows of one game, and of some games."""
    rng = np.random.default_rng(0)
    signs = np.where(rng.random((170, 6)) < 0.5, 1.0, -1.0)
    strengths = rng.uniform(0.05, 0.9, size=(5, 6))
    kernel, other = Kernel.with_other_parity(signs, strengths, is_even=is_even)
    few, of_few = Kernel.with_other_parity(signs[:9], strengths[:2], is_even=is_even)
    np.testing.assert_allclose(kernel.interactions[:2, :9, :9], few.interactions, atol=1e-13)
    np.testing.assert_allclose(other[:2, :9, :9], of_few, atol=1e-13)
    for game, of_game in enumerate(strengths):
        others = Kernel.at(signs, of_game, signs[150:], is_even).interactions
        np.testing.assert_allclose(kernel.interactions[game, :, 150:], others, atol=1e-13)

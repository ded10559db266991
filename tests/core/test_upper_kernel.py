"""Kernels of many values, above the diagonal, beside those between all."""

import numpy as np
import pytest

from shapley_adapters.estimators.odd_gp.kernels import OddKernel, Prior, UpperKernel
from shapley_adapters.estimators.odd_gp.marginal_likelihood import Features, covariance_of


@pytest.mark.parametrize(("n_players", "n"), [(2, 2), (3, 4), (9, 150), (80, 200)])
def test_covariances_above_the_diagonal_are_those_of_the_kernel(n_players, n):
    """Also with more values than one slab holds."""
    rng = np.random.default_rng(0)
    signs = np.where(rng.random((n, n_players)) < 0.5, 1.0, -1.0)
    strengths = rng.uniform(0.05, 0.9, size=(3, n_players)) * min(1, 9 / n_players)
    prior = Prior(strengths, np.array([1e-6, 0.2, 3.0]), np.full(3, 0.1))
    features = Features([0.8 * rng.choice([-1.0, 1.0], size=(n, k)) for k in (4, 0, 7)])
    whole, kernel = OddKernel.at(signs, strengths), UpperKernel(signs, strengths)
    expected = covariance_of(whole, prior)
    found = covariance_of(kernel, prior)
    np.testing.assert_allclose(np.triu(found), np.triu(expected), atol=1e-11)
    by_columns = [columns @ columns.T for columns in features.columns]
    for with_features in (covariance_of(of, prior, features) for of in (whole, kernel)):
        added = np.triu(with_features - expected)
        np.testing.assert_allclose(added, np.triu(by_columns), atol=1e-8)  # and jitter
    games, memory = np.array([2]), np.full((1, n, n), 7.0)
    alone = covariance_of(kernel.subset_games(games), prior.subset_games(games), out=memory)
    assert alone is memory
    np.testing.assert_array_equal(np.triu(alone[0]), np.triu(found[2]))


def test_slabs_of_a_kernel_make_the_whole():
    """Slabs of some rows of one game, and of some games."""
    rng = np.random.default_rng(0)
    signs = np.where(rng.random((170, 6)) < 0.5, 1.0, -1.0)
    strengths = rng.uniform(0.05, 0.9, size=(5, 6))
    kernel, even = OddKernel.with_even(signs, strengths)
    few, even_of_few = OddKernel.with_even(signs[:9], strengths[:2])
    np.testing.assert_allclose(kernel.interactions[:2, :9, :9], few.interactions, atol=1e-13)
    np.testing.assert_allclose(even[:2, :9, :9], even_of_few, atol=1e-13)
    for game, of_game in enumerate(strengths):
        others = OddKernel.at(signs, of_game, signs[150:]).interactions
        np.testing.assert_allclose(kernel.interactions[game, :, 150:], others, atol=1e-13)


def test_games_of_the_same_strengths_share_a_kernel():
    rng = np.random.default_rng(0)
    signs = np.where(rng.random((20, 5)) < 0.5, 1.0, -1.0)
    same, other = np.full((3, 5), 0.3), np.full((1, 5), 0.4)
    for strengths in (same, np.concatenate([same, other])):
        found = OddKernel.from_stack(signs, strengths).interactions
        np.testing.assert_array_equal(found, OddKernel.at(signs, strengths).interactions)
    assert OddKernel.from_stack(signs, same).interactions.strides[0] == 0

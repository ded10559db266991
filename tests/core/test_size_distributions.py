"""Weights and draws of coalition sizes."""

import numpy as np
import pytest
from scipy.special import comb

from shapley_adapters.coalitions.tables import (
    all_coalitions,
    kernel_mass,
    random_subsets,
    size_probabilities,
)
from shapley_adapters.estimators.linear_algebra import fit_with_fixed_sum


@pytest.mark.parametrize("n_players", [2, 3, 6, 11])
def test_kernel_mass_is_the_kernel_summed_over_coalitions(n_players):
    sizes = all_coalitions(n_players)[1:-1].sum(axis=1)
    kernel = (n_players - 1) / (comb(n_players, sizes) * sizes * (n_players - sizes))
    by_size = np.bincount(sizes, kernel)[1:]
    np.testing.assert_allclose(kernel_mass(n_players), by_size / kernel.sum(), rtol=1e-12)


@pytest.mark.parametrize("distribution", ["kernel", "leverage"])
@pytest.mark.parametrize("n_players", [2, 3, 10])
def test_probabilities_sum_to_one_and_are_symmetric(distribution, n_players):
    probabilities = size_probabilities(n_players, distribution)
    assert probabilities.shape == (n_players - 1,)
    assert probabilities.sum() == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(probabilities, probabilities[::-1])


def test_leverage_draws_each_size_by_its_leverages_in_the_regression():
    coalitions = all_coalitions(7)[1:-1]
    sizes = coalitions.sum(axis=1)
    weights = kernel_mass(7)[sizes - 1] / comb(7, sizes)
    leverages = fit_with_fixed_sum(coalitions.astype(float), weights).leverages
    by_size = np.bincount(sizes, leverages)[1:]
    np.testing.assert_allclose(by_size / by_size.sum(), size_probabilities(7, "leverage"))


def test_random_subsets_have_their_sizes():
    sizes = np.array([0, 1, 3, 5, 2])
    subsets = random_subsets(sizes, 5, np.random.default_rng(0))
    assert subsets.sum(axis=1).tolist() == sizes.tolist()


def test_random_subsets_are_uniform():
    subsets = random_subsets(np.full(20_000, 2), 5, np.random.default_rng(0))
    _, counts = np.unique(subsets @ (1 << np.arange(5)), return_counts=True)
    assert len(counts) == 10
    # Pearson's statistic of ten equal classes; 9 degrees of freedom exceed 27.9 once in a
    # thousand. Neighbours twice as likely as others would give over 1000.
    assert ((counts - 2000) ** 2 / 2000).sum() < 27.9

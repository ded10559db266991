"""Weights and draws of coalition sizes."""

import numpy as np
import pytest
from scipy.special import comb

from shapley_adapters.coalitions.tables import all_coalitions, kernel_mass, size_probabilities
from shapley_adapters.estimators.linear_algebra import fit_with_fixed_sum


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

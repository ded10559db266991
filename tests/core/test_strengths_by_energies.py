"""Strengths that are fitted to the values: their slopes, and what they find."""

from itertools import combinations

import numpy as np
import pytest

from shapley_adapters.estimators.odd_gp import strengths_by_energies
from shapley_adapters.estimators.odd_gp.strengths_by_energies import fitted_strengths
from shapley_adapters.estimators.odd_gp.values_prior import (
    CONSTANT,
    ErrorCovariances,
    Products,
    SizeFactors,
    Variances,
)

N_PLAYERS, N_VALUES = 7, 25
FACTORS, INTERACTIONS = SizeFactors(0.5, 1.0), np.array([0.4, 0.2, 0.3])


def coalitions(n_players, n_values, seed=0):
    drawn = np.random.default_rng(seed).random((n_values, n_players)) < 0.5
    drawn[0], drawn[1] = False, True
    return np.unique(drawn, axis=0)


def covariance(members, strengths, scales):
    """Return the covariance of values by all sets of at most five players, one after the other."""
    signs, n_players = np.where(members, 1.0, -1.0), members.shape[1]
    factors = FACTORS.at(signs.sum(axis=1), n_players)
    total = np.full((len(members), len(members)), CONSTANT)
    for size, scale in enumerate(scales, 1):
        sets = list(combinations(range(n_players), size))
        for players in sets:
            product = signs[:, players].prod(axis=1) * (factors if size == 1 else 1.0)
            total += (
                scale / len(sets) * strengths[list(players)].prod() * np.outer(product, product)
            )
    return total


def evidence(members, values, strengths, scales):
    """Return the log marginal likelihood at the best scale of each game, on average."""
    total = covariance(members, strengths, scales)
    total[np.diag_indices(len(total))] += 1e-6 * np.trace(total) / len(total)
    squares = (values * np.linalg.solve(total, values)).sum(axis=0)
    return (-len(values) / 2 * np.log(squares)).mean() - np.linalg.slogdet(total)[1] / 2


def test_energies_are_slopes_of_the_evidence():
    """At equal strengths, by central differences, with the norms of sets as they are there."""
    members = coalitions(N_PLAYERS, N_VALUES)
    values = np.random.default_rng(1).normal(size=(len(members), 2))
    part, strengths = Products(members, np.ones(N_PLAYERS)), np.ones(N_PLAYERS)
    factors = part.size_factors(FACTORS)
    energies = strengths_by_energies._Energies.from_prior(part, strengths, INTERACTIONS, factors)
    rest = np.full((len(members), len(members)), CONSTANT)
    expected, observed = energies.expected_and_observed(rest, values)
    scales = np.array([1.0, 0.4, 0.2, 0.15, 0.15])
    step, slopes = 1e-5, []
    for player in range(N_PLAYERS):
        up, down = (
            strengths * np.exp(sign * step * (np.arange(N_PLAYERS) == player)) for sign in (1, -1)
        )
        difference = evidence(members, values, up, scales) - evidence(members, values, down, scales)
        slopes.append(difference / (2 * step))
    for sizes in ([0], [1], [2], [3, 4]):
        up, down = (scales * np.exp(sign * step * np.isin(np.arange(5), sizes)) for sign in (1, -1))
        difference = evidence(members, values, strengths, up) - evidence(
            members, values, strengths, down
        )
        slopes.append(difference / (2 * step))
    np.testing.assert_allclose((observed - expected) / 2, slopes, atol=1e-5)


@pytest.mark.parametrize("n_games", [1, 3])
def test_players_that_only_interact_are_found(n_games):
    """The product of three players has no effect of any of them alone on a centred value."""
    members = coalitions(30, 150)
    signs = np.where(members, 1.0, -1.0)
    values = np.outer(signs[:, [3, 11, 20]].prod(axis=1), np.arange(1.0, n_games + 1))
    prior, start = Variances(0.15, 0.3, 0.2, 0.0), np.ones(30)
    arguments = Products(members, np.ones(30)), values, None, prior, SizeFactors(), start
    weights, variances = fitted_strengths(*arguments)
    assert set(np.argsort(-weights)[:3]) == {3, 11, 20}
    assert weights[[3, 11, 20]].sum() > 0.4  # 0.1 if all were alike
    assert variances.triples > 3 * max(variances.pairs, variances.larger)
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-12)


def test_errors_of_values_are_no_energy():
    """Values that are nothing but errors leave all players alike."""
    members = coalitions(20, 80)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(len(members), 1))
    no_pairs = np.zeros(0, dtype=int)
    errors = ErrorCovariances(
        np.full((1, len(members)), 100.0), no_pairs, no_pairs, np.zeros((1, 0))
    )
    prior, start = Variances(0.15, 0.3, 0.2, 0.0), np.ones(20)
    spreads = []
    for of_errors in (errors, None):
        products = Products(members, np.ones(20))
        weights, _ = fitted_strengths(products, values, of_errors, prior, SizeFactors(), start)
        spreads.append(np.log(weights).std())
    assert spreads[0] < 0.5 * spreads[1]

"""`oddgp` evaluates all coalitions of two players where the first values show a smooth game."""

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import shapley_adapters as core
from shapley_adapters.coalitions.tables import end_points
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.estimators.odd_gp.design import (
    n_pairs_before_choice,
    pairs_for_smooth_games,
    spread_pairs,
)
from shapley_adapters.estimators.odd_gp.smooth_games import _kernels, are_smooth
from shapley_adapters.estimators.protocol import DesignRequest
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import TableGame

N_PLAYERS, BUDGET = 10, 162


def coalitions_of(n_players):
    return (np.arange(2**n_players)[:, None] >> np.arange(n_players)) % 2 == 1


def games_of_sets(sizes, n_rows, seed=0, scale=1.0):
    """Sums of products of signs over all sets of some sizes, with normal coefficients of mean 1."""
    rng, signs = np.random.default_rng(seed), 2.0 * coalitions_of(N_PLAYERS) - 1
    tables = np.zeros((n_rows, len(signs)))
    for size in sizes:
        sets = list(combinations(range(N_PLAYERS), size))
        products = np.stack([signs[:, list(of_set)].prod(axis=1) for of_set in sets])
        tables += (1 + rng.normal(size=(n_rows, len(sets)))) @ products / len(sets)
    return tables[:, :, None] * scale


def votes(n_rows, seed=0):
    weights = np.random.default_rng(seed).integers(1, 9, size=(n_rows, N_PLAYERS))
    sums = coalitions_of(N_PLAYERS) @ weights.T
    return (sums > weights.sum(axis=1) / 2).T.astype(float)[:, :, None]


def run(game, budget=BUDGET, **settings):
    return core.estimate(game, core.OddGP(), core.Settings(seed=3, budget=budget, **settings))


def n_twos(game, row):
    """Return how many coalitions of two players were evaluated for a row."""
    places = np.array([place for of_row, place in game.asked if of_row == row])
    return np.count_nonzero(coalitions_of(N_PLAYERS)[np.unique(places)].sum(axis=1) == 2)


def test_smooth_games_get_all_coalitions_of_two_and_others_do_not():
    tables = np.concatenate([games_of_sets((1, 2, 3), 3), votes(3), games_of_sets((1, 3, 4), 3)])
    game = TableGame(tables)
    found = run(game)
    counts = [n_twos(game, row) for row in range(9)]
    assert counts[:3] == [comb(N_PLAYERS, 2)] * 3
    assert max(counts[3:]) < comb(N_PLAYERS, 2) / 2
    assert (found.evaluations == BUDGET).all()
    exact = game_shapley_values(game)
    errors = np.abs(found.values - exact).sum(axis=(1, 2)) / np.abs(exact).sum(axis=(1, 2))
    assert errors[:3].max() < 5e-3  # .04 with the coalitions of the others
    assert errors[3:6].max() > 2e-2
    inside = np.abs(found.values - exact) <= 3 * found.standard_errors
    assert inside.mean() > 0.9


def test_a_row_does_not_depend_on_its_company():
    tables = np.concatenate([games_of_sets((1, 2, 3), 2), votes(2)])[[0, 2, 1, 3]]
    together = run(TableGame(tables))
    in_small_batches = run(TableGame(tables, evaluations_per_batch=7))
    in_threads = run(TableGame(tables), n_jobs=2)
    reversed_rows = run(TableGame(tables[::-1]))
    for other in (in_small_batches, in_threads):
        np.testing.assert_allclose(other.values, together.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(reversed_rows.values[::-1], together.values, rtol=0, atol=1e-12)
    for row in range(4):
        alone = run(TableGame(tables[row : row + 1]))
        np.testing.assert_allclose(alone.values[0], together.values[row], rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            alone.standard_errors[0], together.standard_errors[row], rtol=1e-9
        )


@pytest.mark.parametrize("exponent", [-900, 500, 900])
def test_the_choice_does_not_depend_on_the_units(exponent):
    tables = np.concatenate([games_of_sets((1, 2, 3), 2), votes(1)])
    ordinary, extreme = run(TableGame(tables)), run(TableGame(np.ldexp(tables, exponent)))
    np.testing.assert_array_equal(np.ldexp(ordinary.values, exponent), extreme.values)


def test_outputs_share_coalitions_and_those_without_even_part_say_nothing():
    smooth, odd_only = games_of_sets((1, 2, 3), 2), games_of_sets((1, 3), 2, seed=1)
    game = TableGame(np.concatenate([smooth, odd_only, smooth[::-1]], axis=2))
    run(game)
    assert n_twos(game, 0) == n_twos(game, 1) == comb(N_PLAYERS, 2)
    alone = TableGame(odd_only)
    run(alone)
    assert n_twos(alone, 0) < comb(N_PLAYERS, 2) / 2


def test_a_trace_ends_with_the_estimate():
    game = TableGame(np.concatenate([games_of_sets((1, 2, 3), 2), votes(1)]))
    found = run(game, trace=True)
    np.testing.assert_array_equal(found.trace.values[:, :, -1], found.values)
    np.testing.assert_array_equal(found.values, run(game).values)
    assert np.isfinite(found.trace.values[:, :, -3:]).all()


def test_a_tolerance_leaves_no_choice():
    """The row may end before all coalitions of two are evaluated."""
    for planned, has_choice in ((60, False), (BUDGET, True)):
        known, rng = end_points(N_PLAYERS), np.random.default_rng(0)
        request = DesignRequest(N_PLAYERS, BUDGET, planned, rng, known)
        assert (core.OddGP().design(request).n_before_choice > 0) == has_choice


@pytest.mark.parametrize("n_players", [9, 10, 11, 12, 13])
def test_the_pairs_of_smooth_games_begin_with_the_same_and_have_all_of_two(n_players):
    n_small, counts = n_players * (n_players + 1) // 2, []
    for n_pairs in range(n_players, 2 * n_small):
        n_first = n_pairs_before_choice(n_players, n_pairs)
        counts.append(n_first > 0)
        if not n_first:
            continue
        pairs = spread_pairs(n_players, n_pairs, np.random.default_rng(0))
        of_smooth = pairs_for_smooth_games(pairs, n_first)
        np.testing.assert_array_equal(of_smooth[:n_first], pairs[:n_first])
        codes = np.sort(np.packbits(of_smooth ^ of_smooth[:, :1], axis=1), axis=0)
        assert len(of_smooth) == n_pairs
        assert len(np.unique(of_smooth ^ of_smooth[:, :1], axis=0)) == n_pairs, codes
        sizes = np.minimum(of_smooth.sum(axis=1), n_players - of_smooth.sum(axis=1))
        assert np.count_nonzero(sizes == 1) == n_players
        assert np.count_nonzero(sizes == 2) == comb(n_players, 2)
    assert any(counts)
    assert not counts[0]
    assert not counts[-1]


def test_priors_are_those_of_sets_written_out():
    """A sum over sets with coefficients of their own, and one more for all sets of a size."""
    n_players, level, rng = 6, 1.3, np.random.default_rng(0)
    signs = np.where(rng.random((9, n_players)) < 0.5, 1.0, -1.0)
    strength = level / n_players
    variances, kernels = {}, {}
    for size in (2, 4, 6):
        sets = [list(of_set) for of_set in combinations(range(n_players), size)]
        products = np.stack([signs[:, of_set].prod(axis=1) for of_set in sets], axis=1)
        variances[size] = len(sets) * strength**size
        total = products.sum(axis=1)
        kernels[size] = np.stack([products @ products.T, np.outer(total, total)]) / len(sets)
    norm = sum(variances.values())
    weighted = [variances[size] / norm * kernels[size] for size in kernels]
    alone, shared = np.sum(weighted, axis=0)
    found = _kernels(signs, level)
    for kernel, variance in zip(found, (0.0, 0.03, 0.3), strict=True):
        np.testing.assert_allclose(kernel, alone + variance * shared, rtol=0, atol=1e-12)


def test_games_are_told_by_the_evidence_of_pairs_and_larger_sets():
    """The evidence with the best scale, written out from densities of differences."""
    n_players, rng = 7, np.random.default_rng(1)
    signs = np.ones((13, n_players))
    signs[1:8] -= 2 * np.eye(n_players)
    signs[8:] = np.where(rng.random((5, n_players)) < 0.5, 1.0, -1.0)
    pairs = np.stack([signs[:, list(c)].prod(axis=1) for c in combinations(range(n_players), 2)])
    of_pairs = (1 + rng.normal(size=(5, len(pairs)))) @ (pairs[:, 1:] - pairs[:, :1])
    evens = np.concatenate([of_pairs, rng.normal(size=(5, 12)) * np.linspace(0.1, 3, 12)])[
        ..., None
    ]
    differences = np.hstack([-np.ones((12, 1)), np.eye(12)])

    def evidence(kernel, values):
        noise = 1e-6 * np.eye(13)
        covariance = differences @ (kernel + noise) @ differences.T + 4e-10 * np.eye(12)
        scale = values @ np.linalg.solve(covariance, values) / 12
        return multivariate_normal.logpdf(values, cov=scale * covariance)

    def mean(levels, values):
        kernels = [kernel for level in levels for kernel in _kernels(signs, level)]
        return np.logaddexp.reduce([evidence(kernel, values) for kernel in kernels]) - np.log(
            len(kernels)
        )

    ratios = [
        mean((0.1, 0.3), values) - mean((0.7, 1.2, 2.0, 3.5, 6.0), values)
        for values in evens[:, :, 0]
    ]
    assert 0 < sum(ratio > 1 for ratio in ratios) < 10
    assert are_smooth(signs, evens).tolist() == [ratio > 1 for ratio in ratios]
    shifted = np.concatenate([evens, 0 * evens], axis=2)
    assert are_smooth(signs, shifted).tolist() == [ratio > 1 for ratio in ratios]
    assert not are_smooth(signs, 0 * evens).any()


def test_estimators_without_such_designs_say_so():
    estimator: Any = core.RandomOrder()
    with pytest.raises(InvalidArgumentError, match="RandomOrder has no designs that leave"):
        estimator.chosen_designs(None, None)

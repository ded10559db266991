"""Values times a power of two, of which no square is a number, have such results, too."""

from itertools import product

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.interactions.result import checked_pairs
from tests.helpers.estimator_table import OF_CLASSES, OF_KINDS
from tests.helpers.reference_games import TableGame, smooth_game

N_PLAYERS = 6

OPTIONS_OF_POSTERIORS = [
    {"weights": weights, "unbiased": unbiased}
    for weights, unbiased in product(("learned", "equal"), (False, True))
]


def scaled_game(factor):
    """Return two rows of two outputs, the second output a thousand times the first."""
    values = smooth_game(N_PLAYERS, n_rows=2, n_outputs=2, seed=3).values
    return TableGame(values * [1.0, 1024.0] * factor)


def assert_scaled(found, ordinary, factor, rounding=0.0):
    """Bit for bit, but for the rounding of errors."""
    np.testing.assert_array_equal(found.values, ordinary.values * factor)
    for name, of_name in (("standard_errors", factor), ("degrees_of_freedom", 1.0)):
        expected = getattr(ordinary, name) * of_name
        np.testing.assert_allclose(getattr(found, name), expected, rtol=rounding, atol=0)
    assert np.isfinite(found.values).all()


@pytest.mark.parametrize(
    ("row", "exponent"),
    [*((row, 500) for row in OF_CLASSES), *((row, -500) for row in OF_KINDS)],
    ids=lambda value: getattr(value, "id", value),
)
def test_results_scale_with_the_values(row, exponent):
    budget = max(row.least(N_PLAYERS), 40)
    ordinary, found = (row.estimate(scaled_game(factor), budget) for factor in (1.0, 2.0**exponent))
    # SHEAR shares variances between players by their logarithms.
    rounding = 1e-12 if row.estimator is core.Shear else 0.0
    assert_scaled(found, ordinary, 2.0**exponent, rounding)


@pytest.mark.parametrize("exponent", [500, -500])
@pytest.mark.parametrize(
    ("estimator", "index"),
    [
        (core.OddGP(), "shapley"),
        (core.OddGP(), "shapley_taylor"),
        (core.OddGP("equal"), "banzhaf"),
        (core.LeastSquares(), "shapley"),
    ],
    ids=str,
)
def test_interactions_scale_with_the_values(estimator, index, exponent):
    settings = core.Settings(seed=0, budget=46, interactions=checked_pairs("", index))
    ordinary, found = (
        core.estimate(scaled_game(factor), estimator, settings) for factor in (1.0, 2.0**exponent)
    )
    assert_scaled(found, ordinary, 2.0**exponent)
    pairs, expected = found.interactions, ordinary.interactions
    for name in ("values", "standard_errors", "main_errors"):
        np.testing.assert_array_equal(getattr(pairs, name), getattr(expected, name) * 2.0**exponent)


@pytest.mark.parametrize("index", ["shapley", "shapley_taylor", "banzhaf"])
@pytest.mark.parametrize("budget", [46, 64])
def test_interactions_of_the_largest_numbers_do_not_overflow(index, budget):
    """The values of all coalitions add up to more than the largest number."""
    largest = np.abs(scaled_game(1.0).values).max()
    factor = 2.0 ** (1023 - np.ceil(np.log2(largest)))
    settings = core.Settings(seed=0, budget=budget, interactions=checked_pairs("", index))
    ordinary, found = (
        core.estimate(scaled_game(by), core.OddGP(), settings).interactions for by in (1.0, factor)
    )
    for name in ("values", "standard_errors", "main_errors"):
        np.testing.assert_array_equal(getattr(found, name), getattr(ordinary, name) * factor)


@pytest.mark.parametrize("options", OPTIONS_OF_POSTERIORS, ids=str)
def test_rounds_and_traces_scale_with_the_values(options):
    """Rows stop after as many evaluations."""
    results = []
    for factor in (1.0, 2.0**500):
        settings = core.Settings(
            seed=0, budget=60, tolerance=core.Tolerance(13.0 * factor), trace=True
        )
        results.append(core.estimate(scaled_game(factor), core.OddGP(**options), settings))
    assert_scaled(results[1], results[0], 2.0**500)
    np.testing.assert_array_equal(results[1].evaluations, results[0].evaluations)


@pytest.mark.parametrize("options", OPTIONS_OF_POSTERIORS, ids=str)
def test_outputs_of_one_row_may_have_any_scales(options):
    factors = np.array([2.0**-500, 2.0**500])
    values = smooth_game(N_PLAYERS, n_rows=2, n_outputs=2, seed=3).values
    settings = core.Settings(seed=0, budget=40)
    ordinary, found = (
        core.estimate(TableGame(values * of_outputs), core.OddGP(**options), settings)
        for of_outputs in (np.ones(2), factors)
    )
    np.testing.assert_array_equal(found.values, ordinary.values * factors)
    np.testing.assert_array_equal(found.standard_errors, ordinary.standard_errors * factors)

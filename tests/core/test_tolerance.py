"""Stopping at a tolerance: rows stop when their standard errors are small enough, not before."""

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtWarning,
)
from shapley_adapters.pipeline.settings import checked_tolerance
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.estimator_table import ESTIMATORS, OF_CLASSES, OF_CORE, OF_KINDS, over
from tests.helpers.reference_games import (
    TableGame,
    additive_game,
    asked_for_estimate,
    random_game,
    smooth_game,
)

M = 11
STOPS = [row for row in OF_CORE if not row.is_exact and row.options.get("complement") != "none"]


def mixed_games():
    """Return four games of growing noise: the first is easy, the last is hard."""
    values = smooth_game(M, n_rows=4, seed=3).values
    noise = random_game(M, n_rows=4, seed=4).values
    return TableGame(values + np.array([0, 0.02, 0.1, 0.5])[:, None, None] * noise)


@over(OF_KINDS[:2])
def test_rows_stop_when_they_are_good_enough(row):
    game = mixed_games()
    tolerance = core.Tolerance(0.05)
    result = row.estimate(game, budget=2048, tolerance=tolerance)
    for_estimate = asked_for_estimate(game, result)
    assert len(set(for_estimate)) == len(for_estimate)
    asked = np.bincount([r for r, _ in for_estimate], minlength=4)
    np.testing.assert_array_equal(asked, result.evaluations)
    assert result.standard_errors.max() <= 0.05
    assert result.evaluations[0] < result.evaluations[3]  # the harder the later
    assert result.evaluations[3] <= 2048
    # A row that stops is the row that would have been estimated with other company.
    alone = row.estimate(TableGame(game.values[[1]]), budget=2048, tolerance=tolerance)
    np.testing.assert_allclose(alone.values[0], result.values[1], atol=1e-12)
    np.testing.assert_array_equal(alone.evaluations[0], result.evaluations[1])


@over([row for row in OF_CLASSES if row in STOPS])
def test_the_estimate_is_as_good_as_it_says(row):
    """Errors in units of the standard errors, over 60 rows: their mean square is about 1.

    Random orders may stop after eight units: the mean square of Student's t with seven degrees of
    freedom is 1.4 for normal contributions, and more for those with long tails; and stopping
    prefers moments in which errors look small. Least squares without replacement and SHEAR tell
    errors that are too large.
    """
    if not row.is_unbiased and row.cooperators is not None:
        pytest.skip("bias is no part of a standard error")
    game = smooth_game(M, n_rows=60, seed=8)
    result = row.estimate(game, budget=2048, tolerance=core.Tolerance(0.1), seed=2)
    is_drawn = result.evaluations < 2048
    assert is_drawn.sum() > 40
    z = (result.values - game_shapley_values(game))[is_drawn] / result.standard_errors[is_drawn]
    assert 0.5 < np.mean(z**2) < 2.6


@over(OF_KINDS)
def test_a_hard_row_ends_with_all_coalitions_where_the_budget_pays_for_them(row):
    game = random_game(8, n_rows=3, n_outputs=2)
    result = row.estimate(game, budget=256, tolerance=core.Tolerance(1e-9))
    np.testing.assert_allclose(result.values, game_shapley_values(game), atol=1e-10)
    assert (result.standard_errors == 0).all()
    assert result.evaluations.tolist() == [256] * 3
    for_estimate = asked_for_estimate(game, result)
    assert len(set(for_estimate)) == len(for_estimate) == 3 * 256


@over(OF_KINDS)
def test_a_row_that_is_not_good_enough_is_warned_of(row):
    game = random_game(M, n_rows=3)
    with pytest.warns(ShapleyExtWarning, match="3 of 3 rows did not reach the tolerance within"):
        result = row.estimate(game, budget=300, tolerance=core.Tolerance(1e-3))
    assert (result.evaluations <= 300).all()
    assert (result.evaluations > 250).all()


@over([row for row in OF_CLASSES if row in STOPS and row.exact_on_additive])
def test_an_easy_game_stops_at_once(row):
    result = row.estimate(additive_game(np.arange(M)), budget=1900, tolerance=core.Tolerance(0.01))
    assert result.evaluations[0] <= 4 * row.build().minimum_budget(M, True) + 4 * M * (M + 1) // 2
    np.testing.assert_allclose(result.values[0, :, 0], np.arange(M), atol=row.rounding)


def test_batches_stay_full_while_rows_stop():
    game = smooth_game(M, n_rows=60, seed=8)
    row = next(row for row in STOPS if row.id == "random order, single")
    result = row.estimate(game, budget=2048, tolerance=core.Tolerance(0.04), batch_size=50)
    assert len(set(result.evaluations)) > 5
    # One batch of each round may be smaller; rounds grow, so that they are few.
    assert np.mean(np.array(game.batch_sizes) == 50) > 0.9


def test_relative_tolerance_is_a_part_of_the_range():
    row = next(row for row in STOPS if row.id == "random order")
    game = mixed_games()
    result = row.estimate(game, budget=1900, tolerance=core.Tolerance(0.05, is_relative=True))
    spread = np.ptp(result.values, axis=1)
    assert (result.standard_errors.max(axis=1) <= 0.05 * spread).all()


def test_nothing_random_has_nothing_to_stop_for():
    row = next(row for row in ESTIMATORS if row.options.get("complement") == "none")
    with pytest.raises(InvalidArgumentError, match="complement='none'"):
        row.estimate(random_game(M), budget=500, tolerance=core.Tolerance(0.1))
    exact = ESTIMATORS[0].estimate(random_game(6), budget=64, tolerance=core.Tolerance(0.1))
    assert (exact.standard_errors == 0).all()


@pytest.mark.parametrize(
    ("given", "amount", "is_relative"),
    [(0.5, 0.5, False), (1, 1.0, False), ("2%", 0.02, True), (" 0.5 % ", 0.005, True)],
)
def test_tolerances_are_read(given, amount, is_relative):
    assert checked_tolerance(given) == core.Tolerance(amount, is_relative)
    assert checked_tolerance(None) is None


@pytest.mark.parametrize("given", [0, -1.0, float("nan"), float("inf"), "1", "x%", "-3%", "0%", ""])
def test_tolerances_of_no_use_are_refused(given):
    with pytest.raises(InvalidArgumentError, match="tolerance must be a positive number"):
        checked_tolerance(given)
    for wrong in (True, [0.1], {}, b"1%"):
        with pytest.raises(InvalidArgumentTypeError, match="tolerance must be"):
            checked_tolerance(wrong)

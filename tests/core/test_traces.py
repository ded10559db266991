"""The estimates from the first evaluations of a run."""

import joblib
import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.pipeline.settings import checked_tolerance
from tests.helpers.estimator_table import OF_CLASSES, OF_CORE, OF_KINDS, over
from tests.helpers.reference_games import random_game, smooth_game

N_PLAYERS = 10
BUDGET = 300


@over(OF_KINDS)
def test_a_trace_ends_at_the_estimate_and_changes_nothing(row):
    game = smooth_game(N_PLAYERS, n_rows=3, n_outputs=2)
    plain = row.estimate(game, BUDGET, seed=4, with_errors=True)
    traced = row.estimate(game, BUDGET, seed=4, trace=True)
    trace = traced.trace
    assert plain.trace is None
    np.testing.assert_array_equal(traced.values, plain.values)
    np.testing.assert_array_equal(traced.evaluations, plain.evaluations)
    assert traced.check_evaluations == plain.check_evaluations
    np.testing.assert_array_equal(trace.values[:, :, -1], traced.values)
    np.testing.assert_array_equal(trace.standard_errors[:, :, -1], traced.standard_errors)
    np.testing.assert_array_equal(trace.degrees_of_freedom[:, :, -1], traced.degrees_of_freedom)
    np.testing.assert_array_equal(trace.evaluations[:, -1], traced.evaluations)
    assert (np.diff(trace.evaluations, axis=1) >= 0).all()
    is_known = trace.evaluations > 0
    at_points = np.moveaxis(trace.values, 2, 1)
    assert np.isfinite(at_points[is_known]).all()
    assert np.isnan(at_points[~is_known]).all()


@pytest.mark.slow
@pytest.mark.parametrize("row", [r for r in OF_CLASSES[1:] if r in OF_CORE], ids=lambda r: r.id)
def test_early_points_are_as_good_as_runs_of_their_own(row):
    """Mean errors over 8 seeds; halves of a design may be somewhat worse than a design of half.

    That of `oddgp` is, by 1.7: its coalitions are chosen for the whole budget.
    """
    game, errors, of_runs = smooth_game(N_PLAYERS, n_rows=2), [], []
    exact = core.estimate(game, core.Exact(), core.Settings(seed=0)).values
    for seed in range(8):
        trace = row.estimate(game, BUDGET, seed=seed, trace=True).trace
        if not trace.evaluations[0, -3]:
            pytest.skip("half of the budget is too small for this estimator")
        errors.append(np.abs(trace.values[:, :, -3] - exact).sum())
        of_runs.append(np.abs(row.estimate(game, BUDGET // 2, seed=seed).values - exact).sum())
    assert np.mean(errors) < 1.8 * np.mean(of_runs)


def test_workers_give_the_same_trace():
    game = random_game(N_PLAYERS, n_rows=6)
    own, shared = (core.Settings(seed=1, budget=BUDGET, trace=True, n_jobs=n) for n in (1, 2))
    alone = core.estimate(game, core.OddGP(), own).trace
    with joblib.parallel_config("threading"):  # which start sooner than processes
        together = core.estimate(game, core.OddGP(), shared).trace
    np.testing.assert_array_equal(alone.values, together.values)
    np.testing.assert_array_equal(alone.evaluations, together.evaluations)


def test_rows_that_stop_early_have_traces_to_their_end():
    game = smooth_game(N_PLAYERS, n_rows=4)
    tolerance = checked_tolerance("5%")
    settings = core.Settings(seed=1, budget=900, trace=True, tolerance=tolerance)
    estimate = core.estimate(game, core.RandomOrder(), settings)
    np.testing.assert_array_equal(estimate.trace.evaluations[:, -1], estimate.evaluations)
    np.testing.assert_array_equal(estimate.trace.values[:, :, -1], estimate.values)
    assert (estimate.trace.evaluations[:, -2] > 0).all()


def test_enumerated_rows_have_one_point():
    settings = core.Settings(seed=0, trace=True)
    trace = core.estimate(random_game(5, n_rows=2), core.OddGP(), settings).trace
    assert (trace.evaluations[:, -1] == 32).all()
    assert (trace.evaluations[:, :-1] == 0).all()

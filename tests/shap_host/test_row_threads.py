"""Rows of `oddgp` are solved by several threads, and results do not depend on their number."""

import threading

import joblib
import numpy as np
import pytest
import shap
from threadpoolctl import threadpool_info, threadpool_limits

import shap_ext  # noqa: F401 # it makes shap know the algorithms
from shapley_adapters import workers
from shapley_adapters.estimators.odd_gp import games
from shapley_adapters.estimators.odd_gp.fitting import fitted

X = np.random.default_rng(0).normal(size=(37, 9))
"""An odd number of rows."""


def model(x):
    return np.tanh(x).prod(axis=1) + x[:, 0] * x[:, 1] * x[:, 2] + x.sum(axis=1)


def explain(rows=X):
    """Return attributions and standard errors of the rows, (rows, 2, 9), which share coalitions."""
    explainer = shap.Explainer(model, np.zeros((1, 9)), algorithm="oddgp", seed=0)
    values = explainer(rows, max_evals=200, silent=True).values
    errors = explainer.last_estimate.standard_errors
    assert (errors > 0).all()
    return np.stack([values, errors.reshape(values.shape)], axis=1)


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(4), raising=False)


@pytest.fixture
def seen_threads(monkeypatch):
    """Return the names of the threads that solve rows."""
    seen = set()

    def note(*arguments):
        seen.add(threading.current_thread().name)
        return fitted(*arguments)

    monkeypatch.setattr(games, "fitted", note)
    return seen


@pytest.mark.parametrize("n_threads", [2, 3, 4])
def test_results_are_the_same_whatever_the_number_of_threads(n_threads, seen_threads):
    with threadpool_limits(1, "blas"):
        alone = explain()
    assert seen_threads == {threading.current_thread().name}
    seen_threads.clear()
    with threadpool_limits(n_threads, "blas"):
        shared = explain()
    assert threading.current_thread().name not in seen_threads
    assert 1 <= len(seen_threads) <= n_threads
    np.testing.assert_array_equal(shared, alone)


def test_two_threads_solve_at_the_same_time(monkeypatch):
    """Each of two rows waits until the other one has begun."""
    both_are_there = threading.Barrier(2, timeout=20)

    def wait(*arguments):
        both_are_there.wait()
        return fitted(*arguments)

    monkeypatch.setattr(games, "fitted", wait)
    with threadpool_limits(2, "blas"):
        explain(X[0] * np.array([[1.0], [1.001]]))  # alike, so that their coalitions are the same


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_errors_of_a_thread_are_raised_and_blas_threads_restored(error, monkeypatch):
    def fail(*_):
        assert threading.current_thread() is not threading.main_thread()
        raise error("of a thread")

    monkeypatch.setattr(games, "posterior", fail)
    n_before = threading.active_count()
    with threadpool_limits(3, "blas"):
        with pytest.raises(error, match="of a thread"):
            explain()
        assert {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"} == {3}
    assert threading.active_count() == n_before


def test_numpy_settings_of_the_caller_hold_in_threads(monkeypatch):
    settings = []

    def note(*_):
        settings.append((threading.current_thread() is threading.main_thread(), np.geterr()))
        raise ZeroDivisionError

    monkeypatch.setattr(games, "fitted", note)
    with threadpool_limits(2, "blas"), np.errstate(over="raise"), pytest.raises(ZeroDivisionError):
        explain()
    assert {(is_main, found["over"]) for is_main, found in settings} == {(False, "raise")}


def test_the_number_of_threads():
    with threadpool_limits(1, "blas"):
        assert workers.n_threads_for_rows() == 1
        with joblib.parallel_config(n_jobs=2):
            assert workers.n_threads_for_rows() == 2
    with threadpool_limits(3, "blas"):
        assert workers.n_threads_for_rows() == 3
        with joblib.parallel_config(n_jobs=1):
            assert workers.n_threads_for_rows() == 1
        # Jobs of joblib share the cores already.
        count = joblib.delayed(workers.n_threads_for_rows)
        jobs = joblib.Parallel(n_jobs=2, backend="threading")
        assert jobs([count(), count()]) == [1, 1]
    with threadpool_limits(64, "blas"):
        assert workers.n_threads_for_rows() == 4  # the cores

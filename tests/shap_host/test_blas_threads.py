"""The user's model keeps its BLAS threads; our linear algebra has one."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import shap
from threadpoolctl import threadpool_info, threadpool_limits

import shap_ext  # noqa: F401 # it makes shap know the algorithms
import shapley_adapters as core
from shapley_adapters.workers import one_blas_thread
from tests.helpers.reference_games import random_game

X = np.random.default_rng(0).normal(size=(2, 8))


def blas_threads():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def three_threads():
    """Have more than one thread outside, also where the environment asks for one."""
    with threadpool_limits(3, "blas"):
        if set(blas_threads()) != {3}:
            pytest.skip("the BLAS library has no number of threads to set")
        yield


class Watched(core.OddGP):
    """Notes the numbers of threads in its own two phases."""

    inside: list[int]

    def __init__(self):
        super().__init__()
        object.__setattr__(self, "inside", [])

    def design(self, request):
        self.inside.extend(blas_threads())
        return super().design(request)

    def solve(self, design, values):
        self.inside.extend(blas_threads())
        return super().solve(design, values)


def test_a_model_sees_the_threads_that_there_are_outside():
    seen = []

    def model(x):
        seen.extend(blas_threads())
        return np.tanh(x).prod(axis=1)

    explainer = shap.Explainer(model, np.zeros((1, 8)), algorithm="oddgp", seed=0)
    explainer(X, max_evals=100, batch_size=20, silent=True)
    assert len(seen) > 5
    assert set(seen) == {3}
    assert set(blas_threads()) == {3}


def test_designs_and_solutions_have_one_thread():
    estimator = Watched()
    core.estimate(random_game(8), estimator, core.Settings(seed=0, budget=100))
    assert set(estimator.inside) == {1}
    assert set(blas_threads()) == {3}


def test_the_last_of_several_threads_restores():
    first_is_in, second_is_in, first_is_out = (threading.Event() for _ in range(3))
    seen = {}

    def first():
        with one_blas_thread():
            first_is_in.set()
            second_is_in.wait(10)
        first_is_out.set()

    def second():
        first_is_in.wait(10)
        with one_blas_thread(), one_blas_thread():
            second_is_in.set()
            first_is_out.wait(10)
            seen["alone"] = blas_threads()

    threads = [threading.Thread(target=one) for one in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert set(seen["alone"]) == {1}
    assert set(blas_threads()) == {3}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_forked_during_a_solution_has_its_threads_back():
    code = """
import os, threading
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits
from shapley_adapters.workers import one_blas_thread

def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

threadpool_limits(3, "blas")
is_in, may_leave = threading.Event(), threading.Event()
def solve():
    with one_blas_thread():
        is_in.set()
        may_leave.wait(20)
thread = threading.Thread(target=solve)
thread.start()
is_in.wait(20)
child = os.fork()
if child == 0:
    ok = blas_threads() == {3}
    with one_blas_thread():
        ok &= blas_threads() == {1}
    os._exit(0 if ok and blas_threads() == {3} else 1)
status = os.waitpid(child, 0)[1]
may_leave.set()
thread.join()
print(status, blas_threads())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True, text=True, check=True, timeout=60, env=environment,
    )  # fmt: skip
    assert done.stdout.split() == ["0", "{3}"]

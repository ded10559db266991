"""Speed-up by workers: one call with 1 and 2 workers, on each backend of joblib that is installed.

    python benchmarks/scaling.py [--quick] [--backends loky dask]
                                       [--parts speed memory kills] [--kills 30]

Of the other parts, "memory" prints the highest memory of streams of more and more rows, and "kills"
repeats the test that kills streams at random moments and compares what they write in the end.

The model takes about 1 ms of one core for an evaluation, in pure Python. Threads cannot share such
a model; for them, the same time is spent in NumPy, which releases Python's lock. Workers are
started, and have imported what they need, before the clock runs. The numbers of all calls are
compared bit by bit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import shap
from streams import in_process

import shap_ext  # noqa: F401 # it makes shap know the algorithms

N_PLAYERS, BUDGET = 12, 200
PARTS = ("speed", "memory", "kills")
KILL_TEST = str(Path(__file__).parents[1] / "tests" / "parity" / "test_stream_kills.py")


@dataclass(frozen=True)
class SlowModel:
    """A model that repeats some arithmetic for each row.

    Attributes
    ----------
    n_steps : int
        The number of repetitions.
    releases_lock : bool
        Whether NumPy repeats it, in one operation, rather than Python.
    """

    n_steps: int
    releases_lock: bool = False

    def __call__(self, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the product of sines of each row, after the repetitions."""
        for _ in range(len(x)):
            if self.releases_lock:
                np.sin(np.arange(self.n_steps, dtype=float))
            else:
                _count(self.n_steps)
        outputs: npt.NDArray[np.float64] = np.sin(x).prod(axis=1)
        return outputs


def _count(n_steps: int) -> int:
    total = 0
    for step in range(n_steps):
        total += step
    return total


def slow_model(releases_lock: bool) -> SlowModel:
    """Return a model of 1 ms per evaluation on this machine."""
    rows, n_steps = np.zeros((1, N_PLAYERS)), 20_000
    times = []
    for _ in range(30):
        started = time.perf_counter()
        SlowModel(n_steps, releases_lock)(rows)
        times.append(time.perf_counter() - started)
    return SlowModel(round(n_steps * 1e-3 / min(times)), releases_lock)


@contextmanager
def _local() -> Iterator[None]:
    yield


@contextmanager
def _dask() -> Iterator[None]:
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        yield


@contextmanager
def _ray() -> Iterator[None]:
    import ray
    from ray.util.joblib import register_ray

    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    yield
    ray.shutdown()


@contextmanager
def _spark() -> Iterator[None]:
    from joblibspark import register_spark
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    with ExitStack() as stack:
        stack.callback(session.getOrCreate().stop)
        register_spark()
        yield


BACKENDS: dict[str, tuple[str, Callable[[], Any]]] = {
    "loky": ("joblib", _local),
    "threading": ("joblib", _local),
    "dask": ("distributed", _dask),
    "ray": ("ray", _ray),
    "spark": ("joblibspark", _spark),
}


def explained(model: SlowModel, n_rows: int, n_jobs: int) -> tuple[float, Any]:
    """Return the seconds of a call, and its values."""
    rows = np.random.default_rng(0).normal(size=(n_rows, N_PLAYERS))
    background = np.zeros((1, N_PLAYERS))
    explainer = shap.Explainer(model, background, algorithm="randomorder", seed=0, n_jobs=n_jobs)
    started = time.perf_counter()
    values = explainer(rows, max_evals=BUDGET, silent=True).values
    return time.perf_counter() - started, values


def measure(backend: str, n_rows: int, n_times: int) -> None:
    """Print the times of a backend with 1 and 2 workers, in turns; the best of each."""
    package, started = BACKENDS[backend]
    if find_spec(package) is None:
        print(f"{backend:10} SKIPPED: {package} is not installed")
        return
    model = slow_model(backend == "threading")
    with started(), joblib.parallel_config(backend=backend):
        explained(SlowModel(1, model.releases_lock), 8, 2)  # start the workers
        seconds: dict[int, list[float]] = {1: [], 2: []}
        found: dict[int, Any] = {}
        for _ in range(n_times):
            for n_jobs, times in seconds.items():
                time_of_call, values = explained(model, n_rows, n_jobs)
                times.append(time_of_call)
                found[n_jobs] = values
            np.testing.assert_array_equal(found[2], found[1])
    one, two = min(seconds[1]), min(seconds[2])
    print(f"{backend:10} {one:8.2f} {two:8.2f} {one / two:8.2f}", flush=True)


def print_memory(row_numbers: tuple[int, ...]) -> None:
    """Print the seconds and the highest memory of streams of 13 features, 32 evaluations a row."""
    print(f"\n{'rows':>10} {'seconds':>8} {'MB':>6}  (stream to .npy)")
    for n_rows in row_numbers:
        cost = in_process(n_rows, 13, 32, "npy")
        print(f"{n_rows:>10,} {cost['seconds']:8.1f} {cost['peak_mb']:6.0f}", flush=True)


def print_kills(n_kills: int) -> None:
    """Run the test of killed streams, and print what it says in the end."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:warnings", KILL_TEST],
        env={**os.environ, "SHAPLEY_EXT_KILLS": str(n_kills)},
        check=False,
        capture_output=True,
        text=True,
    )
    last = done.stdout.strip().splitlines()[-1]
    print(f"\n{n_kills} kills and a stop before each step on disk: {last}")
    print(f"{time.perf_counter() - started:.0f} s")


def main() -> None:
    """Measure the backends that the command names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows: shows that it runs")
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["speed"])
    parser.add_argument("--kills", type=int, default=30)
    arguments = parser.parse_args()
    if "speed" in arguments.parts:
        print_speed(arguments)
    if "memory" in arguments.parts:
        print_memory((10**3, 10**4) if arguments.quick else (10**3, 10**4, 10**5, 10**6))
    if "kills" in arguments.parts:
        print_kills(arguments.kills)


def print_speed(arguments: argparse.Namespace) -> None:
    """Print the speed-up on each backend."""
    n_rows, n_times = (4, 1) if arguments.quick else (32, 2)
    print(f"{n_rows} rows, {BUDGET} evaluations each of 1 ms; {joblib.cpu_count()} cores")
    print(f"{'backend':10} {'1 [s]':>8} {'2 [s]':>8} {'speed-up':>8}")
    for backend in arguments.backends:
        measure(backend, n_rows, n_times)


if __name__ == "__main__":
    main()

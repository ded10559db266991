"""Streams in processes that are killed, started by the tests as a script.

The script imports the packages once and forks a process for each attempt, so that a kill costs
milliseconds. It prints what happened as JSON.

    python killed_streams.py FOLDER HOST ENDING kills N SEED    (SIGKILL at random moments)
    python killed_streams.py FOLDER HOST ENDING steps           (a stop before each step on disk)
    python killed_streams.py FOLDER HOST ENDING pairs N         (two processes for one result)
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

N_FEATURES, BUDGET, CHUNK = 8, 80, 4
N_ROWS = {"kills": 40, "steps": 12}
X = np.random.default_rng(0).normal(size=(N_ROWS["kills"], N_FEATURES))


def streams_of_shap(n_rows: int, delay: float) -> Callable:
    import shap

    import shap_ext

    def model(X):
        time.sleep(delay)
        return X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] * X[:, 4] + X[:, 5]

    def run(out):
        explainer = shap.Explainer(model, np.zeros((1, N_FEATURES)), algorithm="shear", seed=2)
        options = {"checkpoint": True, "chunk_size": CHUNK, "silent": True}
        rows = (row for row in X[:n_rows])
        explainer.explain_stream(rows, out, max_evals=BUDGET, error_bounds=True, **options)
        return shap_ext.StreamedExplanations.open(out)

    return run


def streams_of_captum(n_rows: int, delay: float) -> Callable:
    import torch

    import captum_ext

    def model(x):
        time.sleep(delay)
        return x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] * x[:, 4] + x[:, 5]

    def run(out):
        method = captum_ext.LeastSquares(model, seed=2)
        options: Any = {"checkpoint": True, "chunk_size": CHUNK, "return_standard_error": True}
        batches = (
            torch.from_numpy(X[start : min(n_rows, start + 3)]) for start in range(0, n_rows, 3)
        )
        method.attribute_stream(batches, out, n_samples=BUDGET, **options)
        return captum_ext.StreamedAttributions.open(out)

    return run


def forked(work: Callable[[], object]) -> int:
    """Start work in a process of its own, and return its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        # tqdm's own lock is shared by forked processes: who is killed with it locks all others out.
        tqdm.set_lock(threading.RLock())
        work()
        status = 0
    finally:
        os._exit(status)


def status_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def contents(run: Callable, out: Path) -> dict[str, bytes]:
    """Return the bytes of the files of a complete result."""
    stream = run(out)
    if not stream.is_complete or stream.n_rows not in N_ROWS.values():
        raise RuntimeError(f"{stream} is not complete.")
    return {path.name: path.read_bytes() for path in out.iterdir()}


def killed_at_random(streams: Callable, folder: Path, ending: str, n: int, seed: int) -> dict:
    """Kill the process until `n` kills have hit, and compare each finished result."""
    run = streams(N_ROWS["kills"], 0.004)
    started = time.perf_counter()
    if status_of(forked(lambda: run(folder / f"whole{ending}"))) != 0:
        raise RuntimeError("the uninterrupted run failed")
    seconds = time.perf_counter() - started
    wanted = contents(run, folder / f"whole{ending}")
    rng = np.random.default_rng(seed)
    n_killed, n_finished, is_same, attempt = 0, 0, True, 0
    while n_killed < n or n_finished == 0:
        out = folder / f"attempt {n_finished}{ending}"
        child = forked(partial(run, out))
        if n_killed < n:
            time.sleep(rng.uniform(0, 0.5 * seconds))
            os.kill(child, signal.SIGKILL)
        status = status_of(child)
        attempt += 1
        n_killed += status == -signal.SIGKILL
        if status == 0:
            n_finished += 1
            is_same &= contents(run, out) == wanted
        elif status != -signal.SIGKILL:
            raise RuntimeError(f"attempt {attempt} ended with {status}")
    return {"kills": n_killed, "finished": n_finished, "same": is_same}


def stopped_before_steps(streams: Callable, folder: Path, ending: str) -> dict:
    """Stop before the first, the second, … step on disk; go on, and compare."""
    run = streams(N_ROWS["steps"], 0.0)
    wanted = contents(run, folder / f"whole{ending}")
    n_steps, is_same = 0, True
    while True:
        out = folder / f"step {n_steps}{ending}"
        status = status_of(forked(partial(stopping, partial(run, out), n_steps)))
        if status == 0:
            return {"steps": n_steps, "same": is_same}
        if status != 9:
            raise RuntimeError(f"step {n_steps} ended with {status}")
        is_same &= contents(run, out) == wanted
        n_steps += 1


def started_in_pairs(streams: Callable, folder: Path, ending: str, n: int) -> dict:
    """Start two processes for one result, of which the later one is refused, and compare."""
    run = streams(N_ROWS["steps"], 0.001)
    wanted, n_finished, n_refused, is_same = contents(run, folder / f"whole{ending}"), 0, 0, True
    for pair in range(n):
        out = folder / f"pair {pair}{ending}"
        statuses = [status_of(child) for child in [forked(partial(run, out)) for _ in range(2)]]
        n_finished, n_refused = n_finished + statuses.count(0), n_refused + statuses.count(1)
        is_same &= {path.name: path.read_bytes() for path in out.iterdir()} == wanted
    return {"finished": n_finished, "refused": n_refused, "same": is_same}


def stopping(work: Callable[[], object], n_steps: int) -> None:
    """Do some work, and end the process before one step on disk."""
    left = n_steps

    def counted(step: Callable) -> Callable:
        def stop_or_step(*arguments):
            nonlocal left
            if left == 0:
                os._exit(9)
            left -= 1
            return step(*arguments)

        return stop_or_step

    for name in ("fsync", "replace", "mkdir"):
        setattr(os, name, counted(getattr(os, name)))
    work()


def main() -> None:
    folder, host, ending, kind, *numbers = sys.argv[1:]
    streams = {"shap": streams_of_shap, "captum": streams_of_captum}[host]
    if kind == "kills":
        found = killed_at_random(streams, Path(folder), ending, *map(int, numbers))
    elif kind == "pairs":
        found = started_in_pairs(streams, Path(folder), ending, *map(int, numbers))
    else:
        found = stopped_before_steps(streams, Path(folder), ending)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""A model behind HTTP: many calls at once, faults, and what an error costs in money.

    python benchmarks/remote_models.py [--latency 0.15] [--faults]

The server is on this machine. Prints how many times faster 16 calls at once are than one after the
other, for one row and for 20. With `--faults`: of each fault, whether the results are those of the
model, how often the user had to repeat the line, and how many right answers were sent for rows that
had one (paid twice).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import shap

import shap_ext

sys.path.append(str(Path(__file__).parents[1]))
from tests.helpers.faulty_server import FaultyServer

ROWS = np.random.default_rng(0).normal(size=(20, 20))
BACKGROUND = np.zeros((1, 20))
FAULTS: dict[str, dict[Any, float]] = {
    "status 503": {503: 0.2},
    "status 429, Retry-After: 1": {429: 0.02},
    "truncated bodies": {"truncated": 0.1},
    "a row is missing": {"short": 0.1},
    "rows with another entry": {"wide": 0.1},
    "NaN in a row": {"nan": 0.1},
    "answers after timeout=": {"late": 0.05},
    "all of these": {503: 0.1, "truncated": 0.05, "short": 0.05, "nan": 0.05, "late": 0.05},
}
OPTIONS: dict[str, Any] = {"rows_per_call": 8, "concurrency": 8, "timeout": 1.0, "retries": 6}


def model(rows: Any) -> Any:
    """Return a sum of sines and a product, computed row by row."""
    return np.array([np.sin(row).sum() + row[0] * row[1] for row in rows])


def explain(
    call: Callable[[Any], Any], rows: Any, max_evals: int = 400, **options: Any
) -> tuple[Any, float, shap_ext.RemoteModel]:
    """Return attributions, seconds, and the remote model."""
    remote = shap_ext.RemoteModel(call, **{"rows_per_call": 2, **options})
    explainer = shap.Explainer(remote, BACKGROUND, algorithm="leastsquares", seed=0)
    started = time.perf_counter()
    values = explainer(rows, max_evals=max_evals, silent=True).values
    return values, time.perf_counter() - started, remote


def speed(latency: float) -> None:
    """Print the times of one call after the other and of 16 at once."""
    print("| rows | calls | one after the other, s | 16 at once, s | ratio |")
    print("|---|---|---|---|---|")
    with FaultyServer(model, latency=latency) as server:
        for n_rows, n_alone in ((1, 400), (20, 60)):
            # With many rows, part of the evaluations show the time of all.
            _, alone, remote = explain(server.ask, ROWS[:n_rows], n_alone, concurrency=1)
            each = alone / remote.usage.calls
            _, together, remote = explain(server.ask, ROWS[:n_rows])
            alone = each * remote.usage.calls
            print(
                f"| {n_rows} | {remote.usage.calls} | {alone:.1f} | {together:.1f} "
                f"| {alone / together:.1f} |"
            )


def flaky() -> None:
    """Print what each fault of a server does to a user who repeats the line after an error."""
    wanted = explain(model, ROWS[:3], 200)[0]
    print("\n| fault | same numbers | line repeated | paid twice | calls at once | seconds |")
    print("|---|---|---|---|---|---|")
    for name, faults in FAULTS.items():
        server = FaultyServer(model, faults, latency=0.02, late=1.5, retry_after="1")
        with server, tempfile.TemporaryDirectory() as folder:
            memory = {"memory": f"{folder}/paid", "name": "a"}
            started, found, n_repeated = time.perf_counter(), None, 0
            while found is None and n_repeated < 20:
                try:
                    found = explain(server.ask, ROWS[:3], 200, **{**OPTIONS, **memory})[0]
                except (RuntimeError, ValueError, ArithmeticError):
                    n_repeated += 1
            same = "no result" if found is None else np.array_equal(found, wanted)
            print(
                f"| {name} | {same} | {n_repeated} | {server.n_paid_twice} "
                f"| {server.most_running} of 8 | {time.perf_counter() - started:.1f} |"
            )


def main() -> None:
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.15, help="seconds of each answer")
    parser.add_argument("--faults", action="store_true", help="with a flaky server")
    options = parser.parse_args()
    speed(options.latency)
    if options.faults:
        flaky()


if __name__ == "__main__":
    main()

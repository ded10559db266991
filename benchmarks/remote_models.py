"""A model behind HTTP: many calls at once, faults, and what an error costs in money.

    python benchmarks/remote_models.py [--latency 0.15] [--faults]

The server is on this machine. Prints how many times faster 16 calls at once are than one after the
other, for one row and for 20; our own time a call; with `--faults`, whether results are the same
after failures and kills, and how many rows were paid for twice.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import shap

import shap_ext
from shapley_adapters.remote import remote_model

sys.path.append(str(Path(__file__).parents[1]))
from tests.helpers.faulty_server import FaultyServer

ROWS = np.random.default_rng(0).normal(size=(20, 20))
BACKGROUND = np.zeros((1, 20))


def model(rows: Any) -> Any:
    """Return a sum of sines and a product, computed row by row."""
    return np.array([np.sin(row).sum() + row[0] * row[1] for row in rows])


def explain(
    call: Callable[[Any], Any], rows: Any, max_evals: int = 400, **options: Any
) -> tuple[Any, float, shap_ext.RemoteModel]:
    """Return attributions, seconds, and the remote model."""
    remote = shap_ext.RemoteModel(call, rows_per_call=2, **options)
    explainer = shap.Explainer(remote, BACKGROUND, algorithm="leastsquares", seed=0)
    started = time.perf_counter()
    values = explainer(rows, max_evals=max_evals).values
    return values, time.perf_counter() - started, remote


def speed(latency: float) -> None:
    """Print the times of one call after the other and of 16 at once."""
    print("| rows | calls | one after the other, s | 16 at once, s | ratio |")
    print("|---|---|---|---|---|")
    with FaultyServer(model, latency) as server:
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
    instant = shap_ext.RemoteModel(lambda rows: rows[:, 0], rows_per_call=1)
    rows = np.zeros((2000, 20))
    started = time.perf_counter()
    instant(rows)
    print(f"\nOur own time: {1e3 * (time.perf_counter() - started) / len(rows):.2f} ms a call.")


KILLED = """
import sys; sys.path[:0] = [{root!r}, {benchmarks!r}]
import os, remote_models
n = 0
def call(rows):
    global n
    n += 1
    if n > int(sys.argv[2]): os._exit(9)
    return remote_models.model(rows)
options = {{"concurrency": 4, "memory": sys.argv[1], "name": "a"}}
remote_models.explain(call, remote_models.ROWS[:3], 200, **options)
"""


def faults(n_kills: int) -> None:
    """Print the outcome of failures and kills."""
    wanted, _, plain = explain(model, ROWS[:3], 200)
    print("| fault | same bits | rows paid for twice | calls repeated |\n|---|---|---|---|")
    remote_model._FIRST_WAIT = 0.01
    for share in (0.02, 0.2):
        with FaultyServer(model, fails=share) as server:
            found, _, remote = explain(server.ask, ROWS[:3], 200, retries=9)
        same = (found == wanted).all()
        print(f"| {share:.0%} of calls fail | {same} | 0 | {remote.usage.retries} |")
    with FaultyServer(model, rate=200) as server:
        found, _, remote = explain(server.ask, ROWS[:3], 200, rate=150)
    same = (found == wanted).all()
    print(f"| 429 above 200 a second, rate=150 | {same} | 0 | {server.refused} |")
    here = Path(__file__).parent
    code = KILLED.format(root=str(here.parent), benchmarks=str(here))
    n_calls, n_same, most_twice = plain.usage.calls, 0, 0
    for number in range(n_kills):
        with tempfile.TemporaryDirectory() as folder:
            path, at = f"{folder}/paid", (number + 1) * n_calls // (n_kills + 1)
            subprocess.run([sys.executable, "-c", code, path, str(at)], check=False)
            found, _, remote = explain(model, ROWS[:3], 200, memory=path, name="a")
            n_same += bool((found == wanted).all())
            most_twice = max(most_twice, remote.usage.rows + 2 * at - plain.usage.rows)
    print(f"| killed, {n_kills} times | {n_same} of {n_kills} | at most {most_twice} | 0 |")


def main() -> None:
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.15, help="seconds of each answer")
    parser.add_argument("--faults", type=int, default=0, metavar="KILLS", help="with so many kills")
    options = parser.parse_args()
    speed(options.latency)
    if options.faults:
        print()
        faults(options.faults)


if __name__ == "__main__":
    main()

"""How long estimators take with the default number of threads, beside one thread.

    python tests/benchmarks/threads.py [--quick] [--players M …]

Each number is measured in processes of its own, with and without OMP_NUM_THREADS=1. They take
turns, so that a busy machine slows both alike; the fastest counts. Times of the processors are
compared, too, because other programs change them little. About three minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from core_games import CoreGame

import shapley_adapters as core

PLAYERS = (5, 13, 30, 60, 200)
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "oddgp": core.OddGP,
    "oddgp, equal weights": lambda: core.OddGP("equal"),
    "leastsquares": lambda: core.least_squares(True, "kernel", True, False),
    "randomorder": core.RandomOrder,
    "semivalue": core.Semivalue,
    "simsemivalue": core.SimSemivalue,
    "shear": lambda: core.Shear(cooperators="random"),
}

SHARED_ROWS = {13: 100, 30: 24}
"""Rows of the last lines for each number of players; `oddgp` lets its threads share them."""


def main() -> None:
    """Print a line for each estimator and number of players."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, nargs="+", default=PLAYERS, metavar="M")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(_measured(arguments.players)))
        return
    n_rounds = 2 if arguments.quick else arguments.rounds
    rounds = [
        [_of_process(arguments.players, is_limited) for is_limited in (False, True)]
        for _ in range(n_rounds)
    ]
    print(
        f"numpy {np.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores. ms "
        f"for each row, fastest of {n_rounds} processes: default threads, one thread, and the "
        "ratios of times by the clock and of the processors."
    )
    print(
        f"{'estimator':24}{'players':>8}{'rows':>6}{'default':>10}{'one':>10}{'clock':>7}{'cpu':>7}"
    )
    for name, n_players, n_rows in _cases(arguments.players):
        key = f"{name}/{n_players}/{n_rows}"
        ms = 1e3 * np.array([[turn[place][key] for turn in rounds] for place in (0, 1)]).min(axis=1)
        clock, cpu = ms[0] / ms[1]
        head = f"{name:24}{n_players:>8}{n_rows:>6}"
        print(f"{head}{ms[0, 0]:>10.3f}{ms[1, 0]:>10.3f}{clock:>7.2f}{cpu:>7.2f}")


def _cases(players: list[int]) -> list[tuple[str, int, int]]:
    """Return estimator, players and rows of each line."""
    cases = [
        (name, n_players, 20 if n_players <= 30 else 4 if n_players <= 60 else 1)
        for name in ESTIMATORS
        for n_players in players
    ]
    return [*cases, *(("oddgp", n_players, n_rows) for n_players, n_rows in SHARED_ROWS.items())]


def _of_process(players: list[int], is_limited: bool) -> dict[str, list[float]]:
    environment = {name: value for name, value in os.environ.items() if name not in LIMITS}
    if is_limited:
        environment["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, __file__, "--worker", "--players", *map(str, players)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    measured: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _measured(players: list[int]) -> dict[str, list[float]]:
    """Return the seconds for a row of each case, by the clock and of the processors.

    The fastest of two runs after the first.
    """
    seconds = {}
    for name, n_players, n_rows in _cases(players):
        game = _random_game(n_players, n_rows)
        times = [_seconds(game, name) for _ in range(3)]
        seconds[f"{name}/{n_players}/{n_rows}"] = (np.min(times[1:], axis=0) / n_rows).tolist()
    return seconds


def _seconds(game: CoreGame, name: str) -> tuple[float, float]:
    # All coalitions of five players would cost less.
    budget = 24 if game.n_players == 5 else 16 * game.n_players
    settings = core.Settings(seed=0, budget=budget)
    started, started_cpu = time.perf_counter(), time.process_time()
    core.estimate(game, ESTIMATORS[name](), settings)
    return time.perf_counter() - started, time.process_time() - started_cpu


def _random_game(n_players: int, n_rows: int) -> CoreGame:
    """Return games with a term for each player and as many of sets of three."""
    rng = np.random.default_rng(n_players)
    slopes = rng.standard_normal((n_rows, n_players))
    strengths = rng.standard_normal((n_rows, n_players)) / 2
    sets = rng.integers(0, n_players, size=(n_players, 3))

    def values_of(rows: Any, coalitions: Any) -> Any:
        signs = np.where(coalitions, 1.0, -1.0)
        products = signs[:, sets].prod(axis=2)
        return (slopes[rows] * signs + strengths[rows] * products).sum(axis=1)

    return CoreGame(values_of, n_players, n_rows)


if __name__ == "__main__":
    main()

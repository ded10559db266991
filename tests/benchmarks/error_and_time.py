"""Errors beside time, the model included, for models of three speeds.

    python tests/benchmarks/error_and_time.py [--players 13] [--games 20] [--per-player 8 16 32 64]
        [--kinds "tanh network" trees]

The error is Σ|φ̂ − φ| over Σ|φ|, averaged over games. The time of a row is that of the core, in
seconds of the processor with one thread, and its evaluations times 1 µs, 50 µs or 5 ms.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from coalition_games import FloatArray, TabulatedGame
from threadpoolctl import threadpool_limits
from zoo_cells import core_game
from zoo_games import GAMES, tabulated

import shapley_adapters as core

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "oddgp": core.OddGP,
    "oddgp, equal weights": lambda: core.OddGP("equal"),
    "least squares": lambda: core.least_squares(True, "kernel", True, False),
    "random order": core.RandomOrder,
}

SPEEDS = {"1 µs": 1e-6, "50 µs": 5e-5, "5 ms": 5e-3}
"""Seconds of an evaluation."""


def main() -> None:
    """Print a table for each kind of game."""
    arguments = _arguments()
    print(f"{arguments.players} players, {arguments.games} games of each kind; ms a row")
    for kind in arguments.kinds:
        table = tabulated(kind, arguments.players, arguments.games)
        print(f"\n{kind}\n\n| estimator | a player | error | core | " + " | ".join(SPEEDS) + " |")
        print("|" + "---|" * (4 + len(SPEEDS)))
        for per_player in arguments.per_player:
            for name, make in ESTIMATORS.items():
                budget = per_player * arguments.players
                error, seconds = _error_and_seconds(table, arguments.players, make, budget)
                totals = [seconds + budget * of_one for of_one in SPEEDS.values()]
                cells = " | ".join(f"{1e3 * total:.3g}" for total in (seconds, *totals))
                print(f"| {name} | {per_player} | {error:.4f} | {cells} |", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--players", type=int, default=13)
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--per-player", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument(
        "--kinds", nargs="+", choices=list(GAMES), default=["tanh network", "trees"]
    )
    return parser.parse_args()


def _error_and_seconds(
    table: FloatArray, n_players: int, make: Callable[[], Any], budget: int
) -> tuple[float, float]:
    """Return the error, and seconds of the processor for each row, in the second of two calls."""
    exact = TabulatedGame(table, n_players).shapley_values()
    settings, game = core.Settings(seed=0, budget=budget + 2), core_game(table, n_players)
    core.estimate(game, make(), settings)  # designs are kept
    started = time.process_time()
    found = core.estimate(game, make(), settings)
    seconds = (time.process_time() - started) / len(table)
    off = np.abs(found.values[:, :, 0] - exact).sum(axis=1)
    return float((off / np.abs(exact).sum(axis=1)).mean()), seconds


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

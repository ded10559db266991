"""Errors beside time, the model included, for models of three speeds.

    python benchmarks/error_and_time.py [--players 13] [--games 20] [--per-player 8 16 32 64]
        [--kinds "tanh network" trees] [--shapiq-python NAME/bin/python]

The error is Σ|φ̂ − φ| over Σ|φ|, averaged over games. The time of a row is that of the estimator, in
seconds of the processor with one thread, and its evaluations times 1 µs, 50 µs or 5 ms. Ours solve
all games in one call. The others solve one game per call: shap's permutation and kernel explainers
and, with `--shapiq-python`, regressions of shapiq, whose seconds are those of a clock.

After the table of a kind, for each speed, come the estimators with the smallest error for their
time: no other one is as fast and has a smaller error.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from coalition_games import BoolArray, FloatArray
from contenders import GameOfAllRows
from peers import Answer
from shapiq_contenders import Approximator, ShapiqWorker, UnusableBudgetError
from threadpoolctl import threadpool_limits
from zoo_games import GAMES
from zoo_peers import SHAP, SHAPIQ, by_shap, relative_errors
from zoo_values import ZooGames, games_of

import shapley_adapters as core

OURS: dict[str, Callable[[], Any]] = {
    "oddgp": core.OddGP,
    "oddgp, equal weights": lambda: core.OddGP("equal"),
    "least squares": lambda: core.least_squares(True, "kernel", True, False),
    "random order": core.RandomOrder,
}

SPEEDS = {"1 µs": 1e-6, "50 µs": 5e-5, "5 ms": 5e-3}
"""Seconds of an evaluation."""

Explain = Callable[[ZooGames, int], tuple[FloatArray, float]]
"""Games and evaluations to attributions, (R, M), and the estimator's seconds of a row."""


@dataclass(frozen=True)
class Cell:
    """The error of an estimator, and its seconds of a row without the model."""

    name: str
    per_player: int
    budget: int
    error: float
    seconds: float

    def total(self, of_one: float) -> float:
        """Return the seconds of a row with a model that takes so many for an evaluation."""
        return self.seconds + self.budget * of_one


class _TimedGame:
    """One game of several, which counts the seconds of its evaluations."""

    def __init__(self, games: ZooGames, row: int) -> None:
        self.games, self.row = games, row
        self.n_players = games.n_players
        self.seconds = 0.0

    def values_of(self, coalitions: BoolArray) -> FloatArray:
        """Return the values of coalitions, (C, M)."""
        return self.games.values_of(np.full(len(coalitions), self.row), coalitions)

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """Return the values, (1, C), of coalitions, (1, C, M)."""
        started = time.process_time()
        values = self.values_of(coalitions[0])[None]
        self.seconds += time.process_time() - started
        return values


def main() -> None:
    """Print the tables of each kind of game."""
    arguments = _arguments()
    explainers: dict[str, Explain] = {
        **{name: partial(_by_ours, make) for name, make in OURS.items()},
        **{name: partial(_by_shap, explain) for name, explain in SHAP.items()},
    }
    if arguments.shapiq_python is not None:
        worker = ShapiqWorker(arguments.shapiq_python)
        explainers |= {peer.name: partial(_by_shapiq, worker, peer) for peer in SHAPIQ}
    print(f"{arguments.players} players, {arguments.games} games of each kind; ms a row")
    for kind in arguments.kinds:
        games = games_of(kind, arguments.players, arguments.games)
        cells = [
            _cell(name, explain, games, per_player)
            for per_player in arguments.per_player
            for name, explain in explainers.items()
        ]
        _print_tables(kind, [cell for cell in cells if cell is not None])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--players", type=int, default=13)
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--per-player", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument(
        "--kinds", nargs="+", choices=list(GAMES), default=["tanh network", "trees"]
    )
    parser.add_argument("--shapiq-python", type=Path, help="a Python that has shapiq; see README")
    return parser.parse_args()


def _cell(name: str, explain: Explain, games: ZooGames, per_player: int) -> Cell | None:
    """Return the error and the time of an estimator; None if it cannot use the budget."""
    budget = per_player * games.n_players + 2
    try:
        values, seconds = explain(games, budget)
    except UnusableBudgetError:
        return None
    error = float(relative_errors(values, games.exact).mean())
    return Cell(name, per_player, budget, error, seconds)


def _by_ours(make: Callable[[], Any], games: ZooGames, budget: int) -> tuple[FloatArray, float]:
    """Explain all games in one call, and measure the second of two calls."""
    settings, game = core.Settings(seed=0, budget=budget), games.for_core()
    core.estimate(game, make(), settings)  # designs are kept
    started = time.process_time()
    estimate = core.estimate(game, make(), settings)
    seconds = (time.process_time() - started) / len(games.exact)
    return estimate.values[:, :, 0], seconds


def _by_shap(
    explain: Callable[[GameOfAllRows, int, int], Answer], games: ZooGames, budget: int
) -> tuple[FloatArray, float]:
    """Explain the games one by one."""
    explain(_TimedGame(games, 0), budget, 0)  # the first call compiles
    values, seconds = [], 0.0
    for row in range(len(games.exact)):
        game, started = _TimedGame(games, row), time.process_time()
        values.append(by_shap(explain, game, budget, row).reshape(-1))
        seconds += time.process_time() - started - game.seconds
    return np.array(values), seconds / len(values)


def _by_shapiq(
    worker: ShapiqWorker, peer: Approximator, games: ZooGames, budget: int
) -> tuple[FloatArray, float]:
    """Explain the games one by one, in the other process."""
    values, seconds = [], 0.0
    for row in range(len(games.exact)):
        game = _TimedGame(games, row)
        found, _, of_row = worker.explain(peer, game.values_of, game.n_players, budget, row)
        values.append(found)
        seconds += of_row
    return np.array(values), seconds / len(values)


def _print_tables(kind: str, cells: list[Cell]) -> None:
    """Print all cells, and those with the smallest error for their time."""
    columns = " | ".join(("its own", *(f"with {speed}" for speed in SPEEDS)))
    print(f"\n{kind}\n\n| estimator | a player | error | {columns} |")
    print("|" + "---|" * (4 + len(SPEEDS)))
    for cell in cells:
        totals = [cell.total(of_one) for of_one in (0.0, *SPEEDS.values())]
        times = " | ".join(f"{1e3 * total:.3g}" for total in totals)
        print(f"| {cell.name} | {cell.per_player} | {cell.error:.2g} | {times} |")
    for speed, of_one in SPEEDS.items():
        best = ", ".join(
            f"{cell.name} at {cell.per_player} "
            f"({1e3 * cell.total(of_one):.3g} ms, {cell.error:.2g})"
            for cell in _smallest_for_time(cells, of_one)
        )
        print(f"\nThe smallest errors for their time, {speed} an evaluation: {best}.", flush=True)


def _smallest_for_time(cells: list[Cell], of_one: float) -> list[Cell]:
    """Return the cells, by time, of which no other is as fast and has a smaller error."""
    best: list[Cell] = []
    for cell in sorted(cells, key=lambda cell: (cell.total(of_one), cell.error)):
        if not best or cell.error < best[-1].error:
            best.append(cell)
    return best


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

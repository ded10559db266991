"""How long `oddgp` takes to design and to solve random games, without the model.

    python benchmarks/solve_time.py [--players 13 60 200] [--per-player 4 16] [--rows 20]

The games have degree three. Printed are milliseconds to choose the coalitions for the first time,
and for each row to choose them later and to solve.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from coalition_games import BoolArray, FloatArray, IntArray
from core_games import CoreGame

import shapley_adapters as core

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "oddgp": core.OddGP,
    "oddgp, equal weights": lambda: core.OddGP("equal"),
    "least squares": core.LeastSquares,
}


def main() -> None:
    """Print a line for each estimator, number of players and number of evaluations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, nargs="+", default=[13, 60, 200], metavar="M")
    parser.add_argument("--per-player", type=int, nargs="+", default=[4, 16], metavar="N")
    parser.add_argument("--rows", type=int, default=20)
    arguments = parser.parse_args()
    print(f"{'estimator':24}{'M':>5}{'N':>4}{'first':>10}{'design':>10}{'solve':>10}")
    for name, make in ESTIMATORS.items():
        for n_players in arguments.players:
            game = random_game(n_players, arguments.rows)
            for per_player in arguments.per_player:
                first, later = (TimedEstimator(make()) for _ in range(2))
                for seed, estimator in enumerate((first, later)):
                    settings = core.Settings(seed=seed, budget=per_player * n_players + 2)
                    core.estimate(game, cast(Any, estimator), settings)
                each = 1e3 / arguments.rows
                times = (
                    1e3 * first.design_seconds,
                    each * later.design_seconds,
                    each * later.solve_seconds,
                )
                cells = "".join(f"{one:>10.2f}" for one in times)
                print(f"{name:24}{n_players:>5}{per_player:>4}{cells}", flush=True)


class TimedEstimator:
    """An estimator that tells how long it designs and solves.

    Attributes
    ----------
    design_seconds, solve_seconds : float
        Time spent since it was made.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.design_seconds = 0.0
        self.solve_seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        """Return any other member of the estimator."""
        return getattr(self.estimator, name)

    def design(self, request: Any) -> Any:
        """Choose the coalitions."""
        started = time.perf_counter()
        design = self.estimator.design(request)
        self.design_seconds += time.perf_counter() - started
        return design

    def solve(self, design: Any, values: Any) -> Any:
        """Turn values into attributions."""
        started = time.perf_counter()
        solution = self.estimator.solve(design, values)
        self.solve_seconds += time.perf_counter() - started
        return solution


def random_game(n_players: int, n_rows: int) -> CoreGame:
    """Return games with a term for each player and as many of sets of three, and some noise."""
    rng = np.random.default_rng(n_players)
    slopes = rng.standard_normal((n_rows, n_players))
    strengths = rng.standard_normal((n_rows, n_players)) / 2
    sets = rng.integers(0, n_players, size=(n_players, 3))

    def values_of(rows: IntArray, coalitions: BoolArray) -> FloatArray:
        signs = np.where(coalitions, 1.0, -1.0)
        products = signs[:, sets[:, 0]] * signs[:, sets[:, 1]] * signs[:, sets[:, 2]]
        values: FloatArray = (slopes[rows] * signs + strengths[rows] * products).sum(axis=1)
        return values

    return CoreGame(values_of, n_players, n_rows)


if __name__ == "__main__":
    main()

"""How long `oddgp` takes to design and to solve, beside the model and beside shapiq.

    python benchmarks/solve_time.py [--shapiq-python NAME/bin/python] [--quick]

First on models, as ratios to the time of their bare evaluations; then on random games, by numbers
of players, evaluations and rows.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from cases import add_case_settings, prepare_model
from coalition_games import BoolArray, FloatArray, IntArray
from contenders import our_explainer
from core_games import CoreGame, TimedEstimator
from explained_models import Clock, ExplainedModel
from shapiq_contenders import APPROXIMATORS, ShapiqWorker

import shapley_adapters as core

ESTIMATORS: dict[str, tuple[str, dict[str, Any], Callable[[], Any]]] = {
    "oddgp": ("oddgp", {}, core.OddGP),
    "oddgp, equal weights": ("oddgp", {"weights": "equal"}, lambda: core.OddGP("equal")),
    "leastsquares": ("leastsquares", {}, lambda: core.least_squares(True, "kernel", True, False)),
}
"""Name to algorithm and options of `shap.Explainer`, and the same of the core."""

MODEL_RUNS = (
    ("adult-elu", 1000, 208),
    ("adult-elu", 1000, 832),
    ("text", 40, 1024),
)
"""Model, rows, evaluations for each row."""

SHAPIQ_KINDS = ("OddSHAP", "LeverageSHAP")
_SHAPIQ_ROWS = 20

PLAYERS = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
PER_PLAYER = (2, 8, 32)
ROWS = (1, 10, 100)


def main() -> None:
    """Print both tables."""
    arguments = _arguments()
    torch.set_num_threads(1)
    print(
        f"torch {torch.__version__}, numpy {np.__version__}, Python {platform.python_version()}, "
        f"one thread; medians of {arguments.rounds} rounds."
    )
    if "models" in arguments.parts:
        _time_models(arguments)
    if "games" in arguments.parts:
        _time_games(arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_case_settings(parser)
    parser.add_argument("--shapiq-python", type=Path, metavar="PATH")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--parts", nargs="+", choices=("models", "games"), default=("models", "games")
    )
    parser.add_argument("--players", type=int, nargs="+", default=PLAYERS, metavar="M")
    parser.add_argument("--per-player", type=int, nargs="+", default=PER_PLAYER, metavar="N")
    parser.add_argument("--game-rows", type=int, nargs="+", default=ROWS, metavar="R")
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds after which no larger game is tried"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, 2 rounds")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds = 2
    return arguments


@dataclass(frozen=True)
class Timing:
    """Seconds for a row.

    Attributes
    ----------
    first_design : float
        The first design of the process, for all rows together: it may be kept for later ones.
    design, solve : float
        Later ones.
    model : float
        Forward passes alone.
    rest : float
        All else of an explanation through `shap.Explainer`, the model apart.
    """

    first_design: float
    design: float
    solve: float
    model: float
    rest: float


def _time_models(arguments: argparse.Namespace) -> None:
    print(
        "\nms a row. model: forward passes, in the batches that we make. design, solve: in the "
        "core; first: the first design of the process, in ms for all rows, which later ones, and "
        "those of the next line, may share. ratio: design and solve over model. rest: all of an "
        "explanation through shap.Explainer but the model, over model."
    )
    print(
        f"{'model':12}{'rows':>6}{'evaluations':>12} {'estimator':26}{'model':>8}{'first':>8}"
        f"{'design':>8}{'solve':>8}{'ratio':>8}{'rest':>8}"
    )
    worker = None if arguments.shapiq_python is None else ShapiqWorker(arguments.shapiq_python)
    for name, n_rows, budget in MODEL_RUNS:
        arguments.rows = n_rows // 10 if arguments.quick else n_rows
        clock = Clock()
        explained = clock.timed(prepare_model(name, arguments))
        head = f"{name:12}{arguments.rows:>6}{budget:>12}"
        at_model = 0.0
        for estimator in ESTIMATORS:
            timing = _of_model(explained, clock, estimator, budget, arguments.rounds)
            at_model = timing.model
            _print_timing(head, estimator, timing)
        if worker is None:
            continue
        for approximator in APPROXIMATORS:
            if approximator.kind in SHAPIQ_KINDS:
                seconds = _of_shapiq(explained, worker, approximator, budget)
                _print_peer(head, approximator.name, seconds, at_model)
    if worker is None:
        print("No --shapiq-python: no times of shapiq.")
    else:
        worker.close()
        print(f"shapiq {worker.version}: medians over {_SHAPIQ_ROWS} rows, the model apart.")


def _print_timing(head: str, estimator: str, timing: Timing) -> None:
    ratio = (timing.design + timing.solve) / timing.model
    numbers = (timing.model, timing.first_design, timing.design, timing.solve)
    cells = "".join(f"{1e3 * number:>8.3f}" for number in numbers)
    print(
        f"{head} {estimator:26}{cells}{ratio:>8.2f}{timing.rest / timing.model:>8.2f}", flush=True
    )


def _print_peer(head: str, name: str, seconds: float, at_model: float) -> None:
    cells = f"{1e3 * at_model:>8.3f}{'':16}{1e3 * seconds:>8.3f}{seconds / at_model:>8.2f}"
    print(f"{head} {name:26}{cells}", flush=True)


def _of_model(
    explained: ExplainedModel, clock: Clock, estimator: str, budget: int, n_rounds: int
) -> Timing:
    game, n_rows = explained.evaluated(), len(explained.rows)
    core_game = CoreGame(game.of_pairs, explained.n_players, n_rows)
    algorithm, options, make = ESTIMATORS[estimator]
    first_design, designs, solves = _core_times(core_game, make, budget, n_rounds)
    models, rests = [], []
    for seed in range(n_rounds):
        before, started = clock.seconds, time.perf_counter()
        explainer = our_explainer(explained, algorithm, options, seed)
        explainer(explained.rows, max_evals=budget, silent=True)
        models.append(clock.seconds - before)
        rests.append(time.perf_counter() - started - models[-1])
    per_row = np.array([designs, solves, models, rests]) / n_rows
    return Timing(first_design, *np.median(per_row, axis=1))


def _core_times(
    game: CoreGame, make: Callable[[], Any], budget: int, n_rounds: int
) -> tuple[float, list[float], list[float]]:
    """Return the seconds of the first design, and of the designs and solutions of later rounds."""
    timed = [TimedEstimator(make()) for _ in range(n_rounds + 1)]
    for seed, estimator in enumerate(timed):
        core.estimate(game, cast(Any, estimator), core.Settings(seed=seed, budget=budget))
    designs = [estimator.design_seconds for estimator in timed]
    solves = [estimator.solve_seconds for estimator in timed]
    return designs[0], designs[1:], solves[1:]


def _of_shapiq(
    explained: ExplainedModel, worker: ShapiqWorker, approximator: Any, budget: int
) -> float:
    """Return the median seconds of a row, those of the model apart."""
    game, seconds = explained.evaluated(), []
    for row in range(min(_SHAPIQ_ROWS, len(explained.rows))):
        _, _, spent = worker.explain(
            approximator,
            partial(game.of_row, row),
            explained.n_players,
            budget,
            seed=row,
        )
        seconds.append(spent)
    return float(np.median(seconds))


def _time_games(arguments: argparse.Namespace) -> None:
    print(
        f"\nRandom games of degree three: ms to design (the first time, and later) and to solve, "
        f"for each row. –: a smaller game took more than {arguments.limit:.0f} s."
    )
    print(
        f"{'estimator':24}{'M':>5}{'N':>4}{'evaluations':>12}{'rows':>5}{'first':>10}{'design':>10}{'solve':>10}"
    )
    for name, (_, _, make) in ESTIMATORS.items():
        for n_rows in arguments.game_rows:
            for per_player in arguments.per_player:
                _time_players(name, make, per_player, n_rows, arguments)


def _time_players(
    name: str, make: Callable[[], Any], per_player: int, n_rows: int, arguments: argparse.Namespace
) -> None:
    """Print a line for each number of players, until one takes too long."""
    for n_players in arguments.players:
        budget = per_player * n_players + 2
        head = f"{name:24}{n_players:>5}{per_player:>4}{budget:>12}{n_rows:>5}"
        least = make().minimum_budget(n_players)
        if 2**n_players <= budget:
            print(f"{head}  exact: all coalitions are evaluated")
            continue
        if budget < least:
            print(f"{head}  needs {least} evaluations")
            continue
        started = time.perf_counter()
        game = random_game(n_players, n_rows)
        first, designs, solves = _core_times(game, make, budget, n_rounds=1)
        cells = (first, designs[0] / n_rows, solves[0] / n_rows)
        print(head + "".join(f"{1e3 * cell:>10.2f}" for cell in cells), flush=True)
        if time.perf_counter() - started > arguments.limit:
            larger = [n for n in arguments.players if n > n_players]
            print("".join(f"{name:24}{n:>5}{per_player:>4}{'–':>12}\n" for n in larger), end="")
            return


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

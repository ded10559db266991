"""How far each estimator is from the exact Shapley values at equal evaluations.

Figures 2, 3 and 4d of Wang et al. (ICML 2022) on Adult, 13 players:

    python benchmarks/shear_accuracy.py [--quick] [--activation relu] [--explain probability]
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import shap
import torch
from adult import AdultBenchmark, add_arguments, prepare
from coalition_games import FloatArray
from contenders import AUTHORS, SHEAR, Contender, contenders
from peers import Answer
from scores import METRICS, Score, measure, save
from table_models import ACTIVATION_NAMES

PER_PLAYER = (4, 8, 16, 32, 64)
TARGET_RATIO = 0.6
"""What ours has to reach of the error of the authors' options at the largest budget."""


def main() -> None:
    """Run all contenders, print the table, and save it."""
    started = time.perf_counter()
    arguments = _arguments()
    torch.set_num_threads(1)
    benchmark = prepare(arguments, arguments.rows)
    game = benchmark.game()
    exact = game.shapley_values()
    _print_configuration(arguments, benchmark)
    _print_line(measure(_exact(exact), 0, 1, exact, game))

    scores: list[Score] = []
    for per_player in arguments.per_player:
        print()
        for contender in contenders(benchmark, game):
            scores.append(measure(contender, per_player, arguments.seeds, exact, game))
            _print_line(scores[-1])
    _print_ratios(scores)

    arguments.output.mkdir(parents=True, exist_ok=True)
    stem = arguments.output / f"shear_accuracy_{arguments.activation}_{arguments.explain}"
    save(scores, stem.with_suffix(".csv"))
    print(f"\nSaved {stem}.csv. Took {time.perf_counter() - started:.0f} seconds.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--per-player", type=int, nargs="+", default=PER_PLAYER, metavar="N")
    parser.add_argument("--quick", action="store_true", help="5 seeds")
    parser.add_argument("--output", type=Path, default=Path("benchmark_output"))
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seeds = 5
    return arguments


def _exact(exact: FloatArray) -> Contender:
    n_evaluations = 2 ** exact.shape[1]
    return Contender("exact values", "", lambda budget, seed: Answer(exact, n_evaluations))


def _title(arguments: argparse.Namespace) -> str:
    return (
        f"Adult, {ACTIVATION_NAMES[arguments.activation]} network, {arguments.explain}: "
        f"{arguments.rows} rows, {arguments.seeds} seeds"
    )


def _print_configuration(arguments: argparse.Namespace, benchmark: AdultBenchmark) -> None:
    print(
        f"{_title(arguments)}.\n{benchmark.n_players} players, {len(benchmark.column_names)} "
        f"columns, mean reference; 3-layer MLP, 64 hidden units, test accuracy "
        f"{benchmark.accuracy:.3f}; budget N · {benchmark.n_players} + 2.\n"
        f"shap {shap.__version__}, torch {torch.__version__}, numpy {np.__version__}, Python "
        f"{platform.python_version()}, one thread.\n"
        "used: evaluations really made for a row, backward passes apart. ±: standard error of the "
        "mean over rows and seeds.\n"
    )
    columns = "".join(f"{metric:>17}" for metric in METRICS)
    print(f"{'N':>3} {'family':8} {'contender':30} {'used':>5}{columns}")


def _print_line(score: Score) -> None:
    cells = [f"{score.means[metric]:>9.4f} ±{score.errors[metric]:6.4f}" for metric in METRICS]
    who = f"{score.per_player or '':>3} {score.family:8} {score.name:30}"
    print(f"{who} {score.evaluations:5.0f}{''.join(cells)}", flush=True)


def _print_ratios(scores: Sequence[Score]) -> None:
    """Print the errors of SHEAR over those of the others, and whether the target is met."""
    found = {(score.name, score.per_player): score for score in scores}
    budgets = sorted({score.per_player for score in scores})
    others = [score.name for score in scores if score.per_player == budgets[0]]
    titles = "".join(f"{f'N={n}':>15}" for n in budgets)
    print(f"\nAE of {SHEAR} over that of the others, ± standard error on the same rows")
    print(f"{'':30}{titles}")
    for other in others[1:]:
        ratios = [found[SHEAR, n].ratio_to(found[other, n]) for n in budgets]
        print(f"{other:30}" + "".join(f"{ratio:8.3f} ±{error:5.3f}" for ratio, error in ratios))
    last = budgets[-1]
    if last == PER_PLAYER[-1]:
        ratio, _ = found[SHEAR, last].ratio_to(found[AUTHORS, last])
        verdict = "met" if ratio <= TARGET_RATIO else "MISSED"
        print(f"Target at N={last}, {AUTHORS}: {ratio:.3f}, at most {TARGET_RATIO}: {verdict}.")


if __name__ == "__main__":
    main()

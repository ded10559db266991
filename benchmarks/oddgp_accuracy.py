"""How far `oddgp` and all others are from the Shapley values at equal evaluations.

    python benchmarks/oddgp_accuracy.py --model trees --shapiq-python NAME/bin/python

With `--shapiq-python`, the interpreter of an environment with shapiq (requirements-shapiq.txt), its
approximators take part. `--oddgp weights=equal` adds an `oddgp` with other options.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shap
import torch
from cases import add_case_arguments, prepare
from contenders import add_choice_arguments, takes_part
from explained_models import Case, Clock
from oddgp_contenders import ODDGP, Rival, rivals
from peers import Answer
from scores import ErrorScore, save_errors
from shapiq_contenders import ShapiqWorker, UnusableBudgetError

from shapley_adapters.criteria import absolute_error
from shapley_adapters.errors import BudgetError

PER_PLAYER = (4, 8, 16, 32, 64)
BACKWARD_COST = 3
"""Evaluations that a backward pass is charged for."""


def main() -> None:
    """Run all contenders, print the tables and save the errors."""
    started = time.perf_counter()
    arguments = _arguments()
    case = prepare(arguments.model, arguments)
    clock = Clock()
    worker = None if arguments.shapiq_python is None else ShapiqWorker(arguments.shapiq_python)
    field = rivals(clock.timed(case.explained), arguments.oddgp, worker)
    field = [rival for rival in field if takes_part(rival.name, arguments)]
    _print_configuration(arguments, case, worker)
    scores: list[ErrorScore] = []
    for per_player in arguments.per_player:
        print()
        for rival in field:
            for score in _measured(rival, case, clock, per_player, arguments.seeds):
                scores.append(score)
                _print_line(score, scores)
    if worker is not None:
        worker.close()
    _print_ratios(scores)
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / f"oddgp_accuracy_{case.name}.csv"
    save_errors(scores, path)
    print(f"\nSaved {path}. Took {time.perf_counter() - started:.0f} seconds.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_case_arguments(parser)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--per-player", type=int, nargs="+", default=PER_PLAYER, metavar="N")
    parser.add_argument("--shapiq-python", type=Path, metavar="PATH")
    parser.add_argument(
        "--oddgp",
        type=_options,
        action="append",
        metavar="OPTION=VALUE,…",
        help="another contender; weights=equal by default",
    )
    add_choice_arguments(parser)
    parser.add_argument("--output", type=Path, default=Path("benchmark_output"))
    arguments = parser.parse_args()
    arguments.oddgp = arguments.oddgp or [{"weights": "equal"}]
    return arguments


def _options(text: str) -> dict[str, Any]:
    """Read options such as `weights=equal,degrees=5`."""
    named = dict(part.split("=", 1) for part in text.split(","))
    return {name: int(value) if value.isdigit() else value for name, value in named.items()}


def _measured(
    rival: Rival, case: Case, clock: Clock, per_player: int, n_seeds: int
) -> Iterator[ErrorScore]:
    """Yield the score of a contender, and that with derivatives charged if it takes any."""
    budget = per_player * case.explained.n_players + 2
    score = _score(rival.name, rival, case, clock, per_player, budget, n_seeds)
    if score is None:
        return
    yield score
    charge = round(BACKWARD_COST * score.backward_passes)
    if charge:
        name = f"{rival.name}, derivatives charged"
        charged = _score(name, rival, case, clock, per_player, budget - charge, n_seeds)
        if charged is not None:
            yield charged


def _score(
    name: str, rival: Rival, case: Case, clock: Clock, per_player: int, budget: int, n_seeds: int
) -> ErrorScore | None:
    answers: list[Answer] = []
    if budget < 1:
        _print_left_out(name, per_player, "the derivatives cost more than the budget")
        return None
    seconds: list[float] = []
    try:
        for seed in range(1 if rival.is_slow else n_seeds):
            started, at_model = time.perf_counter(), clock.seconds
            answers.append(rival.estimate(budget, seed))
            spent = time.perf_counter() - started - (clock.seconds - at_model)
            seconds.append(spent / len(answers[-1].values))
    except (UnusableBudgetError, BudgetError) as refusal:
        _print_left_out(name, per_player, str(refusal))
        return None
    exact = case.shapley.values
    return ErrorScore(
        name=name,
        per_player=per_player,
        absolute_errors=np.array(
            [absolute_error(answer.values, exact[: len(answer.values)]) for answer in answers]
        ),
        evaluations=float(np.mean([answer.evaluations for answer in answers])),
        backward_passes=max(answer.backward_passes for answer in answers),
        seconds=float(np.median(seconds)),  # the first may load or compile something
    )


def _print_left_out(name: str, per_player: int, reason: str) -> None:
    print(f"{per_player:>3} {name:36} left out: {reason}", flush=True)


def _print_configuration(
    arguments: argparse.Namespace, case: Case, worker: ShapiqWorker | None
) -> None:
    explained, shapley = case.explained, case.shapley
    peer = "none: no --shapiq-python" if worker is None else worker.version
    print(
        f"{case.title}: {len(explained.rows)} rows, {arguments.seeds} seeds, "
        f"{explained.n_players} players, test accuracy {explained.accuracy:.3f}; budget "
        f"N · {explained.n_players} + 2.\n"
        f"Shapley values: {shapley.source}; their own absolute error is "
        f"{shapley.absolute_error:.2g}, their sum of absolute values "
        f"{np.abs(shapley.values).sum(axis=1).mean():.3g}.\n"
        f"shap {shap.__version__}, torch {torch.__version__}, numpy {np.__version__}, Python "
        f"{platform.python_version()}, one thread; shapiq {peer}.\n"
        "used: evaluations really made for a row; back: backward passes. AE: sum of absolute "
        "errors of all players, mean ± standard error, and median over rows. s a row: without the "
        f"model's own time.\nratio: mean AE of {ODDGP} over this one, on the same rows, with a "
        "95 % interval; and the median of the rows' ratios."
    )
    print(
        f"\n{'N':>3} {'contender':36}{'rows':>5}{'used':>7}{'back':>5}{'AE':>10}{'':10}"
        f"{'median':>10}{'s a row':>9}{'ratio':>7} {'(interval)':15}{'median':>7}"
    )


def _print_line(score: ErrorScore, scores: Sequence[ErrorScore]) -> None:
    own = next((s for s in scores if (s.name, s.per_player) == (ODDGP, score.per_player)), score)
    ratio = own.ratio_to(score)
    n_rows = score.absolute_errors.shape[1]
    interval = f"({ratio.lower:.2f}–{ratio.upper:.2f})"
    print(
        f"{score.per_player:>3} {score.name:36}{n_rows:>5}{score.evaluations:>7.0f}"
        f"{score.backward_passes:>5.0f}{score.mean:>10.4g} ±{score.standard_error:<8.2g}"
        f"{score.median:>10.4g}{score.seconds:>9.4f}{ratio.of_means:>7.3f} {interval:15}"
        f"{ratio.median:>7.3f}",
        flush=True,
    )


def _print_ratios(scores: Sequence[ErrorScore]) -> None:
    """Print the errors of `oddgp` over those of the others, and over the least of them."""
    found = {(score.name, score.per_player): score for score in scores}
    budgets = sorted({score.per_player for score in scores if score.name == ODDGP})
    if not budgets:
        return
    print(f"\nMean AE of {ODDGP} over that of the others, on the same rows, and its 95 % interval")
    print(f"{'':36}" + "".join(f"{f'N={n}':>19}" for n in budgets))
    for name in dict.fromkeys(score.name for score in scores):
        if name == ODDGP:
            continue
        cells = [
            _cell(found[ODDGP, n], found[name, n]) if (name, n) in found else f"{'–':>19}"
            for n in budgets
        ]
        print(f"{name:36}" + "".join(cells))
    for n in budgets:
        others = [s for s in scores if s.per_player == n and not s.name.startswith(ODDGP)]
        if others:
            # By the ratio, for slow contenders explained fewer rows.
            best = max(others, key=lambda score: found[ODDGP, n].ratio_to(score).of_means)
            print(f"best other at N={n}: {best.name},{_cell(found[ODDGP, n], best)}")


def _cell(own: ErrorScore, other: ErrorScore) -> str:
    ratio = own.ratio_to(other)
    return f"{f'{ratio.of_means:.2f} ({ratio.lower:.2f}–{ratio.upper:.2f})':>19}"


if __name__ == "__main__":
    main()

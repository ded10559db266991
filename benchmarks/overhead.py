"""How much longer explanations take than the forward passes that they cannot do without.

The Adult network, 200 rows, 13 players, 208 evaluations a row, one thread:

    python benchmarks/overhead.py [--quick] [--activation relu] [--only NAME …]
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import captum
import numpy as np
import shap
import torch
from adult import add_arguments, prepare
from adult_network import ACTIVATION_NAMES
from floor import Floor
from timed_explanations import KINDS, Work, spent

_MOST_SPREAD = 1.25
"""How far the floors of two processes may differ before the table is in doubt."""


@dataclass(frozen=True)
class Timing:
    """What one process measured.

    Attributes
    ----------
    name : str
        The contender.
    n_rows : int
        Rows that it explained; the floor always takes all.
    evaluations, backward_passes : float
        What it spent on a row.
    milliseconds : float
        Median time for a row.
    floor_milliseconds : float
        Median time of the floor for the same evaluations of a row.
    ratios : tuple of float
        Quartiles, over the rounds, of its time over the floor's.
    cpu_ratio : float
        Median of the same by processor time, which other programs disturb less.
    full_ratio : float
        Median over the rounds of its time over that of a floor that takes the same backward
        passes, too.
    batch_size, masking
        What made the fastest floor.
    """

    name: str
    n_rows: int
    evaluations: float
    backward_passes: float
    milliseconds: float
    floor_milliseconds: float
    ratios: tuple[float, float, float]
    cpu_ratio: float
    full_ratio: float
    batch_size: int
    masking: str

    @property
    def floor_microseconds(self) -> float:
        """Time of the floor for one evaluation."""
        return 1e3 * self.floor_milliseconds / self.evaluations


def main() -> None:
    """Measure each contender in a process of its own and print the table."""
    started = time.perf_counter()
    arguments = _arguments()
    if arguments.measure is not None:
        print(json.dumps(asdict(_measure(arguments))))
        return
    benchmark = prepare(arguments, 1)  # trains the network before anything is timed
    _print_configuration(arguments, benchmark.n_players)
    timings = []
    for name in arguments.only:
        timings.append(_in_own_process(name))
        _print_line(timings[-1])
    _print_floors(timings)
    print(f"Took {time.perf_counter() - started:.0f} seconds.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    names = tuple(KINDS)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--evaluations", type=int, default=208)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="5 rounds")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--measure", choices=names, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds = 5
    return arguments


def _in_own_process(name: str) -> Timing:
    command = [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:], "--measure", name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Timing(**json.loads(done.stdout.splitlines()[-1]))


def _measure(arguments: argparse.Namespace) -> Timing:
    """Time one contender and the floor in turn."""
    torch.set_num_threads(1)  # after all imports, for any of them may set it
    benchmark = prepare(arguments, arguments.rows)
    kind = KINDS[arguments.measure]
    n_rows = min(arguments.rows, kind.most_rows)
    work = Work(benchmark, benchmark.model, n_rows, arguments.evaluations)
    evaluations, backward_passes = spent(kind, work)
    floor = Floor.fastest(benchmark, round(evaluations))
    full_floor = replace(floor, with_curvatures=backward_passes > 0)
    explain = kind.make(work).run
    explain()
    calls = (floor, explain, floor, full_floor)
    times = np.array([[_timed(call) for call in calls] for _ in range(arguments.rounds)])
    # (rounds, before / explanation / after / with backward passes, wall / processor)
    per_row = np.array([arguments.rows, n_rows, arguments.rows, arguments.rows])[:, None]
    times = 1e3 * times / per_row
    floors = (times[:, 0] + times[:, 2]) / 2
    ratios = times[:, 1] / floors
    return Timing(
        name=arguments.measure,
        n_rows=n_rows,
        evaluations=evaluations,
        backward_passes=backward_passes,
        milliseconds=float(np.median(times[:, 1, 0])),
        floor_milliseconds=float(np.median(floors[:, 0])),
        ratios=tuple(np.quantile(ratios[:, 0], [0.25, 0.5, 0.75])),
        cpu_ratio=float(np.median(ratios[:, 1])),
        full_ratio=float(np.median(times[:, 1, 0] / times[:, 3, 0])),
        batch_size=floor.batch_size,
        masking=floor.masking,
    )


def _timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of the wall clock and of the processor that a call takes."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def _print_configuration(arguments: argparse.Namespace, n_players: int) -> None:
    print(
        f"Adult, {n_players} players, {ACTIVATION_NAMES[arguments.activation]} network, "
        f"{arguments.explain}: {arguments.rows} rows, {arguments.evaluations} evaluations, "
        f"{arguments.rounds} rounds, one thread, each contender in its own process.\n"
        f"shap {shap.__version__}, captum {captum.__version__}, torch {torch.__version__}, numpy "
        f"{np.__version__}, Python {platform.python_version()}.\n"
        "floor: masking and running the model in batches of the best size, for as many "
        "evaluations of all rows.\n"
        "ratio: time over that of the floor, median of paired rounds (quartiles). Contenders "
        "with fewer rows are compared row by row.\n"
        "full: time over that of a floor that takes the same backward passes, too.\n"
    )
    print(
        f"{'contender':38}{'rows':>5}{'evaluations':>12}{'backward':>9}{'ms a row':>9}"
        f"{'floor':>7}{'ratio':>8} {'(quartiles)':14}{'by CPU':>7}{'full':>7}  fastest floor"
    )


def _print_line(timing: Timing) -> None:
    lower, median, upper = timing.ratios
    quartiles = f"({lower:.2f}–{upper:.2f})"
    print(
        f"{timing.name:38}{timing.n_rows:5}{timing.evaluations:12.1f}"
        f"{timing.backward_passes:9.1f}{timing.milliseconds:9.3f}"
        f"{timing.floor_milliseconds:7.3f}{median:8.2f} {quartiles:14}{timing.cpu_ratio:7.2f}"
        f"{timing.full_ratio:7.2f}  {timing.masking}, batches of {timing.batch_size}",
        flush=True,
    )


def _print_floors(timings: Sequence[Timing]) -> None:
    floors = [timing.floor_microseconds for timing in timings]
    print(
        f"\nFloor: {min(floors):.2f} to {max(floors):.2f} µs an evaluation, median "
        f"{np.median(floors):.2f}, over {len(floors)} processes."
    )
    if max(floors) > _MOST_SPREAD * min(floors):
        print(
            f"WARNING: they differ by more than {_MOST_SPREAD - 1:.0%}. The machine was busy; "
            "measure again before you believe the ratios."
        )


if __name__ == "__main__":
    main()

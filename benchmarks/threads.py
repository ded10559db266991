"""How long estimators take with the default number of threads, beside one thread.

    python benchmarks/threads.py [--quick] [--players M …] [--estimators NAME …]

Each estimator computes all rows of a random game. Two processes have BLAS's default threads, two
have OMP_NUM_THREADS=1. They take turns, each for some hundredths of a second, so that a busy
machine slows them alike. The fastest time counts; the time of the game itself is left out. Lines
above 1.1 are measured once more at the end, as long again, and are printed first. Times of the
processors are compared, too, because other programs change them little. About three minutes.
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
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Any

import numpy as np
from core_games import CoreGame

import shapley_adapters as core
from shapley_adapters.pipeline.designs import design_cache

PLAYERS = (5, 13, 30, 60, 200)
GRIDS = {5: (1, 5), 13: (1, 13), 30: (5, 6), 60: (6, 10), 200: (10, 20)}
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

BOUND = 1.1
"""Lines with a larger ratio of times by the clock are printed first."""

N_PAIRS = 2
"""Processes of each kind. Two processes with the same settings may differ by some percent."""

TURN_SECONDS, CASE_SECONDS, LEAST_TURNS = 0.03, 1.2, 2
"""Time of a turn of a process, if several calls fit into it; time of a line; turns of a process."""


@dataclass(frozen=True)
class Contender:
    """An estimator with its settings.

    Attributes
    ----------
    make : callable
        Returns the estimator.
    on : callable, optional
        Number of players to the graph, for estimators on graphs.
    independent_rows : bool
        Whether each row has random draws of its own.
    most_players : int
        Bound on the number of players.
    """

    make: Callable[[], Any]
    on: Callable[[int], core.PlayerGraph] | None = None
    independent_rows: bool = False
    most_players: int = max(PLAYERS)


def _grid(n_players: int) -> core.PlayerGraph:
    return core.PlayerGraph.grid(GRIDS[n_players])


def _paired_kernel() -> Any:
    return core.least_squares(True, "kernel", True, False)


CONTENDERS = {
    "enumeration": Contender(core.Exact, most_players=13),
    "lshapley": Contender(core.LShapley, core.PlayerGraph.line),
    "cshapley": Contender(core.CShapley, core.PlayerGraph.line),
    "cshapley, regression": Contender(core.ConnectedRegression, _grid),
    "myerson": Contender(core.Myerson, core.PlayerGraph.line),
    "leastsquares": Contender(_paired_kernel),
    "leastsquares, leverage sizes": Contender(
        lambda: core.least_squares(True, "leverage", True, False)
    ),
    "leastsquares, each coalition once": Contender(
        lambda: core.least_squares(True, "kernel", False, False)
    ),
    "leastsquares, not paired": Contender(lambda: core.least_squares(False, "kernel", True, False)),
    "leastsquares, unbiased": Contender(lambda: core.least_squares(True, "kernel", True, True)),
    "leastsquares, independent rows": Contender(_paired_kernel, independent_rows=True),
    "randomorder": Contender(core.RandomOrder),
    "semivalue": Contender(core.Semivalue),
    "simsemivalue": Contender(core.SimSemivalue),
    "shear": Contender(lambda: core.Shear(cooperators="random")),
    "oddgp": Contender(core.OddGP),
    "oddgp, equal weights": Contender(lambda: core.OddGP("equal")),
}

SHARED_ROWS = {13: 100, 30: 24}
"""Rows of the last lines for each number of players; `oddgp` lets its threads share them."""


@dataclass(frozen=True)
class Case:
    """A line of the table."""

    name: str
    n_players: int
    n_rows: int


@dataclass
class Seconds:
    """The fastest times of a call with default threads and with one, by clock and processors."""

    fastest: np.ndarray[Any, Any] = field(default_factory=lambda: np.full((2, 2), np.inf))

    @property
    def ratios(self) -> tuple[float, float]:
        """Default threads over one thread, by the clock and of the processors."""
        clock, cpu = self.fastest[0] / self.fastest[1]
        return float(clock), float(cpu)

    def measure(self, workers: list[list[Worker]], case: Case, case_seconds: float) -> None:
        """Let the processes take turns until the time of a line has passed."""
        started, n_turns = time.perf_counter(), 0
        while n_turns < LEAST_TURNS or time.perf_counter() - started < case_seconds:
            for pair in workers:
                # Who comes first may find the machine in another state.
                for place in (0, 1) if n_turns % 2 else (1, 0):
                    turn = pair[place].turn(case)
                    self.fastest[place] = np.minimum(self.fastest[place], turn)
            n_turns += 1


class Worker:
    """A process that runs cases when it is asked to."""

    def __init__(self, is_limited: bool) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in LIMITS}
        if is_limited:
            environment["OMP_NUM_THREADS"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def turn(self, case: Case) -> list[float]:
        """Return the fastest seconds of a call, by the clock and of the processors."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        print(json.dumps([case.name, case.n_players, case.n_rows]), file=stdin, flush=True)
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"The process that measured {case} has ended; see its error above.")
        seconds: list[float] = json.loads(line)
        return seconds

    def stop(self) -> None:
        """End the process."""
        self._process.communicate()


def main() -> None:
    """Print a line for each estimator and number of players."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, nargs="+", default=PLAYERS, choices=PLAYERS)
    parser.add_argument("--estimators", nargs="+", default=list(CONTENDERS), choices=CONTENDERS)
    parser.add_argument("--quick", action="store_true", help="one process of each kind, two turns")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        _work()
        return
    cases = _cases(arguments.estimators, arguments.players)
    n_pairs, case_seconds = (1, 0.0) if arguments.quick else (N_PAIRS, CASE_SECONDS)
    workers = [[Worker(is_limited) for is_limited in (False, True)] for _ in range(n_pairs)]
    seconds = {case: Seconds() for case in cases}
    for case in cases:
        seconds[case].measure(workers, case, case_seconds)
    for case in _above(seconds):
        seconds[case].measure(workers, case, case_seconds)
    for worker in chain(*workers):
        worker.stop()
    _print(seconds)


def _cases(names: list[str], players: list[int]) -> list[Case]:
    cases = [
        Case(name, n_players, 20 if n_players <= 30 else 4 if n_players <= 60 else 1)
        for name, n_players in product(names, players)
        if n_players <= CONTENDERS[name].most_players
    ]
    shared = [Case("oddgp", n_players, n_rows) for n_players, n_rows in SHARED_ROWS.items()]
    return [*cases, *(case for case in shared if "oddgp" in names and case.n_players in players)]


def _above(seconds: dict[Case, Seconds]) -> list[Case]:
    return [case for case, one in seconds.items() if one.ratios[0] > BOUND]


def _print(seconds: dict[Case, Seconds]) -> None:
    """Print the lines above the bound, then all."""
    print(
        f"numpy {np.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores. ms "
        "for each row with default threads and with one thread, and the ratios of times by the "
        "clock and of the processors."
    )
    above = _above(seconds)
    print(f"above {BOUND}:{'' if above else ' none'}")
    for case in above:
        _print_line(case, seconds[case])
    print(
        f"\n{'estimator':34}{'players':>8}{'rows':>6}{'default':>10}{'one':>10}{'clock':>7}{'cpu':>7}"
    )
    for case, one in seconds.items():
        _print_line(case, one)


def _print_line(case: Case, seconds: Seconds) -> None:
    default, one = 1e3 * seconds.fastest[:, 0] / case.n_rows
    clock, cpu = seconds.ratios
    head = f"{case.name:34}{case.n_players:>8}{case.n_rows:>6}"
    print(f"{head}{default:>10.3f}{one:>10.3f}{clock:>7.2f}{cpu:>7.2f}", flush=True)


def _work() -> None:
    """Run a turn of each case that comes in, and answer with its seconds."""
    games: dict[Case, TimedGame] = {}
    for line in sys.stdin:
        case = Case(*json.loads(line))
        if case not in games:
            games.clear()
            games[case] = TimedGame.random(case.n_players, case.n_rows)
        print(json.dumps(_turn(case, games[case])), flush=True)


def _turn(case: Case, game: TimedGame) -> list[float]:
    started = time.perf_counter()
    calls: list[Any] = []
    while not calls or time.perf_counter() - started < TURN_SECONDS:
        calls.append(_seconds(case, game))
    fastest: list[float] = np.min(calls, axis=0).tolist()
    return fastest


def _seconds(case: Case, game: TimedGame) -> tuple[float, float]:
    """Return the time of a call less that of the game."""
    contender = CONTENDERS[case.name]
    # All coalitions of five players would cost less.
    budget = 24 if case.n_players == 5 else 16 * case.n_players
    settings = core.Settings(
        seed=0,
        budget=None if contender.make is core.Exact else budget,
        graph=None if contender.on is None else contender.on(case.n_players),
        independent_rows=contender.independent_rows,
    )
    estimator = contender.make()
    design_cache.clear()
    game.seconds[:] = 0.0
    started, started_cpu = time.perf_counter(), time.process_time()
    core.estimate(game, estimator, settings)
    whole = time.perf_counter() - started, time.process_time() - started_cpu
    return whole[0] - float(game.seconds[0]), whole[1] - float(game.seconds[1])


@dataclass(frozen=True)
class TimedGame(CoreGame):
    """A game that adds up its own time.

    Attributes
    ----------
    seconds : array, (2,)
        The time so far, by the clock and of the processors.
    """

    seconds: np.ndarray[Any, Any] = field(default_factory=lambda: np.zeros(2))

    @classmethod
    def random(cls, n_players: int, n_rows: int) -> TimedGame:
        """Return games with a term for each player and as many of sets of three."""
        rng = np.random.default_rng(n_players)
        slopes = rng.standard_normal((n_rows, n_players))
        strengths = rng.standard_normal((n_rows, n_players)) / 2
        sets = rng.integers(0, n_players, size=(n_players, 3))

        def values_of(rows: Any, coalitions: Any) -> Any:
            signs = np.where(coalitions, 1.0, -1.0)
            products = signs[:, sets].prod(axis=2)
            return (slopes[rows] * signs + strengths[rows] * products).sum(axis=1)

        return cls(values_of, n_players, n_rows)

    def __call__(self, rows: Any, coalitions: Any) -> Any:
        """Return the values, (P, 1)."""
        started, started_cpu = time.perf_counter(), time.process_time()
        values = super().__call__(rows, coalitions)
        self.seconds[0] += time.perf_counter() - started
        self.seconds[1] += time.process_time() - started_cpu
        return values

    def row_fingerprints(self) -> list[bytes]:
        """Return what makes the draws of each row its own."""
        return [row.to_bytes(16, "little") for row in range(self.n_rows)]


if __name__ == "__main__":
    main()

"""What a call costs: measured on its first rows with small budgets, forecast for larger ones.

Which estimator errs less with which budget is assumed from tables, before any measurement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from ..array_types import BoolArray, IntArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import warn_user
from ..estimators.exact import MAX_PLAYERS
from ..estimators.least_squares.regression import LeastSquares
from ..estimators.odd_gp.estimator import OddGP
from ..estimators.protocol import Estimator
from ..estimators.random_order import RandomOrder
from ..games.evaluation import Evaluator, Request
from ..games.game import Game
from ..games.value_memory import ValueMemory
from ..memory_bounds import memory_limit
from .result import blank_estimate
from .run import Run
from .settings import (
    RowBudget,
    Settings,
    estimation_cost,
    needs_enumeration,
    rounded_seconds,
)

_N_PLAYERS = np.log([8, 13, 30, 60, 200])
_EVALUATIONS_EACH = np.log([2.3, 4, 8, 16, 32, 64, 128])
"""Numbers of players, and evaluations per player, of the tables below."""

_LEARNED = [
    [0.047, 0.025, 0.0076, 0.0035, 0.0016, 0.0008, 0.0004],
    [0.057, 0.029, 0.0060, 0.0005, 0.000015, 0.0000037, 0.0000021],
    [0.10, 0.066, 0.012, 0.0028, 0.00021, 0.00007, 0.00004],
    [0.076, 0.055, 0.020, 0.0032, 0.00050, 0.00034, 0.00020],
    [0.17, 0.11, 0.058, 0.039, 0.020, 0.010, 0.005],
]
_EQUAL = [
    [0.047, 0.025, 0.015, 0.0030, 0.0015, 0.0008, 0.0004],
    [0.057, 0.031, 0.016, 0.0088, 0.0028, 0.00037, 0.00005],
    [0.094, 0.075, 0.045, 0.030, 0.021, 0.012, 0.0076],
    [0.076, 0.065, 0.038, 0.029, 0.021, 0.014, 0.0095],
    [0.13, 0.13, 0.084, 0.066, 0.046, 0.032, 0.022],
]
_RANDOM_ORDER = [
    [0.078, 0.053, 0.032, 0.020, 0.014, 0.010, 0.007],
    [0.083, 0.054, 0.036, 0.023, 0.015, 0.010, 0.0068],
    [0.12, 0.080, 0.058, 0.039, 0.028, 0.017, 0.013],
    [0.097, 0.066, 0.048, 0.030, 0.021, 0.015, 0.011],
    [0.13, 0.091, 0.062, 0.044, 0.032, 0.024, 0.017],
]
"""Sum of absolute errors relative to that of the attributions, (players, evaluations): geometric
means over boosted trees and sums of waves of four features, whose seeds no benchmark uses. Where
all coalitions or too much time would be needed, the fall of the numbers before goes on more slowly.
Only the order of the numbers matters, and how fast they fall."""

_ENUMERATION_SECONDS = 3e-8
"""Seconds of our own work for each coalition, player and output of an enumeration, measured with
10 to 14 players. Only a small part of the time of any model depends on it."""

_TOLERANCE_FACTOR = 3.0
"""With a tolerance, rows are solved after each round: about this multiple of the last solution."""

_LEAST_GROWTH, _MOST_GROWTH = 0.5, 3.0
"""Bounds of the power of the budget with which our own work grows between two measurements: the
overhead of calls, and the factorisation of a matrix."""

_CAUTIOUS_GROWTH = 2.0
"""The power with which a measurement is expected to grow, so that it does not take too long."""

_MEASURED_ROWS = 16
"""Costs are measured on one row of so many, at least one: rows that share calls cost less each."""

_MANY_SECONDS = 60.0
"""From this time of our own work on, a warning is given."""

_PARTS = (8, 4)
"""First rows are measured with the budget divided by these numbers."""

_FEW_ROWS = 8
"""From so many rows on, at most an eighth of them is measured with the whole budget where the call
may be long."""

_LARGE = 1024
"""The size of a matrix whose factor says how fast the machine is; it takes some 20 ms."""

_SECONDS_TO_MEASURE = 0.3
"""About how long these rows take. Several rows share what a call does once for a block of them."""


def expected_error(estimator: Estimator[Any], n_players: int, budget: int) -> float:
    """Return the relative error to expect of a row with so many players; 0 of an exact one."""
    if n_players <= MAX_PLAYERS and budget >= 2**n_players:
        return 0.0
    table = _RANDOM_ORDER
    if isinstance(estimator, OddGP):
        table = _EQUAL if estimator.weights == "equal" else _LEARNED
    x, last = np.log(budget / n_players), _EVALUATIONS_EACH[-1]
    of_sizes = [np.interp(x, _EVALUATIONS_EACH, np.log(errors)) for errors in table]
    error = float(np.exp(np.interp(np.log(n_players), _N_PLAYERS, of_sizes)))
    if x > last:  # as the root of the budget, like all errors of random draws
        return error * float(np.exp((last - x) / 2))
    return error - float(min(0.0, x - _EVALUATIONS_EACH[0]))


@dataclass(frozen=True)
class OwnWork:
    """Our own work with one budget: seconds for a design, and for each row.

    `n_stored` values of it are in memory, and `error` is the mean standard error of the results.
    """

    design: float
    row: float
    n_stored: int = 0
    error: float = math.nan


@dataclass
class Costs:
    """The measured costs of a call.

    Attributes
    ----------
    game : Game
        The games of all rows.
    settings : Settings
        The settings of the call.
    active : array, (R, M)
        The players that can change the value of each row.
    memory : ValueMemory
        Knows the seconds of an evaluation, and the values of the measurements.
    n_workers : int
        The workers that share the rows.
    n_outputs : int
        The outputs of a row. Measurements find them.
    """

    game: Game
    settings: Settings
    active: BoolArray
    memory: ValueMemory
    n_workers: int = 1
    n_outputs: int = 1
    n_rows_of: dict[int, int] = field(init=False)
    _work: dict[int, dict[int, OwnWork]] = field(default_factory=dict, init=False)
    _reused: dict[int, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        n_active = self.active.sum(axis=1)
        sizes, counts = np.unique(n_active[n_active > 0], return_counts=True)
        self.n_rows_of = dict(zip(sizes.tolist(), counts.tolist(), strict=True))
        self.sizes: IntArray = sizes
        self.n_players = max(self.n_rows_of, default=0)
        self._widest = np.flatnonzero(n_active == self.n_players)
        self._n_measured = -(-len(self._widest) // _MEASURED_ROWS)

    def measure(self, estimator: Estimator[Any], budget: int, n_rows: int | None = None) -> None:
        """Estimate the first rows with most players by some budget, and store what it took.

        One row first: what it takes beside the later ones is a design, and what a design needs
        once. The values stay in memory, so that a later round does not pay for them again. A call
        for one row needs no more than that.
        """
        once = self._estimated(self._widest[:1], estimator, budget)
        if self.game.n_rows == 1:
            return
        rows = self._widest[: n_rows or self._n_measured]
        self._estimated(rows, estimator, budget, once.row)

    def _estimated(
        self, rows: IntArray, estimator: Estimator[Any], budget: int, once: float = 0.0
    ) -> OwnWork:
        """Estimate some rows, and store and return what it took."""
        settings = replace(
            self.settings,
            budget=budget,
            max_seconds=None,
            tolerance=None,
            with_errors=self.settings.needs_errors,
            trace=False,
            is_for_training=True,  # no user reads these values, so that nothing is warned of
        )
        # The run and its result have arrays of all rows, which a call makes once.
        run = Run(self.game, estimator, settings, self.active)
        evaluate = Evaluator(self.game, settings.batch_size, is_timed=True, memory=self.memory)
        points = end_points(self.game.n_players)
        (ends,) = evaluate([Request(rows, CoalitionTable(points[None], np.array([2])))])
        self.n_outputs = ends.shape[2]
        blank = np.zeros((self.game.n_rows, *ends.shape[1:]))
        result = blank_estimate(
            blank,
            self.game.n_players,
            settings.seed,
            settings.name,
            settings.interactions,
            has_unions=estimator.has_unions,
        )
        with self.recorded(estimator, budget, len(rows), once):
            run.estimate_block(rows, ends, evaluate, result)
        work = replace(self._last(estimator), error=float(result.standard_errors[rows].mean()))
        self._work[id(estimator)][budget] = work
        return work

    @contextmanager
    def recorded(
        self, estimator: Estimator[Any], budget: int, n_rows: int, once: float = 0.0
    ) -> Iterator[None]:
        """Store what it takes to estimate some rows, and what it took for a first row."""
        memory, last = self.memory, self._last(estimator)
        of_model, n_found, started = memory.seconds, memory.n_found, perf_counter()
        yield
        row = (perf_counter() - started - (memory.seconds - of_model)) / n_rows
        if last.n_stored and budget > self.largest_measured(estimator):
            # Whether designs of more evaluations begin with those of fewer.
            self._reused[id(estimator)] = min(1.0, (memory.n_found - n_found) / last.n_stored)
        n_stored = n_rows * budget if memory.is_storing else 0
        smaller = {old: it for old, it in self._measured(estimator).items() if old < budget}
        work = OwnWork(max(0.0, once - row), max(0.0, row), n_stored, last.error)
        self._work[id(estimator)] = {**smaller, budget: work}

    def count(self, estimator: Estimator[Any], budget: int) -> bool:
        """Store our own work by its operations; return whether the estimator knows them."""
        operations = estimator.operations(self.n_players, budget)
        if not operations.per_row:
            return False
        n_apart = min(self.n_outputs, operations.most_outputs or self.n_outputs)
        speed = _operations_per_second()
        work = OwnWork(operations.once / speed, n_apart * operations.per_row / speed)
        self._work[id(estimator)] = {budget: work}
        return True

    def expected_errors(
        self, estimators: Sequence[Estimator[Any]], budgets: Sequence[int]
    ) -> list[float]:
        """Return the errors to expect, by those of the measurements where all have them.

        They fall with the budget as those of `expected_error`.
        """
        expected = [
            expected_error(estimator, self.n_players, budget)
            for estimator, budget in zip(estimators, budgets, strict=True)
        ]
        measured = [
            self._last(estimator).error
            / (expected_error(estimator, self.n_players, self.largest_measured(estimator)) or 1.0)
            for estimator in estimators
            if self.largest_measured(estimator)
        ]
        if len(measured) < len(expected) or not np.all(np.isfinite(measured)):
            return expected
        return [error * factor for error, factor in zip(expected, measured, strict=True)]

    def measure_model(self, n_coalitions: int) -> None:
        """Evaluate random coalitions of the first row with most players."""
        shape = (1, n_coalitions, self.game.n_players)
        coalitions = np.random.default_rng(self.settings.seed).random(shape) < 0.5
        evaluate = Evaluator(self.game, self.settings.batch_size, is_timed=True, memory=self.memory)
        table = CoalitionTable(coalitions, np.array([n_coalitions]))
        (values,) = evaluate([Request(self._widest[:1], table)])
        self.n_outputs = values.shape[2]

    def largest_measured(self, estimator: Estimator[Any]) -> int:
        """Return the largest budget that was measured; 0 without any."""
        return max(self._measured(estimator), default=0)

    def knows_growth(self, estimator: Estimator[Any]) -> bool:
        """Return whether two budgets were measured, one at least twice the other."""
        measured = self._measured(estimator)
        return bool(measured) and 2 * min(measured) <= max(measured)

    def _measured(self, estimator: Estimator[Any]) -> dict[int, OwnWork]:
        return self._work.get(id(estimator), {})

    def _last(self, estimator: Estimator[Any]) -> OwnWork:
        return self._measured(estimator).get(self.largest_measured(estimator), OwnWork(0.0, 0.0))

    def least_budget(self, estimator: Estimator[Any]) -> int:
        """Return the smallest budget that the estimator can use for all rows."""
        return max(self._least(size, estimator) for size in self.n_rows_of)

    def own_seconds(self, estimator: Estimator[Any], budget: int) -> float:
        """Return the seconds of our own work in a call."""
        factor = 1.0 if self.settings.tolerance is None else _TOLERANCE_FACTOR
        work = self._work_at(estimator, budget)
        has_own_designs = self.settings.independent_rows and not estimator.is_drawn_by_labels
        seconds, n_drawn = 0.0, 0
        for n_players, n_rows in self.n_rows_of.items():
            if _is_enumerated(n_players, budget):
                each = _ENUMERATION_SECONDS * n_players * self.n_outputs
                seconds += n_rows * 2**n_players * each
            else:
                seconds += n_rows * factor * work.row
                n_drawn += n_rows
        n_designs = n_drawn if has_own_designs else min(n_drawn, 1)
        return (seconds + n_designs * work.design) / self.n_workers

    def model_seconds(self, estimator: Estimator[Any], budget: int) -> float:
        """Return the seconds of the model in a call, without the values that are in memory."""
        n_evaluations = sum(
            n_rows * (2**n_players if _is_enumerated(n_players, budget) else budget)
            for n_players, n_rows in self.n_rows_of.items()
        )
        n_known = self._reused.get(id(estimator), 0.0) * self._last(estimator).n_stored
        return max(0.0, n_evaluations - n_known) * self.memory.seconds_each / self.n_workers

    def seconds(self, estimator: Estimator[Any], budget: int) -> float:
        """Return the seconds of a call."""
        return self.model_seconds(estimator, budget) + self.own_seconds(estimator, budget)

    def seconds_of_measurement(self, estimator: Estimator[Any], budget: int) -> float:
        """Return about the most seconds that `measure` takes."""
        work, n_rows = self._last(estimator), self._n_measured
        growth = math.pow(budget / max(1, self.largest_measured(estimator)), _CAUTIOUS_GROWTH)
        own = work.design + (1 + n_rows) * work.row
        return n_rows * budget * self.memory.seconds_each + growth * own

    def measure_several(self, estimator: Estimator[Any], budget: int) -> None:
        """Measure as many rows as take some time, after a row was measured."""
        n_rows = _SECONDS_TO_MEASURE / max(1e-6, self._work_at(estimator, budget).row)
        most = max(1, len(self._widest) // _FEW_ROWS)
        self.measure(estimator, budget, int(np.clip(n_rows, 1, most)))

    def largest_budget(self, estimator: Estimator[Any], seconds: float) -> int | None:
        """Return the largest budget whose call takes at most some time; None if none does."""
        least = self.least_budget(estimator)
        most: int = 2 ** min(self.n_players, 50)
        if self.memory.seconds_each > 0:
            n_new = int(seconds * self.n_workers / self.memory.seconds_each) + 1
            most = min(most, max(least, n_new + self._last(estimator).n_stored))
        if self.settings.budget is not None:
            most = min(most, self.settings.budget)
        if not self._fits(estimator, least, seconds):
            return None
        low, high = least, max(least, most)
        while high - low > max(1, low // 64):
            middle = (low + high) // 2
            low, high = (middle, high) if self._fits(estimator, middle, seconds) else (low, middle)
        candidates = [1 << size for size in self.n_rows_of if low < 2**size <= most]
        exact = [budget for budget in candidates if self._fits(estimator, budget, seconds)]
        return max([low, *exact, *([high] if self._fits(estimator, high, seconds) else [])])

    def _fits(self, estimator: Estimator[Any], budget: int, seconds: float) -> bool:
        for n_players in self.n_rows_of:
            if 2**n_players <= budget:
                if n_players > MAX_PLAYERS:
                    return False
            else:
                needed = estimator.memory(n_players, budget)
                if self.settings.interactions is not None:
                    needed += estimator.interaction_memory(
                        n_players, budget, self.settings.interactions
                    )
                if needed > memory_limit():
                    return False
        return self.seconds(estimator, budget) <= seconds

    def _least(self, n_players: int, estimator: Estimator[Any]) -> int:
        if n_players <= MAX_PLAYERS and needs_enumeration(estimator, self.settings):
            return int(2**n_players)
        return int(min(2**n_players, estimation_cost(n_players, estimator, self.settings)))

    def _work_at(self, estimator: Estimator[Any], budget: int) -> OwnWork:
        """Return our own work with a budget, by the growth between the last two measurements."""
        measured = sorted(self._measured(estimator).items())
        if not measured:
            return OwnWork(0.0, 0.0)
        last_budget, last = measured[-1]
        power = _LEAST_GROWTH
        earlier = [one for one in measured if 2 * one[0] <= last_budget]
        if earlier:
            before_budget, before = earlier[-1]
            ratio = (last.row + 1e-9) / (before.row + 1e-9)
            power = math.log(ratio) / math.log(last_budget / before_budget)
            power = min(max(power, _LEAST_GROWTH), _MOST_GROWTH)
        factor = (budget / last_budget) ** power
        return OwnWork(factor * last.design, factor * last.row)


def _operations_per_second() -> float:
    """Return those of a factor of a large matrix, here and now."""
    matrix = np.eye(_LARGE) + 0.5
    started = perf_counter()
    np.linalg.cholesky(matrix)
    return _LARGE**3 / 3 / max(perf_counter() - started, 1e-6)


def _is_enumerated(n_players: int, budget: int) -> bool:
    return n_players <= MAX_PLAYERS and 2**n_players <= budget


def forecast_own_seconds(costs: Costs, estimator: Estimator[Any], budget: RowBudget) -> None:
    """Forecast our own work by that of the first rows, and warn from a minute on.

    The work of the design, of all rows and of all outputs is forecast from its operations where the
    estimator knows them. Else it is measured with smaller budgets and, where there are many rows,
    of some rows with the whole budget.
    """
    limit = budget.limit
    if costs.count(estimator, limit):
        warn_of_long_call(costs, estimator, limit)
        return
    for part in _PARTS:
        costs.measure(estimator, max(budget.minimum, limit // part), n_rows=1)
    if costs.own_seconds(estimator, limit) < _MANY_SECONDS / 3:
        return
    if costs.game.n_rows >= _FEW_ROWS:
        costs.measure_several(estimator, limit)
    warn_of_long_call(costs, estimator, limit)


def warn_of_long_call(costs: Costs, estimator: Estimator[Any], limit: int) -> None:
    """Warn where measured costs say that our own work takes minutes."""
    settings = costs.settings
    seconds = costs.own_seconds(estimator, limit)
    if seconds < _MANY_SECONDS:
        return
    cheaper = LeastSquares()
    remedy = ""
    if not isinstance(estimator, LeastSquares) and limit >= cheaper.minimum_budget(costs.n_players):
        costs.measure(cheaper, limit, n_rows=1)
        if costs.game.n_rows >= _FEW_ROWS:
            costs.measure_several(cheaper, limit)
        fewer = costs.own_seconds(cheaper, limit)
        if fewer < seconds / 2:
            remedy = f" Least squares would take {rounded_seconds(fewer)}, with larger errors."
    warn_user(
        f"{settings.name} computes for about {rounded_seconds(seconds)} beside the model, for "
        f"{costs.game.n_rows} rows of {costs.n_players} players and {limit} evaluations."
        f"{remedy} {settings.fewer_players}, lower {settings.limit_name}, or pass max_seconds.",
        subject="own seconds",
    )


def named(estimator: Estimator[Any]) -> str:
    """Return the name of a candidate, as users ask for it."""
    if isinstance(estimator, RandomOrder):
        return "randomorder"
    weights = getattr(estimator, "weights", "learned")
    return "oddgp" if weights == "learned" else f"oddgp with weights={weights!r}"

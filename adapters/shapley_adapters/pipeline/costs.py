"""What a call takes: our own work by counts of operations, the model by its first batches.

Which estimator errs less with which budget is assumed from tables, before any measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ..array_types import BoolArray, IntArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import BudgetError, warn_user
from ..estimators.exact import MAX_PLAYERS
from ..estimators.odd_gp.fitting import QUICKLY_FROM
from ..estimators.protocol import Declaration, Estimator, Passes
from ..estimators.random_order import RandomOrder
from ..games.evaluation import Evaluator, Request
from ..games.game import Game
from ..games.value_memory import ValueMemory
from ..memory_bounds import memory_limit
from ..workers import n_workers_for
from .drawing import repeated_drawing
from .settings import (
    OPERATIONS_PER_SECOND,
    Settings,
    estimation_cost,
    needs_enumeration,
    rounded_seconds,
)

_N_PLAYERS = np.log([8, 13, 30, 60, 200])
_EVALUATIONS_EACH = np.log([2.3, 4, 8, 16, 32, 64, 128])
"""Numbers of players, and evaluations per player, of the table `Declaration.errors`."""

_ENUMERATED = 300.0
"""Operations of our own for each coalition, player and output of an enumeration, measured with 10
to 14 players."""

_TOLERANCE_FACTOR = 3.0
"""With a tolerance, rows are solved after each round: about this multiple of the last solution."""

_MANY_SECONDS = 60.0
"""From this time of our own work on, a warning is given."""

_COALITIONS = 2, 64
"""The batches that measure the model, at most. Their differences tell a call from its rows."""

_SHARE_OF_EVALUATIONS, _SHARE_OF_TIME, _TIMES = 0.05, 0.1, 3
"""Shares of the evaluations of a call, for all batches, and of its time, for those of a size; and
the number of batches of a size."""

_GROWTH_IF_QUICK = 0.3
"""Errors of quickly learned weights are those of all values times this power of how many times as
many evaluations there are, as measured with 13 to 120 players and 4 to 32 evaluations of each."""

CLASS = 4.0
"""Times of the model are rounded to a power of this, so that what is chosen by them repeats on a
busy machine."""


def expected_error(estimator: Estimator[Any], n_players: int, budget: int) -> float:
    """Return the relative error to expect of a row with so many players; 0 of an exact one."""
    if _is_enumerated(n_players, budget):
        return 0.0
    table = (estimator.declaration or Declaration()).errors
    x, first, last = np.log(budget / n_players), _EVALUATIONS_EACH[0], _EVALUATIONS_EACH[-1]
    of_sizes = [np.interp(x, _EVALUATIONS_EACH, np.log(errors)) for errors in table]
    error = float(np.exp(np.interp(np.log(n_players), _N_PLAYERS, of_sizes)))
    if getattr(estimator, "weights", "") == "quick":
        error *= max(1.0, budget / 2 / QUICKLY_FROM) ** _GROWTH_IF_QUICK
    if x > last:  # as the root of the budget, like all errors of random draws
        return error * float(np.exp((last - x) / 2))
    error += (1 - error) * max(0.0, 1 - float(x / first))  # 1 at one evaluation a player
    if isinstance(estimator, RandomOrder):  # a part of an order leaves players without any value
        error += 2 * max(0.0, float(np.log(estimator.useful_budget(n_players) / budget)))
    return error


class Plan(NamedTuple):
    """An estimator, and the evaluations of each row."""

    estimator: Estimator[Any]
    budget: int


@dataclass
class Costs:
    """The costs of a call.

    Attributes
    ----------
    game : Game
        The games of all rows.
    settings : Settings
        The settings of the call.
    active : array, (R, M)
        The players that can change the value of each row.
    memory : ValueMemory
        The values that were evaluated to measure the model, and its time.
    n_outputs : int
        The outputs of a row, which the first batch tells.
    of_call, of_row : float
        The seconds of the model for a call, and for each evaluation in it.
    unnoticed : float
        The seconds of our own work in a call that are no reason to choose another plan.
    slowness : dict of type to float
        The time of an estimator's own work in an earlier round, as a multiple of that of its
        operations on a common core.
    """

    game: Game
    settings: Settings
    active: BoolArray
    memory: ValueMemory = field(default_factory=ValueMemory)
    n_outputs: int = 1
    of_call: float = field(default=0.0, init=False)
    of_row: float = field(default=0.0, init=False)
    unnoticed: float = field(default=np.inf, init=False)
    slowness: dict[type[Estimator[Any]], float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        n_active = self.active.sum(axis=1)
        self.sizes: IntArray
        self.sizes, counts = np.unique(n_active[n_active > 0], return_counts=True)
        self.n_rows_of = dict(zip(self.sizes.tolist(), counts.tolist(), strict=True))
        self.n_players = max(self.n_rows_of, default=0)
        self.n_workers = n_workers_for(self.settings.n_jobs, self.game.n_rows)

    def measure_model(self, n_evaluations: int, seconds: float = np.inf) -> None:
        """Time the model by a few coalitions of the first row with most players.

        Parameters
        ----------
        n_evaluations : int
            The evaluations of the whole call; with 2, the values of all players and of none only.
        seconds : float
            The time of the whole call.
        """
        row = np.flatnonzero(self.active.sum(axis=1) == self.n_players)[:1]
        evaluate = Evaluator(self.game, self.settings.batch_size, memory=self.memory)

        def timed(coalitions: BoolArray) -> float:
            """Return the seconds of an evaluation in this batch."""
            started = perf_counter()
            table = CoalitionTable(coalitions[None], np.array([len(coalitions)]))
            self.n_outputs = evaluate([Request(row, table)])[0].shape[2]
            return (perf_counter() - started) / len(coalitions)

        rng = np.random.default_rng(self.settings.seed)
        # The first call of a model may be slow.
        self.of_row, self.of_call, last = timed(end_points(self.game.n_players)), 0.0, 0.0
        left = _SHARE_OF_EVALUATIONS * n_evaluations
        for most in _COALITIONS:
            affordable = int(min(left, _SHARE_OF_TIME * seconds / max(self.of_row, 1e-9)))
            n = min(most, affordable // _TIMES, self.game.evaluations_per_batch)
            n = max(n, min(2, n_evaluations - 2)) if not last else n
            if n <= last:
                break
            # On a busy machine, the fastest of some batches ran without a break.
            times = _TIMES if _TIMES * n <= affordable else 1
            left -= times * n
            each = min(map(timed, rng.random((times, n, self.game.n_players)) < 0.5))
            if last:
                difference = (n * each - last * self.of_row) / (n - last)
                of_row = float(np.clip(difference, each / 16, each))
                self.of_row, self.of_call = of_row, n * (each - of_row)
            else:
                self.of_row = each
            last = n

    def own_seconds(self, plan: Plan) -> float:
        """Return the seconds of our own work in a call."""
        factor = 1.0 if self.settings.tolerance is None else _TOLERANCE_FACTOR
        has_own_designs = self.settings.independent_rows and not plan.estimator.is_drawn_by_labels
        total = 0.0
        for n_players, n_rows in self.n_rows_of.items():
            if _is_enumerated(n_players, plan.budget):
                total += n_rows * 2.0**n_players * n_players * self.n_outputs * _ENUMERATED
                continue
            work = plan.estimator.operations(n_players, plan.budget, self.n_outputs)
            n_designs = n_rows if has_own_designs else 1
            total += n_designs * work.once + n_rows * factor * work.per_row
        slowness = self.slowness.get(type(plan.estimator), 1.0)
        return slowness * total / OPERATIONS_PER_SECOND / self.n_workers

    def model_seconds(self, plan: Plan) -> float:
        """Return the seconds of the model in a call."""
        n = sum(
            n_rows * (2**n_players if _is_enumerated(n_players, plan.budget) else plan.budget)
            for n_players, n_rows in self.n_rows_of.items()
        )
        bounds = self.game.batch_bounds  # batches grow where that saves time
        largest = self.game.evaluations_per_batch if bounds is None else bounds.largest
        size = self.settings.batch_size or largest
        return float(n * self.of_row + -(-n // size) * self.of_call) / self.n_workers

    def seconds(self, plan: Plan) -> float:
        """Return the seconds of a call."""
        return self.model_seconds(plan) + self.own_seconds(plan)

    def least_budget(self, estimator: Estimator[Any]) -> int:
        """Return the smallest budget that the estimator can use for all rows."""
        settings, least = self.settings, 0
        for n_players in self.n_rows_of:
            n_all, of_size = 2**n_players, estimation_cost(n_players, estimator, settings)
            if estimator.uses_gradients(n_players, of_size):
                of_size = Passes.fewest_evaluations(self.n_outputs)
            if n_players <= MAX_PLAYERS and needs_enumeration(estimator, settings):
                of_size = n_all
            least = max(least, min(n_all, of_size))
        game, sizes = self.game, np.array(list(self.n_rows_of))
        if game.draws_values or game.answers_at_random or settings.n_repeats > 1:
            quiet = replace(settings, budget=least, max_seconds=None)
            has_draws = game.only_absence_is_random and settings.n_repeats == 1
            try:
                repeated_drawing(sizes, estimator, quiet, has_draws)
            except BudgetError as error:  # several draws of a value need more
                least = error.needed or least
        return least

    def is_cheap(self, plan: Plan) -> bool:
        """Return whether our own work takes no longer than the model, by its rounded times."""
        return self.own_seconds(plan) <= max(self.unnoticed, self.model_seconds(plan) / CLASS**0.5)

    def best_plan(
        self, candidates: Sequence[Estimator[Any]], seconds: float, most: Sequence[int]
    ) -> Plan | None:
        """Return what errs least in some time, with at most so many evaluations by each candidate.

        None where nothing fits into the time.
        """
        plans = []
        for candidate, limit in zip(candidates, most, strict=True):
            budget = self._largest_budget(candidate, seconds, limit)
            if budget is not None:
                plans.append(Plan(candidate, budget))
        errors = [expected_error(plan.estimator, self.n_players, plan.budget) for plan in plans]
        return plans[int(np.argmin(errors))] if plans else None

    def _largest_budget(self, estimator: Estimator[Any], seconds: float, most: int) -> int | None:
        """Return the largest budget whose call takes at most some time; None if none does."""
        low, high = self.least_budget(estimator), most
        if low > high or not self._fits(Plan(estimator, low), seconds):
            return None
        if self._fits(Plan(estimator, high), seconds):
            return int(high)
        exact = [1 << size for size in self.n_rows_of if low < 2**size <= high]
        tops = [budget for budget in exact if self._fits(Plan(estimator, budget), seconds)]
        while high - low > max(1, low // 64):
            middle = (low + high) // 2
            fits = self._fits(Plan(estimator, middle), seconds)
            low, high = (middle, high) if fits else (low, middle)
        return int(max([low, *tops]))

    def _fits(self, plan: Plan, seconds: float) -> bool:
        """Return whether a call takes at most some time, and memory suffices."""
        for n_players in self.n_rows_of:
            if 2**n_players <= plan.budget:
                if n_players > MAX_PLAYERS:
                    return False
                continue
            needed = plan.estimator.memory(n_players, plan.budget)
            request = self.settings.interactions
            if request is not None:
                needed += plan.estimator.interaction_memory(n_players, plan.budget, request)
            if needed > memory_limit():
                return False
        return self.is_cheap(plan) and self.seconds(plan) <= seconds


def _is_enumerated(n_players: int, budget: int) -> bool:
    return n_players <= MAX_PLAYERS and 2**n_players <= budget


def warn_of_long_call(costs: Costs, plan: Plan) -> bool:
    """Warn where our own work takes minutes; return whether it does."""
    settings, seconds = costs.settings, costs.own_seconds(plan)
    if seconds < _MANY_SECONDS:
        return False
    cheaper = Plan(RandomOrder(), plan.budget)
    fewer, remedy = costs.own_seconds(cheaper), ""
    if fewer < seconds / 2 and plan.budget >= costs.least_budget(cheaper.estimator):
        remedy = f" Random orders would take {rounded_seconds(fewer)}, with larger errors."
    warn_user(
        f"{settings.name} computes for about {rounded_seconds(seconds)} beside the model, for "
        f"{costs.game.n_rows} rows of {costs.n_players} players and {plan.budget} evaluations."
        f"{remedy} {settings.fewer_players}, lower {settings.limit_name}, or pass max_seconds.",
        subject="own seconds",
    )
    return True


def named(estimator: Estimator[Any]) -> str:
    """Return the name of a candidate, as users ask for it."""
    name = (estimator.declaration or Declaration()).name.replace(" ", "").lower()
    return f"{name}, weights='quick'" if getattr(estimator, "weights", "") == "quick" else name

"""A time for the call: rounds with larger and larger budgets, until the next one would pass it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from ..array_types import IntArray
from ..errors import BudgetError, InvalidArgumentError
from ..estimators.protocol import Estimator
from ..games.game import Game
from ..games.value_memory import TimeIsUp, ValueMemory
from ..workers.worker_processes import jobs_of
from .costs import Costs, named
from .one_round import estimate_round
from .result import Estimate
from .settings import Settings, checked_budgets
from .solutions import check_interactions

_PLANNED_SHARE = 0.92
"""Share of the remaining time that a round is planned for; the rest is for costs that vary."""

_FIRST_EVALUATIONS = 4
"""Evaluations for each player of the first measurement, if they take little of the time."""

_GROWTH = 4
"""Largest factor between a measurement and the next one."""

_TRUSTED_GROWTH = 1.1
"""A budget up to this multiple of a measured one is forecast well."""

_CAUTIOUS_GROWTH = 1.5
"""A budget that is too dear to measure is at most this multiple of the last one."""

_MOSTLY_OVERHEAD = 2.0
"""If a batch that is four times as large takes at most so many times as long, a larger one is
measured."""

_FEW_ROWS = 6
"""Values of so few rows are remembered from one round to the next."""

_MEASURED_SHARE = 0.15
"""Share of the time that one measurement may take, except those of the smallest budgets."""

_TRIED_SHARE = 0.6
"""With less than this share of the time left, measured budgets are used."""

_WORTHWHILE = 1.15
"""The budget of a further round is at least this multiple of that of the last one."""


@dataclass(frozen=True)
class _Plan:
    """A round: an estimator, and the evaluations of each row."""

    estimator: Estimator[Any]
    budget: int


def refuse_graphs(estimator: Estimator[Any], settings: Settings) -> None:
    """Refuse a time for estimators on graphs.

    Raises
    ------
    InvalidArgumentError
        If the estimator needs a graph.
    """
    if estimator.needs_graph:
        raise InvalidArgumentError(
            f"max_seconds={settings.max_seconds:g} cannot be used with {settings.name}: the cost "
            f"of estimators on graphs depends on the graph. Pass {settings.budget_name} instead."
        )


def estimate_until(game: Game, estimator: Estimator[Any], settings: Settings) -> Estimate:
    """Estimate all rows within `settings.max_seconds`, by the best candidate of the estimator.

    The first rows are estimated with small budgets, whose values count. Then all rows are, with the
    largest budget that the time pays for. If that leaves more than a fifth of the time, and a
    budget that is a quarter larger fits into it, all rows are estimated again.

    Raises
    ------
    BudgetError
        If not even the smallest budget fits into the time.
    """
    return _Deadline(game, estimator, settings).estimate()


@dataclass
class _Deadline:
    """The rounds of one call."""

    game: Game
    estimator: Estimator[Any]
    settings: Settings
    _memory: ValueMemory = field(default_factory=ValueMemory, init=False)

    def __post_init__(self) -> None:
        self._started = perf_counter()
        self._limit = float(self.settings.max_seconds or 0.0)
        active = self.game.active_players()
        n_workers = jobs_of(self.settings.n_jobs, self.game.n_rows).n_workers
        self._costs = Costs(self.game, self.settings, active, self._memory, n_workers)
        self._n_all = 2**self._costs.n_players
        self._able = self.estimator.candidates or (self.estimator,)

    def estimate(self) -> Estimate:
        """Run the rounds, and return the result of the last one."""
        costs = self._costs
        if not costs.n_rows_of:  # no player can change any value
            settings = replace(self.settings, budget=1)
            return estimate_round(self.game, self._able[0], settings)
        candidates = self._checked_candidates()
        self._check_time(candidates[0])
        plan = self._measured_plan(candidates)
        if plan is None:
            raise self._too_short(candidates[0])
        result = self._round(plan)
        while not result.enumerated.all():
            after = self._measured_plan(candidates)
            if after is None or not self._is_worthwhile(plan, after):
                break
            try:
                plan, result = after, self._round(after, is_needed=False)
            except TimeIsUp:
                break
        return result

    def _is_worthwhile(self, before: _Plan, after: _Plan) -> bool:
        """Return whether a further round has enough evaluations, and a smaller error to expect."""
        if after.budget < _WORTHWHILE * before.budget:
            return False
        old, new = self._costs.expected_errors(
            [before.estimator, after.estimator], [before.budget, after.budget]
        )
        return new < old

    @property
    def _left(self) -> float:
        return self._limit - (perf_counter() - self._started)

    @property
    def _is_late(self) -> bool:
        """Whether no time should go into further measurements."""
        return self._left < _TRIED_SHARE * self._limit

    def _checked_candidates(self) -> list[Estimator[Any]]:
        """Return the estimators that can answer the call; refuse one that no time suffices for."""
        costs, settings = self._costs, self.settings
        sizes: IntArray = costs.sizes
        able: list[Estimator[Any]] = []
        for candidate in self._able:
            budget = settings.budget or costs.least_budget(candidate)
            quiet = replace(settings, max_seconds=None, budget=budget)
            try:
                budgets = checked_budgets(sizes, candidate, quiet)
                check_interactions(candidate, quiet, budgets.values(), costs.active.shape)
            except (BudgetError, InvalidArgumentError):
                if not able:
                    raise
                continue
            able.append(candidate)
        return able

    def _check_time(self, estimator: Estimator[Any]) -> None:
        """Refuse a time that a few evaluations show to be too short."""
        costs, n_coalitions = self._costs, self._measure_speed()
        least = costs.least_budget(estimator)
        while costs.model_seconds(estimator, least) > self._left:
            # Small batches are mostly the overhead of a call, so that larger ones may cost less.
            n_coalitions *= _GROWTH
            if n_coalitions * self._memory.seconds_each > self._left / 2:
                raise self._too_short(estimator)
            costs.measure_model(n_coalitions)

    def _measure_speed(self) -> int:
        """Measure larger batches of the model while they hardly take longer; return the last size.

        Models behind a network answer many rows as fast as one.
        """
        costs, memory, n_coalitions = self._costs, self._memory, _GROWTH
        costs.measure_model(1)  # the first call of a model may be slow
        last = memory.seconds_each
        costs.measure_model(n_coalitions)
        while n_coalitions < self.game.evaluations_per_batch:
            seconds = n_coalitions * memory.seconds_each
            ratio, last = seconds / max(last, 1e-9), seconds
            is_cheap = max(ratio, 1.0) * seconds < _MEASURED_SHARE * self._left
            if ratio > _MOSTLY_OVERHEAD or not is_cheap or _GROWTH * seconds > self._left / 2:
                break
            n_coalitions = min(_GROWTH * n_coalitions, self.game.evaluations_per_batch)
            costs.measure_model(n_coalitions)
        return n_coalitions

    def _measured_plan(self, candidates: Sequence[Estimator[Any]]) -> _Plan | None:
        """Measure larger and larger budgets until the forecast of a round can be trusted."""
        costs = self._costs
        if costs.largest_budget(candidates[0], _PLANNED_SHARE * self._left) == self._n_all:
            return _Plan(candidates[0], self._n_all)
        longest = _MEASURED_SHARE * self._left
        for candidate in candidates:
            least = costs.least_budget(candidate)
            first = max(least, _FIRST_EVALUATIONS * costs.n_players)
            if costs.seconds_of_measurement(candidate, first) > longest:
                first = least
            is_cheap = costs.seconds_of_measurement(candidate, first) <= longest
            if costs.largest_measured(candidate) or not (is_cheap or candidate is candidates[0]):
                continue
            if least < self._n_all:  # otherwise enumeration alone answers the call
                costs.measure(candidate, first)
        while (plan := self._best_plan(candidates)) is not None:
            estimator, budget = plan.estimator, plan.budget
            measured = costs.largest_measured(estimator)
            if self._is_late:
                break
            if budget >= self._n_all or budget <= _TRUSTED_GROWTH * measured:
                if not self._measure_another(candidates, budget, longest):
                    break
                continue
            trial = min(budget, _GROWTH * measured)
            while trial > measured and costs.seconds_of_measurement(estimator, trial) > longest:
                trial = int(trial / _CAUTIOUS_GROWTH)
            if trial <= _TRUSTED_GROWTH * measured:  # few rows, so that the round is a measurement
                return _Plan(estimator, min(budget, self._cautious_budget(estimator)))
            costs.measure(estimator, trial)
        return plan

    def _measure_another(
        self, candidates: Sequence[Estimator[Any]], budget: int, longest: float
    ) -> bool:
        """Measure another candidate with up to the best one's budget; return whether one was.

        The values of the best one serve its other weights, too: only our own work is new.
        """
        costs = self._costs
        for candidate in candidates:
            measured = costs.largest_measured(candidate)
            affordable = costs.largest_budget(candidate, _PLANNED_SHARE * self._left) or 0
            trial = min(budget, affordable, _GROWTH * measured)
            is_new = _TRUSTED_GROWTH * measured < trial < self._n_all
            if is_new and costs.seconds_of_measurement(candidate, trial) <= longest:
                costs.measure(candidate, trial)
                return True
        return False

    def _best_plan(self, candidates: Sequence[Estimator[Any]]) -> _Plan | None:
        """Return the candidate and the budget of least expected error that fit into the time."""
        costs, plans = self._costs, []
        for candidate in candidates:
            least = costs.least_budget(candidate)
            if least < self._n_all and not costs.largest_measured(candidate):
                continue
            budget = costs.largest_budget(candidate, _PLANNED_SHARE * self._left)
            if budget is None and costs.seconds(candidate, least) <= self._left:
                budget = least  # the smallest one may use all of the time
            if budget is not None:
                if self._is_late and budget < self._n_all:
                    budget = min(budget, self._cautious_budget(candidate))
                plans.append(_Plan(candidate, budget))
        estimators = [plan.estimator for plan in plans]
        errors = costs.expected_errors(estimators, [plan.budget for plan in plans])
        return plans[int(np.argmin(errors))] if plans else None

    def _cautious_budget(self, estimator: Estimator[Any]) -> int:
        """Return the largest budget that is forecast well enough without measuring it."""
        costs = self._costs
        growth = _CAUTIOUS_GROWTH if costs.knows_growth(estimator) else _TRUSTED_GROWTH
        return int(growth * costs.largest_measured(estimator))

    def _round(self, plan: _Plan, is_needed: bool = True) -> Estimate:
        """Estimate all rows; a further round raises `TimeIsUp` where it takes longer than planned.

        The rows of the last block, at least one, are solved after the last batch.
        """
        self._memory.is_recording = self.game.n_rows <= _FEW_ROWS
        memory, settings = self._memory, replace(self.settings, budget=plan.budget)
        if plan.budget == self.settings.budget:  # the time pays for it: messages name this limit
            settings = replace(settings, max_seconds=None)
        if not is_needed and self._costs.n_workers == 1:
            own = self._costs.own_seconds(plan.estimator, plan.budget) / self.game.n_rows
            memory.ends_at = self._started + self._limit - own
        with self._costs.recorded(plan.estimator, plan.budget, self.game.n_rows):
            result = estimate_round(self.game, plan.estimator, settings, memory)
        memory.is_recording = True
        n_timing = max(0, memory.n_evaluations - int(result.evaluations.sum()))
        reason = f"{plan.budget:,} evaluations per row fit into max_seconds={self._limit:g}"
        if self.estimator.candidates:
            reason = f"{named(plan.estimator)}: {reason}"
        return replace(result, timing_evaluations=n_timing, choice=reason)

    def _too_short(self, estimator: Estimator[Any]) -> BudgetError:
        costs = self._costs
        least = costs.least_budget(estimator)
        needed = 1.1 * costs.seconds(estimator, least)
        return BudgetError(
            f"max_seconds={self._limit:g} is too short: {self.settings.name} needs at least "
            f"{least} evaluations for each of {self.game.n_rows} rows, which take about "
            f"{needed:.2g} seconds. Pass max_seconds={float(f'{1.2 * needed:.1e}'):g} or more, or "
            "fewer rows.",
            least,
        )

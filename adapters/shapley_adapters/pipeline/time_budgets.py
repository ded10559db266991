"""The evaluations that fit into a time limit, from measured costs.

Costs are measured before the estimate, by evaluations that do not become part of it. The estimate
then runs with the chosen budget as if the user had named it, so that it can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from ..array_types import BoolArray, IntArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import BudgetError, InvalidArgumentError
from ..estimators.exact import MAX_PLAYERS, full_design, solve_full
from ..estimators.protocol import Estimator
from ..games.evaluation import Evaluator, Request
from ..games.game import Game
from ..interactions.enumeration import enumerated_pairs
from ..memory_bounds import memory_limit
from .budgets import checked_budgets, estimation_cost, needs_enumeration
from .call_costs import CallCosts
from .pair_interactions import check_interactions
from .phase_seconds import PhaseSeconds, Stopwatch
from .result import blank_estimate
from .run import Run
from .settings import Settings
from .stand_in_game import StandInGame

_USED_SHARE = 0.9
"""Share of the time that the budget is chosen for; the rest is for costs that vary."""

_RATE_SHARE, _SCORES_SHARE, _TRIAL_SHARE, _FIRST_TRIAL_SHARE = 0.08, 0.25, 0.2, 0.35
"""Shares of the time by whose end measurements end: of the model, of the scores, of our own work,
and of its first two trials."""

_SMALL_SHARE = 0.03
"""Share of the time below which our own work needs no further trials."""

_FIRST_TRIAL, _TRIAL_GROWTH, _TRIAL_WORK_GROWTH = 64, 2, 4
"""The budget of the first trial; the factor to the budget, and the rows, of the next one; and the
factor of the seconds that is expected."""

_FIRST_TRIAL_ROWS, _MOST_TRIAL_ROWS, _MOST_RATE_BYTES = 8, 32, 2**24

_FINENESS = 1.02
"""Ratio of two budgets that are compared."""

_ENUMERATED_PLAYERS = 10
"""The number of players at which the time of our work in an enumeration is measured."""


@dataclass(frozen=True)
class TimedBudget:
    """A budget chosen from measured costs.

    Attributes
    ----------
    budget : int
        The evaluations for each row.
    timing_evaluations : int
        The evaluations, for all rows together, that measured the costs.
    """

    budget: int
    timing_evaluations: int


@dataclass
class BudgetTimer:
    """Measures the costs of an estimate, and chooses its budget.

    Attributes
    ----------
    game : Game
        The games of all rows.
    estimator : Estimator
        The estimator.
    settings : Settings
        The settings of the estimate, with `max_seconds`.
    active : array, (R, M)
        The players that can change the value of each row.
    """

    game: Game
    estimator: Estimator[Any]
    settings: Settings
    active: BoolArray
    _limit: float = field(init=False)
    _clock: Stopwatch = field(default_factory=Stopwatch, init=False)
    _costs: CallCosts = field(init=False)
    _timing_evaluations: int = field(default=0, init=False)
    _n_outputs: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        settings, estimator = self.settings, self.estimator
        self._limit = float(settings.max_seconds or math.inf)
        n_active = self.active.sum(axis=1)
        sizes, counts = np.unique(n_active[n_active > 0], return_counts=True)
        self._n_rows_of = dict(zip(sizes.tolist(), counts.tolist(), strict=True))
        self._widest = np.flatnonzero(n_active == n_active.max(initial=0))[:_MOST_TRIAL_ROWS]
        has_own_draws = settings.independent_rows and not estimator.is_drawn_by_labels
        self._costs = CallCosts(
            self._n_rows_of,
            estimator.solution_exponent,
            settings.tolerance is not None,
            has_own_draws or estimator.score_source is not None,
        )

    def choose(self) -> TimedBudget:
        """Return the largest budget that fits into the time.

        Raises
        ------
        InvalidArgumentError
            If the estimator needs a graph.
        BudgetError
            If the smallest budget of the estimator does not fit.
        """
        if self.estimator.needs_graph:
            raise InvalidArgumentError(
                f"max_seconds={self._limit:g} cannot be used with {self.settings.name}: the cost "
                "of estimators on graphs depends on the graph. Pass "
                f"{self.settings.budget_name} instead."
            )
        if not self._n_rows_of:  # no player can change any value
            return TimedBudget(1, 0)
        least = max(map(self._least_budget, self._n_rows_of))
        self._check_arguments(least)
        self._measure_evaluation(least)
        self._measure_enumeration()
        self._measure_scores(least)
        self._measure_work(least)
        budget = self._largest_fitting(least, _USED_SHARE)
        if budget is None and self._fits(least, 1.0):
            budget = least
        if budget is None:
            raise self._too_short(least)
        return TimedBudget(budget, self._timing_evaluations)

    def _check_arguments(self, least: int) -> None:
        """Refuse a budget or interactions that are not possible, before anything is evaluated."""
        settings = self._quiet_settings(self.settings.budget or least)
        budgets = checked_budgets(np.array(list(self._n_rows_of)), self.estimator, settings)
        check_interactions(self.estimator, settings, budgets.values(), self.active.shape)

    def _least_budget(self, n_players: int) -> int:
        settings = self.settings
        if n_players <= MAX_PLAYERS and needs_enumeration(self.estimator, settings):
            return int(2**n_players)
        cost = estimation_cost(n_players, self.estimator, settings)
        return int(min(2**n_players, cost))

    def _measure_evaluation(self, least: int) -> None:
        """Measure the seconds of an evaluation, in larger and larger batches.

        The first call of a model may be slow and does not count if there is time for a second one.
        """
        row, n_players = self._widest[:1], self.game.n_players
        rng = np.random.default_rng(self.settings.seed)
        evaluate = Evaluator(self.game, self.settings.batch_size, is_timed=True)
        n_largest = max(2, _MOST_RATE_BYTES // n_players)
        n, is_warm = 2, False
        while True:
            table = CoalitionTable(rng.random((1, n, n_players)) < 0.5, np.array([n]))
            call = Stopwatch()
            (values,) = evaluate([Request(row, table)])
            seconds = call.seconds
            self._n_outputs = values.shape[2]
            self._timing_evaluations += n
            self._costs.evaluation = seconds / n
            elapsed = self._clock.seconds
            if not is_warm and elapsed + seconds < self._limit / 2:
                is_warm = True
                continue
            if elapsed > self._limit:
                raise self._too_short(least)
            if 4 * n > n_largest or elapsed + 4 * seconds > _RATE_SHARE * self._limit:
                return
            n *= 4

    def _measure_enumeration(self) -> None:
        """Measure the seconds of our own work for each coalition and player of an enumeration."""
        n_coalitions = 2**_ENUMERATED_PLAYERS
        values, index = np.ones((1, n_coalitions, self._n_outputs)), self.settings.interactions
        work = Stopwatch()
        design = full_design(_ENUMERATED_PLAYERS)
        solve_full(design, values)
        if index is not None:
            enumerated_pairs(index, design.table.coalitions[0], values)
        self._costs.enumeration = work.seconds / (n_coalitions * _ENUMERATED_PLAYERS)

    def _measure_scores(self, least: int) -> None:
        """Measure the seconds of the scores of a row, which may come from the model's derivatives.

        They are assumed to cost nothing where the smallest estimate of a row takes too much time.
        """
        expected = self._clock.seconds + least * self._costs.evaluation
        if self.estimator.score_source is None or expected > _SCORES_SHARE * self._limit:
            return
        if least < 2 ** max(self._n_rows_of):
            self._costs.scores = self._estimated(self.game, self._widest[:1], least).scores

    def _measure_work(self, least: int) -> None:
        """Measure our own work by trials on another game, as long as it matters for the budget.

        The first one does not count if there is time to repeat it: libraries load parts on demand.
        """
        n_all = 2 ** max(self._n_rows_of)
        most_useful = self._largest_fitting(least, _USED_SHARE) or least
        budget = max(least, min(_FIRST_TRIAL, most_useful, n_all // 2))
        n_rows = min(_FIRST_TRIAL_ROWS, len(self._widest))
        is_warm, share, expected = False, _FIRST_TRIAL_SHARE, 0.0
        while budget < n_all and self._clock.seconds + expected <= share * self._limit:
            work = self._work_of_trial(budget, n_rows)
            if not is_warm:
                is_warm, expected = True, work
                continue
            best = self._largest_fitting(least, _USED_SHARE)
            is_enough = budget >= most_useful or best is None
            if is_enough or self._costs.work(best or least) < _SMALL_SHARE * self._limit:
                return
            share, expected = _TRIAL_SHARE, _TRIAL_WORK_GROWTH * work
            budget = min(_TRIAL_GROWTH * budget, most_useful)
            n_rows = min(_TRIAL_GROWTH * n_rows, len(self._widest))

    def _work_of_trial(self, budget: int, n_rows: int) -> float:
        """Estimate some rows with a small budget, and return the seconds of our own work."""
        stand_in = StandInGame(self.game, self._n_outputs)
        seconds = self._estimated(stand_in, self._widest[:n_rows], budget)
        n_designs = n_rows if self._costs.has_own_designs else 1
        self._costs.designs.add(budget, seconds.designs / n_designs)
        self._costs.solutions.add(budget, seconds.solutions / n_rows)
        return seconds.designs + seconds.solutions

    def _estimated(self, game: Game, rows: IntArray, budget: int) -> PhaseSeconds:
        """Estimate some rows of a game; return the seconds of the phases."""
        settings = self._quiet_settings(budget)
        estimator = self.estimator if game is self.game else self._estimator_of_trials()
        seconds = PhaseSeconds()
        run = Run(game, estimator, settings, self.active, time_phase=seconds.timed)
        evaluate = Evaluator(game, settings.batch_size, is_timed=True)
        points = end_points(game.n_players)
        (end_values,) = evaluate([Request(rows, CoalitionTable(points[None], np.array([2])))])
        ends = np.zeros((game.n_rows, *end_values.shape[1:]))
        result = blank_estimate(
            ends, game.n_players, settings.seed, settings.name, settings.interactions
        )
        run.estimate_block(rows, end_values, evaluate, result)
        if game is self.game:
            self._timing_evaluations += int(result.evaluations[rows].sum())
        return seconds

    def _estimator_of_trials(self) -> Estimator[Any]:
        """Return the estimator with some scores in place of derivatives, which trials do not have.

        The time of the derivatives themselves is measured with the user's model.
        """
        if self.estimator.score_source not in ("auto", "hessian", "gradient"):
            return self.estimator
        n_players = self.game.n_players
        scores = np.random.default_rng(self.settings.seed).random((n_players, n_players))
        estimator: Estimator[Any] = replace(cast(Any, self.estimator), cooperators=scores)
        return estimator

    def _quiet_settings(self, budget: int) -> Settings:
        """Return the settings for values that no user reads, so that nothing is warned of."""
        return replace(
            self.settings,
            budget=budget,
            max_seconds=None,
            tolerance=None,
            with_errors=self.settings.needs_errors,
            is_for_training=True,
        )

    def _largest_fitting(self, least: int, share: float) -> int | None:
        """Return the largest budget that fits into a share of the time; None if there is none."""
        candidates = sorted(self._candidates(least), reverse=True)
        return next((budget for budget in candidates if self._fits(budget, share)), None)

    def _candidates(self, least: int) -> Iterator[int]:
        """Yield budgets from the smallest to the largest that can be useful."""
        largest = 2 ** max(self._n_rows_of)
        if self._costs.evaluation > 0:
            largest = min(largest, max(least, int(self._limit / self._costs.evaluation)))
        if self.settings.budget is not None:
            largest = min(largest, self.settings.budget)
        yield from (2**size for size in self._n_rows_of if least <= 2**size <= largest)
        budget = least
        while budget < largest:
            yield budget
            budget = max(budget + 1, int(_FINENESS * budget))
        yield largest

    def _fits(self, budget: int, share: float) -> bool:
        """Return whether an estimate with a budget fits into a share of the time, and memory."""
        for n_players in self._n_rows_of:
            if 2**n_players <= budget:
                if n_players > MAX_PLAYERS:
                    return False
            elif self._memory(n_players, budget) > memory_limit():
                return False
        return self._clock.seconds + self._costs.seconds(budget) <= share * self._limit

    def _memory(self, n_players: int, budget: int) -> int:
        """Return the bytes of the estimate of a row, with its interactions if there are any."""
        needed = self.estimator.memory(n_players, budget)
        if self.settings.interactions is not None:
            needed += self.estimator.interaction_memory(n_players, budget)
        return needed

    def _too_short(self, least: int) -> BudgetError:
        n_rows = sum(self._n_rows_of.values())
        needed = (self._clock.seconds + self._costs.seconds(least)) / _USED_SHARE
        digits = 1 - math.floor(math.log10(needed))
        rounded_up = math.ceil(needed * 10.0**digits) / 10.0**digits
        return BudgetError(
            f"max_seconds={self._limit:g} is too short: {self.settings.name} needs at least "
            f"{least} evaluations per row, and {n_rows} rows take about {needed:.2g} seconds. "
            f"Pass max_seconds={rounded_up:g} or more, or explain fewer rows at a time.",
            least,
        )

"""From a game and a budget to attributions: estimate the rows, check the model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from ..coalitions.tables import end_points
from ..estimators.protocol import Estimator
from ..games.evaluation import Evaluator
from ..games.game import Game
from ..games.value_memory import ValueMemory
from ..progress_bars import BY_MEAN_SPEED
from ..row_numbers import first_row
from ..workers.jobs import jobs_of
from .costs import Costs, forecast_own_seconds
from .own_seconds import MANY_ENTRIES
from .parallel_rows import estimate_in_workers, raise_with_row
from .repeated_values import check_repeated_values
from .result import Estimate, blank_estimate
from .run import Run, largest_magnitude
from .settings import Settings


def estimate_round(
    game: Game,
    estimator: Estimator[Any],
    settings: Settings,
    memory: ValueMemory | None = None,
) -> Estimate:
    """Estimate all rows with a budget for each, which does not depend on the time.

    Values in `memory` are not computed again.
    """
    active = game.active_players()
    run = Run(game, estimator, settings, active, memory=memory)
    jobs = jobs_of(settings.n_jobs, game.n_rows)
    with _progress_bar(run) as bar:
        evaluate = Evaluator(game, settings.batch_size, bar.update, is_timed=True, memory=memory)
        if jobs.n_workers > 1:  # an error says which row it is, before the workers and in them
            evaluate = replace(evaluate, on_error=partial(raise_with_row, game))
        started = perf_counter()
        ends = evaluate.values_of(end_points(game.n_players))  # (R, 2, K)
        seconds = (perf_counter() - started) / max(1, 2 * game.n_rows)
        run.largest = largest_magnitude(ends)
        budget = run.budgets[max(run.budgets)]
        entries = game.n_rows * budget.n_players * budget.limit * ends.shape[2]
        is_whole = memory is None and first_row() is None and not settings.is_for_training
        if (
            entries > MANY_ENTRIES
            and is_whole
            and not (estimator.needs_graph or budget.enumerates_now)
        ):
            run.memory = ValueMemory()
            costs = Costs(game, settings, active, run.memory, jobs.n_workers)
            forecast_own_seconds(costs, estimator, budget)
            evaluate = replace(evaluate, memory=run.memory)
            run.memory.is_recording = False
        method = type(estimator).__name__
        index, limit = settings.interactions, run.traced_limit
        result = blank_estimate(ends, game.n_players, settings.seed, method, index, limit)
        if jobs.n_workers == 1:
            for rows in run.blocks(0, game.n_rows, ends.shape[2]):
                run.estimate_block(rows, ends[rows], evaluate, result)
        else:
            estimate_in_workers(run, jobs, ends, evaluate, seconds, result)
        bar.total = bar.n  # designs may leave a few evaluations of the budget
    if not settings.is_for_training:
        run.warnings.count_small_budgets(run.budgets, run.n_active, result, estimator)
    run.warnings.warn(game.n_rows, settings)
    if settings.is_for_training:
        return result
    rows = np.flatnonzero(run.n_active)
    spent = result.evaluations[rows]
    n_checks = check_repeated_values(game, settings, rows, ends[rows], run.largest, spent)
    return replace(
        result,
        budget=settings.budget,
        check_evaluations=n_checks,
        rounding=float(getattr(game, "rounding", 0.0)),
        errors_cancel=settings.independent_rows and estimator.is_unbiased,
    )


def _progress_bar(run: Run) -> tqdm[Any]:
    name, delay = run.settings.name, run.settings.progress_delay
    if delay is None:
        return tqdm(disable=True)
    total = None if run.estimator.needs_graph else int(run.most_evaluations().sum())
    return tqdm(total=total, desc=name, unit=" evaluations", delay=delay, **BY_MEAN_SPEED)

"""From a game to attributions: check the budget, estimate the rows, check the model."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from ..coalitions.tables import end_points
from ..estimators.protocol import Estimator
from ..games.evaluation import Evaluator
from ..games.game import Game
from ..workers.jobs import jobs_of
from .parallel_rows import estimate_in_workers
from .repeated_values import check_repeated_values
from .result import Estimate, blank_estimate
from .run import Run, largest_magnitude
from .settings import Settings
from .time_budgets import BudgetTimer


def estimate(game: Game, estimator: Estimator[Any], settings: Settings) -> Estimate:
    """Estimate the Shapley values of all rows of `game`.

    A row's result does not depend on the other rows, on their order, on the batch size or on the
    number of workers: all rows share one set of random draws or, with `independent_rows`, each has
    its own. Players that cannot change the value of a row are left out first. Where the budget pays
    for all coalitions of the others, all are evaluated and the result is exact; estimators on
    graphs decide for themselves.

    With `max_seconds`, costs are measured first. The rest is the estimate with the budget that fits
    into the time, so that the same budget and seed give the same numbers again.

    In the end two values of one row are computed once more, if a budget has evaluations left or
    the user gave none; a warning says where they differ, because the model is not deterministic.

    Raises
    ------
    InvalidArgumentError
        If the graphs do not fit the rows or their players.
    BudgetError
        If the budget is too small for the estimator, or the time too short.
    WorkerError
        If the model fails in a worker.
    """
    active, n_timing = game.active_players(), 0
    if settings.max_seconds is not None:
        timed = BudgetTimer(game, estimator, settings, active).choose()
        settings, n_timing = replace(settings, budget=timed.budget), timed.timing_evaluations
    run = Run(game, estimator, settings, active)
    jobs = jobs_of(settings.n_jobs, game.n_rows)
    with _progress_bar(run) as bar:
        evaluate = Evaluator(game, settings.batch_size, bar.update, is_timed=True)
        started = perf_counter()
        ends = evaluate.values_of(end_points(game.n_players))  # (R, 2, K)
        seconds = (perf_counter() - started) / max(1, 2 * game.n_rows)
        run.largest = largest_magnitude(ends)
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
        timing_evaluations=n_timing,
        check_evaluations=n_checks,
        rounding=float(getattr(game, "rounding", 0.0)),
        errors_cancel=settings.independent_rows and estimator.is_unbiased,
    )


def _progress_bar(run: Run) -> tqdm[Any]:
    name, delay = run.settings.name, run.settings.progress_delay
    if delay is None:
        return tqdm(disable=True)
    total = None if run.estimator.needs_graph else int(run.most_evaluations().sum())
    return tqdm(total=total, desc=name, unit=" evaluations", delay=delay)

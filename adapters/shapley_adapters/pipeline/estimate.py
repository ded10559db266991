"""From a game to attributions: check the budget, estimate the rows, check the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from ..coalitions.tables import end_points
from ..estimators.protocol import Estimator
from ..games.evaluation import Evaluator
from ..games.game import Game
from .repeated_values import check_repeated_values, largest_magnitude, n_affordable
from .result import Estimate, blank_estimate
from .run import Run
from .run_warnings import warn_of_small_budgets
from .settings import Settings
from .time_budgets import BudgetTimer

_CHUNK_BYTES = 2**28
"""Bound on the coalitions and values in memory at a time; a chunk has at least one row."""

_OWN_DESIGN = 3
"""The memory of a row with a design of its own, for its equations, as a multiple of others'."""


def estimate(game: Game, estimator: Estimator[Any], settings: Settings) -> Estimate:
    """Estimate the Shapley values of all rows of `game`.

    A row's result does not depend on the other rows, on their order or on the batch size: all rows
    share one set of random draws or, with `independent_rows`, each has its own. Players that cannot
    change the value of a row are left out first. Where the budget pays for all coalitions of the
    others, all are evaluated and the result is exact; estimators on graphs decide for themselves.

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
    """
    active, n_timing = game.active_players(), 0
    if settings.max_seconds is not None:
        timed = BudgetTimer(game, estimator, settings, active).choose()
        settings, n_timing = replace(settings, budget=timed.budget), timed.timing_evaluations
    run = Run(game, estimator, settings, active)
    with _progress_bar(run) as bar:
        evaluate = Evaluator(game, settings.batch_size, bar.update, is_timed=True)
        ends = evaluate.values_of(end_points(game.n_players))  # (R, 2, K)
        run.largest = largest_magnitude(ends)
        result = blank_estimate(ends, game.n_players, settings.seed, type(estimator).__name__)
        size = _rows_per_chunk(run, ends.shape[2])
        for start in range(0, game.n_rows, size):
            rows = np.arange(start, min(start + size, game.n_rows))
            run.estimate_rows(rows, ends, evaluate, result)
        bar.total = bar.n  # designs may leave a few evaluations of the budget
    run.warnings.warn(game.n_rows, settings)
    if settings.is_for_training:
        return result
    warn_of_small_budgets(run.budgets, run.n_active, result, estimator, settings)
    again = Evaluator(game, settings.batch_size)
    n_left = n_affordable(settings.budget, result.evaluations, run.n_active)
    n_checked = check_repeated_values(again, ends, run.n_active, n_left, run.largest)
    return replace(
        result,
        budget=settings.budget,
        timing_evaluations=n_timing,
        check_evaluations=n_checked,
    )


def _progress_bar(run: Run) -> tqdm[Any]:
    settings, delay = run.settings, run.settings.progress_delay
    sizes, n_rows = np.unique(run.n_active, return_counts=True)
    limits = [min(2 ** int(size), run.budgets[int(size)].limit) for size in sizes]
    return tqdm(
        total=None if run.estimator.needs_graph else int(np.dot(limits, n_rows)),
        desc=settings.name,
        unit=" evaluations",
        disable=delay is None,
        delay=delay or 0.0,
    )


def _rows_per_chunk(run: Run, n_outputs: int) -> int:
    """Return how many rows are estimated together, so that their coalitions fit into memory."""
    n_players = run.active.shape[1]
    most = max(budget.limit for budget in run.budgets.values())
    row_bytes = most * (8 * n_players + 24 * n_outputs)
    if run.estimator.score_source is not None:
        row_bytes += 24 * n_players**2
    if run.settings.independent_rows:
        row_bytes *= _OWN_DESIGN
    return int(max(1, _CHUNK_BYTES // row_bytes))

"""From a game and a budget to attributions: estimate the rows, check the model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from ..array_types import IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import first_row, warn_user
from ..estimators.protocol import Estimator
from ..games.evaluation import Evaluator, Request
from ..games.game import Game
from ..games.value_memory import ValueMemory
from ..progress_bars import BY_MEAN_SPEED
from ..workers.worker_processes import jobs_of
from .costs import Costs, forecast_own_seconds
from .parallel_rows import estimate_in_workers, raise_with_row
from .result import Estimate, blank_estimate
from .run import Run, largest_magnitude
from .settings import MANY_ENTRIES, Settings

_DIFFERENCE = 2.0**-8
"""Share of the largest value by which repeated values may differ. Many models compute with reduced
precision inside, and then differ that much between batches of different sizes."""

_ROUNDINGS = 8
"""Rounding errors of the output by which they may differ, where that is more."""


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
    total = None if estimator.needs_graph else int(run.most_evaluations().sum())
    delay = settings.progress_delay
    with tqdm(
        total=total,
        desc=settings.name,
        unit=" evaluations",
        delay=delay or 0,
        disable=delay is None,
        **BY_MEAN_SPEED,
    ) as bar:
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


def check_repeated_values(
    game: Game,
    settings: Settings,
    rows: IntArray,
    ends: ValueArray,
    largest: float,
    evaluations: IntArray,
) -> int:
    """Warn where two values of the same input differ; return the evaluations that this took.

    At most two, if the rows' budgets still pay for them; the default budget is no limit. Models in
    training mode are not checked, because the hosts warn of them.

    Parameters
    ----------
    game : Game
        The games of all rows.
    settings : Settings
        The settings of the run, after its estimate.
    rows : array, (R,)
        The rows that have players.
    ends : array, (R, 2, K)
        Their values of the empty coalition and of all players.
    largest : float
        The largest value, regardless of signs.
    evaluations : array, (R,)
        The evaluations of each of these rows.
    """
    if len(rows) == 0 or getattr(game, "is_in_training_mode", False):
        return 0
    n_affordable, budget = 2, settings.budget
    if budget is not None:
        budget = min(budget, int(evaluations.max()) + 2)  # NumPy's integers are bounded
        n_affordable = min(2, int(np.maximum(budget - evaluations, 0).sum()))
    evaluate = Evaluator(game, settings.batch_size)
    allowed = max(_DIFFERENCE, _ROUNDINGS * getattr(game, "rounding", 0.0)) * largest
    # All players first: without any input, a random part of the model may have no effect.
    coalitions = end_points(game.n_players)[::-1][:n_affordable]
    pairs = []
    for coalition, first in zip(coalitions, ends[0, ::-1], strict=False):
        # Each is evaluated alone: rows of a batch may influence each other.
        table = CoalitionTable(coalition[None, None], np.array([1]))
        pairs.append((first, evaluate([Request(rows[:1], table)])[0][0, 0]))
    if getattr(game, "has_common_empty_value", False):
        pairs.append((ends[:, 0].min(axis=0), ends[:, 0].max(axis=0)))
    for first, second in pairs:
        if (np.abs(first - second) > allowed).any():
            _warn(first, second)
            break
    return len(coalitions)


def _warn(first: ValueArray, second: ValueArray) -> None:
    output = int(np.abs(first - second).argmax())
    warn_user(
        f"The model is not deterministic: it returned {first[output]:.6g} and {second[output]:.6g} "
        "for the same input. The explanation holds that noise, and need not sum to the model's "
        "output. Switch off the random parts of the model (model.eval() for dropout), let it start "
        "from a fixed seed in each call, or average many outputs inside it. If its rows influence "
        "each other within a batch, as in batch normalisation, explain one that treats each row "
        "alone.",
        subject="repeated values",
    )

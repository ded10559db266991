"""From a game and a budget to attributions, in this process or in workers; check the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, SupportsInt

import numpy as np
from tqdm.auto import tqdm

from ..array_types import CoalitionArray, IntArray, ValueArray
from ..errors import DerivativeError, ShapleyExtError, WorkerError, first_row, row_number
from ..estimators.protocol import Estimator
from ..games.evaluation import Evaluator, ran_out_of_memory
from ..games.game import Game
from ..games.value_memory import ValueMemory
from ..remote import Usage
from ..workers import Part, Stop, n_workers_for, parts_of_rows, results_of_parts
from .background_plans import background_drawing
from .costs import Costs, Plan, warn_of_long_call
from .drawing import DrawnRun, can_be_random, for_random_model, repeated_drawing
from .repetition import Repetition
from .result import Estimate, Seconds
from .run import Run
from .run_warnings import RunWarnings
from .settings import MANY_ENTRIES, Settings

# tqdm's default smoothing weighs the last steps most: after a pause, in which an estimator solves
# its equations, it stated 17 times the remaining time, and between pauses half of it. With the
# default of miniters, one large step hides the small ones after it.
BY_MEAN_SPEED: Mapping[str, Any] = {"smoothing": 0.0, "miniters": 1}


def run_of(
    game: Game, estimator: Estimator[Any], settings: Settings, memory: ValueMemory | None = None
) -> Run:
    """Return the run of a call; all is checked that can be without an evaluation."""
    active = game.active_players()
    n_active = active.sum(axis=1)
    drawing = None
    if settings.max_model_rows is not None:
        drawing, settings, estimator = background_drawing(game, n_active, estimator, settings)
    is_random = game.draws_values or game.answers_at_random
    if drawing is None and (settings.n_repeats > 1 or is_random):
        has_draws = game.only_absence_is_random and settings.n_repeats == 1
        drawing = repeated_drawing(n_active, estimator, settings, has_draws)
    if drawing is None:
        return Run(game, estimator, settings, active, memory=memory)
    return DrawnRun(game, estimator, settings, active, drawing=drawing)


def estimate_round(
    game: Game, estimator: Estimator[Any], settings: Settings, memory: ValueMemory | None = None
) -> tuple[Estimate, Run]:
    """Estimate all rows with a budget for each, which does not depend on the time.

    Values in `memory` are not computed again. The run has what `estimate` warns of, unless a
    further round takes its place. If gradients fail where they may, it begins again without them.
    """
    started = perf_counter()
    run = run_of(game, estimator, settings, memory)
    of_run, known = run.settings, run.memory
    n_workers = n_workers_for(of_run.n_jobs, game.n_rows)
    is_counted = not (run.estimator.needs_graph or run.has_draws)
    n_evaluations = int(run.most_evaluations().sum()) if is_counted else 0
    delay = of_run.progress_delay
    try:
        with tqdm(
            total=n_evaluations or None,
            desc=of_run.name,
            unit=" evaluations",
            delay=delay or 0,
            disable=delay is None,
            **BY_MEAN_SPEED,
        ) as bar:
            used = game.usage
            advance = bar.update if used is None else partial(_advance, bar, game, used)
            evaluate = Evaluator(
                run.evaluated_game, of_run.batch_size, advance, is_timed=True, memory=known
            )
            ask_again = Evaluator(game, of_run.batch_size, spent=evaluate.spent)
            if n_workers > 1:  # an error says which row it is, before the workers and in them
                name_row = partial(_raise_with_row, game, n_draws=run.n_draws)
                evaluate = replace(evaluate, on_error=name_row)
                ask_again = replace(ask_again, on_error=partial(_raise_with_row, game))
            evaluated, ends = run.evaluated_ends(evaluate)  # (R, 2, K)
            seconds = evaluate.spent[0] / max(1, 2 * game.n_rows)
            active = run.active
            if run.has_gradients.any():  # whose values may be those of another function
                active = active & run.has_gradients[:, None]
            noise = Repetition.from_first_row(ask_again, active, ends, of_run, n_evaluations)
            if (differs := noise.difference) is not None and run.has_gradients.any():
                raise DerivativeError(
                    f"The model returned {differs.first[0]:.6g} and {differs.second[0]:.6g} for "
                    "the same input. It is random, its rows influence each other, or it computes "
                    "otherwise with gradients, as nn.TransformerEncoder does with padding. Pass "
                    "gradients=False."
                )
            is_random = noise.difference is not None and noise.difference.cause != "influence"
            if is_random and can_be_random(run):
                run = for_random_model(run)
                evaluate = replace(evaluate, game=run.evaluated_game, memory=None, timed_sizes={})
                evaluated, ends = run.evaluated_ends(evaluate)
            run.noise = replace(noise, may_continue=noise.may_continue and not run.has_draws)
            run.largest = np.abs(ends).max(initial=0.0)
            budget = run.budgets[max(run.budgets)]
            n_entries = game.n_rows * budget.n_players * budget.limit * ends.shape[2]
            has_no_forecast = run.has_draws or run.estimator.needs_graph or budget.enumerates_now
            is_quiet = of_run.is_for_training or known is not None or has_no_forecast
            if n_entries > MANY_ENTRIES and not (is_quiet or first_row() is not None):
                costs = Costs(game, of_run, run.active, n_outputs=ends.shape[2])
                warn_of_long_call(costs, Plan(run.estimator, budget.limit))
            result = run.blank_estimate(ends)
            if n_workers == 1:
                run.estimate_rows(0, game.n_rows, evaluated, evaluate, result)
            else:
                _estimate_in_workers(run, n_workers, evaluated, evaluate, seconds, result)
            bar.total = bar.n  # designs may leave a few evaluations of the budget
    except DerivativeError as error:
        if estimator.values_alone is None:
            raise
        result, run = estimate_round(game, estimator.values_alone, settings, memory)
        run.why_values_alone = str(error).removesuffix(" Pass gradients=False.")
        return result, run
    of_model = evaluate.spent[0] if n_workers == 1 else np.nan
    seconds_of = Seconds(of_model, perf_counter() - started - of_model)
    return replace(result, seconds=seconds_of), run


def _advance(bar: Any, game: Any, before: Usage, n_evaluations: int) -> None:
    """Move the bar, and show what a remote model was used for."""
    bar.set_postfix_str(str(game.usage - before), refresh=False)
    bar.update(n_evaluations)


def _estimate_in_workers(
    run: Run,
    n_workers: int,
    ends: ValueArray,
    evaluate: Evaluator,
    seconds: float,
    result: Estimate,
) -> None:
    """Estimate all rows in workers, and write their attributions into the result.

    Parameters
    ----------
    run : Run
        The run.
    n_workers : int
        The number of workers.
    ends : array, (R, 2, K)
        The values of the empty coalition and of all players, or all their draws.
    evaluate : Evaluator
        The evaluator of this process, which counts progress and has found batch sizes.
    seconds : float
        The measured time of one evaluation.
    result : Estimate
        The result of all rows.
    """
    seconds *= float(run.most_evaluations().sum())
    parts = parts_of_rows(run.game.n_rows, n_workers, seconds)
    for part, (of_part, of_worker, n_evaluations) in results_of_parts(
        run.for_worker(),
        _estimate_part,
        parts,
        lambda part: (ends[slice(*part)], evaluate.best_sizes),
        n_workers,
    ):
        result.set_rows(*part, of_part)
        run.warnings.add(of_worker[0])
        run.noise.add(of_worker[1])
        if evaluate.on_progress is not None:
            evaluate.on_progress(n_evaluations)


def _estimate_part(
    shared: Run,
    stop: Stop | None,
    part: Part,
    ends: ValueArray,
    batch_sizes: dict[int, int],
) -> tuple[Estimate, tuple[RunWarnings, Repetition], int]:
    """Return the estimate of some rows, and what the call counts of them."""
    run, n_evaluations = shared.for_worker(), 0
    stop = Stop() if stop is None else stop

    def count(n_new: int) -> None:
        nonlocal n_evaluations
        stop.check()
        n_evaluations += n_new

    def name_row(error: Exception, rows: IntArray, coalitions: CoalitionArray) -> None:
        if not ran_out_of_memory(error):  # for which a smaller batch may do
            count(0)
            stop.set()  # before the model is called again
            _raise_with_row(run.game, error, rows, coalitions, n_draws=run.n_draws)

    settings, game = run.settings, run.evaluated_game
    evaluate = Evaluator(
        game, settings.batch_size, count, is_timed=True, on_error=name_row, memory=run.memory
    )
    evaluate.start_at(batch_sizes)
    result = run.blank_estimate(run.means_of_ends(ends))
    try:
        count(0)
        run.estimate_rows(*part, ends, evaluate, result)
    except ShapleyExtError as error:
        stop.end(error)  # the others need not go on
        raise
    except Exception as error:
        of_rows = WorkerError(f"{_rows(part[0], part[1] - 1)}: {_text(error)}")
        stop.end(of_rows)
        raise of_rows from error
    return result, (run.warnings, run.noise), n_evaluations


def _raise_with_row(
    game: Game, error: Exception, rows: IntArray, coalitions: CoalitionArray, *, n_draws: int = 1
) -> None:
    """Raise an error of the model again, with the row for which it fails.

    The rows are those of single draws, of which each row of the game has `n_draws`. Where a batch
    holds several rows, the model is called for each of them alone.
    """
    if isinstance(error, ShapleyExtError) or ran_out_of_memory(error):
        return
    rows = rows // n_draws
    for row in np.unique(rows):
        try:
            game(rows[rows == row], coalitions[rows == row])
        except Exception:  # whatever it is: the error of the batch is raised
            raise WorkerError(f"Row {row_number(row)}: the model raised {_text(error)}") from error
    raise WorkerError(
        f"{_rows(rows.min(), rows.max())}: the model raised {_text(error)}, but for none of "
        "these rows alone"
    ) from error


def _rows(first: SupportsInt, last: SupportsInt) -> str:
    return f"Rows {row_number(first)} to {row_number(last)}"


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"

"""The parts of the rows of one call in workers; the numbers are those of one process."""

from __future__ import annotations

from typing import SupportsInt

import numpy as np

from ..array_types import CoalitionArray, IntArray, ValueArray
from ..errors import ShapleyExtError, WorkerError, row_number
from ..games.evaluation import Evaluator, ran_out_of_memory
from ..games.game import Game
from ..workers import Part, Stop, parts_of_rows, results_of_parts
from .repetition import Repetition
from .result import Estimate
from .run import Run
from .run_warnings import RunWarnings


def estimate_in_workers(
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
            raise_with_row(run.game, error, rows, coalitions, n_draws=run.n_draws)

    settings, game = run.settings, run.evaluated_game
    evaluate = Evaluator(
        game, settings.batch_size, count, is_timed=True, on_error=name_row, memory=run.memory
    )
    evaluate.start_at(batch_sizes)
    of_ends = ends if run.drawing is None else run.drawing.draws.ends(ends)
    result = run.blank_estimate(of_ends)
    try:
        count(0)
        for rows in run.blocks(*part, ends.shape[2]):
            run.estimate_block(rows, ends[rows - part[0]], evaluate, result, part[0])
    except ShapleyExtError as error:
        stop.end(error)  # the others need not go on
        raise
    except Exception as error:
        of_rows = WorkerError(f"{_rows(part[0], part[1] - 1)}: {_text(error)}")
        stop.end(of_rows)
        raise of_rows from error
    return result, (run.warnings, run.noise), n_evaluations


def raise_with_row(
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

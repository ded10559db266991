"""Rows of one call shared among workers of joblib; the numbers are those of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, SupportsInt, TypeAlias
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from ..array_types import CoalitionArray, IntArray, ValueArray
from ..errors import (
    ShapleyExtError,
    WorkerError,
    first_row,
    row_number,
    rows_counted_from,
    warn_user,
)
from ..games.evaluation import Evaluator, ran_out_of_memory
from ..games.game import Game
from ..workers.pickles import Pickled, load
from ..workers.worker_processes import (
    Jobs,
    ProcessSettings,
    RecordedWarning,
    at_most_threads,
    recorded_warnings,
    row_chunks,
)
from .result import Estimate, blank_estimate
from .run import Run
from .run_warnings import RunWarnings

_ADVICE = (
    "Define functions and classes in a module or a script, without locks, open files and "
    "generators; or use threads, by joblib.parallel_config(backend='threading')."
)

_LOSSES = ("RayActorError", "WorkerCrashedError", "KilledWorker")
"""Names of the errors of Ray and Dask for a worker that ended; they need not be installed."""

Chunks: TypeAlias = Sequence[tuple[int, int]]
"""The first row of each chunk, and the row after its last."""

_thread = threading.local()
"""The run of each thread, and the evaluator, which has found batch sizes."""


@dataclass(frozen=True)
class WorkerSettings:
    """The settings that all chunks of a call share.

    Attributes
    ----------
    call_id : str
        A name of the call.
    threads : int
        The threads that BLAS and torch may use in a worker.
    batch_sizes : dict of int to int
        The best batch sizes that the parent process has found.
    process : ProcessSettings
        Settings of the parent process.
    first_row : int, optional
        The number by which messages name the first row of the call, in a stream or batch.
    """

    call_id: str
    threads: int
    batch_sizes: dict[int, int]
    process: ProcessSettings
    first_row: int | None


@dataclass(frozen=True)
class ChunkResult:
    """The result of a worker for its rows.

    Attributes
    ----------
    estimate : Estimate
        The estimate.
    warnings : RunWarnings
        The counts for the warnings at the end.
    largest : float
        The largest value, regardless of signs.
    n_evaluations : int
        The evaluations, for the progress bar.
    records : list of RecordedWarning
        Warnings of the model.
    """

    estimate: Estimate
    warnings: RunWarnings
    largest: float
    n_evaluations: int
    records: list[RecordedWarning]


def estimate_in_workers(
    run: Run, jobs: Jobs, ends: ValueArray, evaluate: Evaluator, seconds: float, result: Estimate
) -> None:
    """Estimate all rows in workers, and write their attributions into the result.

    Parameters
    ----------
    run : Run
        The run.
    jobs : Jobs
        The workers.
    ends : array, (R, 2, K)
        The values of the empty coalition and of all players, or all their draws.
    evaluate : Evaluator
        The evaluator of this process, which counts progress.
    seconds : float
        The measured time of one evaluation.
    result : Estimate
        The result of all rows.
    """
    import joblib

    chunks = row_chunks(run.most_evaluations(), seconds, jobs.n_workers)
    settings = WorkerSettings(
        uuid4().hex,
        jobs.threads_each,
        evaluate.best_sizes,
        ProcessSettings.current(),
        first_row(),
    )
    stop = threading.Event()
    estimate_chunk = _chunk_function(run, jobs, stop)
    # Workers without a chunk cost time, too.
    n_workers = min(jobs.n_workers, len(chunks))

    def results(waiting: Chunks) -> Iterable[ChunkResult | None]:
        tasks = (estimate_chunk(settings, chunk, ends[slice(*chunk)]) for chunk in waiting)
        parallel = joblib.Parallel(n_jobs=n_workers, batch_size=1, return_as=jobs.return_as)
        found: Iterable[ChunkResult | None] = parallel(tasks)
        return found

    reported: set[RecordedWarning] = set()
    try:
        for rows, of_chunk in _completed(chunks, results, n_workers):
            if of_chunk is None:  # stopped by the error of another chunk, which joblib raises
                continue
            result.set_rows(*rows, of_chunk.estimate)
            run.warnings.add(of_chunk.warnings)
            run.largest = max(run.largest, of_chunk.largest)
            evaluate.on_progress(of_chunk.n_evaluations)
            for record in of_chunk.records:
                if record not in reported:
                    reported.add(record)
                    record.show()
    finally:
        stop.set()  # threads would go on after an interrupt


def _completed(
    chunks: Chunks, results: Callable[[Chunks], Iterable[ChunkResult | None]], n_workers: int
) -> Iterator[tuple[tuple[int, int], ChunkResult | None]]:
    """Yield the chunks with their results, by new workers where a process ended before its result.

    Twice without any result in between, it is an error, which names the rows of these workers.
    """
    waiting, was_lost = chunks, False
    while waiting:
        n_done = 0
        try:
            for chunk, result in zip(waiting, results(waiting), strict=True):
                yield chunk, result
                n_done += 1
            return
        except Exception as error:
            if not _is_loss(error):
                raise
            if was_lost and not n_done:
                last = waiting[: max(1, n_workers)][-1][1] - 1
                raise WorkerError(
                    f"A worker process ended twice before it had explained its rows, one of rows "
                    f"{row_number(waiting[0][0])} to {row_number(last)}. Often memory ran out, or "
                    "the model's own libraries ended it. Pass a smaller n_jobs= or smaller "
                    "batches, or use threads, by joblib.parallel_config(backend='threading')."
                ) from error
        waiting, was_lost = waiting[n_done:], True
        warn_user(
            "A worker process ended before it had explained its rows. They are explained again, "
            f"from row {row_number(waiting[0][0])} on; finished rows are kept.",
            subject="lost worker",
        )


def _is_loss(error: Exception) -> bool:
    """Return whether an error says that a worker ended, of joblib or of an engine behind it."""
    return isinstance(error, BrokenExecutor) or any(
        kind.__module__.partition(".")[0] in ("ray", "distributed") and kind.__name__ in _LOSSES
        for kind in type(error).__mro__
    )


def _chunk_function(run: Run, jobs: Jobs, stop: threading.Event) -> Callable[..., Any]:
    """Return the function that makes joblib's task of a chunk; `stop` ends those in threads."""
    import joblib

    if jobs.share_memory:
        return partial(joblib.delayed(_estimate_in_thread), run, stop)
    pickled = Pickled.from_object(run.for_worker(), _ADVICE)
    return partial(joblib.delayed(_estimate_in_process), pickled.argument)


def _estimate_in_process(
    data: bytes | npt.NDArray[np.uint8],
    settings: WorkerSettings,
    chunk: tuple[int, int],
    ends: ValueArray,
) -> ChunkResult | None:
    """Estimate a chunk in another process, which loads the run once."""
    # No event crosses processes: joblib ends them after an error.
    return _estimate_chunk(lambda: load(data), threading.Event(), settings, chunk, ends)


def _estimate_in_thread(
    run: Run,
    stop: threading.Event,
    settings: WorkerSettings,
    chunk: tuple[int, int],
    ends: ValueArray,
) -> ChunkResult | None:
    """Estimate a chunk in a thread of this process."""
    return _estimate_chunk(run.for_worker, stop, settings, chunk, ends)


def _estimate_chunk(
    load: Callable[[], Run],
    stop: threading.Event,
    settings: WorkerSettings,
    chunk: tuple[int, int],
    ends: ValueArray,
) -> ChunkResult | None:
    """Estimate the rows of a chunk; return None if the call has been stopped."""
    with recorded_warnings() as records, rows_counted_from(settings.first_row):
        worker = _worker(load, stop, settings)
        with at_most_threads(settings.threads), settings.process.applied():
            return worker.estimate(*chunk, ends, records)


def _worker(load: Callable[[], Run], stop: threading.Event, settings: WorkerSettings) -> _Worker:
    """Return the worker of this thread, made in its first chunk of the call."""
    if getattr(_thread, "call_id", None) != settings.call_id:
        _thread.worker = None  # before the next run needs memory
        _thread.worker = _Worker(load(), stop, settings.batch_sizes)
        _thread.call_id = settings.call_id
    worker: _Worker = _thread.worker
    return worker


class _StoppedError(Exception):
    """The call was stopped, by an interrupt or by an error in another worker."""


class _Worker:
    """A run in a worker, with an evaluator that keeps its batch sizes between chunks."""

    def __init__(self, run: Run, stop: threading.Event, batch_sizes: dict[int, int]) -> None:
        self.run = run
        self.stop = stop
        self.n_evaluations = 0
        self.evaluate = Evaluator(
            run.evaluated_game,
            run.settings.batch_size,
            self._count,
            is_timed=True,
            on_error=self._stop_others,
            memory=run.memory,
        )
        self.evaluate.start_at(batch_sizes)

    def estimate(
        self, start: int, stop: int, ends: ValueArray, records: dict[RecordedWarning, None]
    ) -> ChunkResult | None:
        """Estimate the rows from `start` to `stop`, unless the call has been stopped."""
        run, self.n_evaluations = self.run, 0
        run.warnings, run.largest = RunWarnings(), 0.0
        name = type(run.estimator).__name__
        settings = run.settings
        result = blank_estimate(
            run.means_of_ends(ends),
            run.game.n_players,
            settings.seed,
            name,
            settings.interactions,
            run.traced_limit,
            run.estimator.has_unions,
        )
        try:
            self._count(0)
            for rows in run.blocks(start, stop, ends.shape[2]):
                run.estimate_block(rows, ends[rows - start], self.evaluate, result, start)
        except _StoppedError:
            return None
        except ShapleyExtError:
            self.stop.set()
            raise
        except Exception as error:
            self.stop.set()
            raise WorkerError(f"{_rows(start, stop - 1)}: {_text(error)}") from error
        return ChunkResult(result, run.warnings, run.largest, self.n_evaluations, list(records))

    def _count(self, n_evaluations: int) -> None:
        """Count the evaluations of a batch; no other one begins after the call was stopped."""
        if self.stop.is_set():
            raise _StoppedError
        self.n_evaluations += n_evaluations

    def _stop_others(self, error: Exception, rows: IntArray, coalitions: CoalitionArray) -> None:
        """Stop the other workers before the model is called again, to name the row."""
        if ran_out_of_memory(error):  # a smaller batch may do
            return
        self._count(0)
        self.stop.set()
        raise_with_row(self.run.game, error, rows, coalitions, n_draws=self.run.n_draws)


def raise_with_row(
    game: Game, error: Exception, rows: IntArray, coalitions: CoalitionArray, *, n_draws: int = 1
) -> None:
    """Raise an error of the model again, with the row for which it fails.

    The rows are those of single draws, of which each row of the game has `n_draws`.

    Where a batch holds several rows, the model is called for each of them alone.
    """
    if isinstance(error, ShapleyExtError) or ran_out_of_memory(error):
        return
    rows = rows // n_draws
    for row in np.unique(rows):
        if _fails(game, rows[rows == row], coalitions[rows == row]):
            raise WorkerError(f"Row {row_number(row)}: the model raised {_text(error)}") from error
    raise WorkerError(
        f"{_rows(rows.min(), rows.max())}: the model raised {_text(error)}, but for none of "
        "these rows alone"
    ) from error


def _fails(game: Game, rows: IntArray, coalitions: CoalitionArray) -> bool:
    try:
        game(rows, coalitions)
    except Exception:  # whatever it is: the caller raises the error of the batch
        return True
    return False


def _rows(first: SupportsInt, last: SupportsInt) -> str:
    return f"Rows {row_number(first)} to {row_number(last)}"


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"

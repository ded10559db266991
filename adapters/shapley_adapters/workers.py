"""Workers of joblib that share rows, and limits on the threads of libraries.

While we solve, BLAS has one thread: several make the factorisation of our matrices, which have some
hundred rows, ten times slower, and their number can change the last bits of a result. The user's
model is never called inside. Rows are solved in blocks that do not depend on the number of threads
or workers, so that results do not either.
"""

from __future__ import annotations

import hashlib
import numbers
import os
import pickle
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import cloudpickle
import numpy as np
import numpy.typing as npt
from threadpoolctl import LibController, OpenBLASController, ThreadpoolController

from .errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtWarning,
    WorkerError,
    first_row,
    row_number,
    rows_counted_from,
    warn_user,
)

_Block = TypeVar("_Block")
_Result = TypeVar("_Result")

Part: TypeAlias = tuple[int, int]
"""The first row of a part of the rows, and the row after its last."""

_THREADS_BYTES = 2**30
"""Bound on the bytes of all threads, as long as one thread needs less."""

_PARTS_PER_WORKER = 4
"""More parts than workers, so that a worker with cheap rows takes over others."""

_SHORT_SECONDS = 0.1
"""Shorter parts consist mostly of overhead: there are then fewer of them."""

_MOST_OBJECTS = 2
"""The models that a worker process keeps for the next parts or batches."""

_SMALL_BYTES = 2**20
"""Bound on the bytes that are sent with each part. joblib sends larger arrays once to a worker, but
Dask then lets the other workers wait for the first one."""

_LOSSES = ("RayActorError", "WorkerCrashedError", "KilledWorker")
"""Names of the errors of Ray and Dask for a worker that ended; they need not be installed."""

_shown: dict[str | tuple[str, type[Warning], int], int] = {}
"""The workers' warnings that Python's filters show only once."""


class Stop(threading.Event):
    """An event on which threads end, by the error that the first of them has found."""

    def __init__(self) -> None:
        super().__init__()
        self._error: Exception | None = None
        self._is_known = threading.Event()

    def end(self, error: Exception | None = None) -> None:
        """End all threads by an error."""
        self.set()
        self._error = self._error or error
        self._is_known.set()

    def check(self) -> None:
        """Raise the error if threads are to end; the row of an error is being looked for first."""
        if self.is_set():
            self._is_known.wait()
            raise self._error or WorkerError("The call was stopped.")


class _BlasThreads:
    """The BLAS libraries, limited to one thread while any of our code needs it.

    Most have one number of threads for the process: the first caller sets it, and the last one
    restores it. They may run in different threads, which `threadpoolctl.threadpool_limits` does not
    provide for. OpenBLAS with OpenMP has one number for each thread.
    """

    def __init__(self) -> None:
        self.lock, self.local = threading.Lock(), threading.local()
        self.n_inside, self.n_modules = 0, -1
        self.before: dict[LibController, int] = {}
        self.libraries: list[LibController] = []

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Limit the libraries; calls may be nested."""
        if getattr(self.local, "outside", None) is not None:
            yield
            return
        with self.lock:
            if len(sys.modules) != self.n_modules:  # imports may have brought others
                self.n_modules = len(sys.modules)
                self.libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            found = {library: library.get_num_threads() for library in self.libraries}
            of_thread = {
                one: n
                for one, n in found.items()
                if isinstance(one, OpenBLASController) and one.threading_layer == "openmp"
            }
            if self.n_inside == 0:
                self.before = {one: n for one, n in found.items() if one not in of_thread}
            _set_threads(dict.fromkeys((one for one, n in found.items() if n != 1), 1))
            self.n_inside += 1
        self.local.outside = found  # the numbers outside of our code, for this thread
        try:
            yield
        finally:
            self.local.outside = None
            with self.lock:
                self.n_inside = max(0, self.n_inside - 1)  # 0 in a process forked meanwhile
                _set_threads(of_thread if self.n_inside else self.before | of_thread)

    def reset_after_fork(self) -> None:
        """Restore what threads limit that exist only in the parent process."""
        if self.n_inside:
            _set_threads(self.before)
        self.__init__()  # type: ignore[misc] # the lock may be held by one of them


def _set_threads(numbers_of: dict[LibController, int]) -> None:
    # Later versions of threadpoolctl let only one thread set the number of OpenBLAS.
    release = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    for library, number in numbers_of.items():
        release(force=True)
        library.set_num_threads(number)
    release(force=True)


_blas = _BlasThreads()

one_blas_thread = _blas.one_thread
"""Context, or decorator, in which the BLAS libraries use one thread."""

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_blas.reset_after_fork)


def map_in_threads(
    compute: Callable[[_Block], _Result], blocks: Sequence[_Block], n_bytes: int
) -> list[_Result]:
    """Return the result of each block, computed by threads that need so many bytes each."""
    n_threads = min(_THREADS_BYTES // max(1, n_bytes), len(blocks))
    n_threads = n_threads if n_threads <= 1 else min(n_threads, n_threads_for_rows())
    if n_threads <= 1:
        return [compute(block) for block in blocks]

    def compute_one(block: _Block) -> _Result:
        with one_blas_thread():
            return compute(block)

    executor = ThreadPoolExecutor(n_threads, thread_name_prefix="shapley-rows")
    try:
        tasks = [executor.submit(copy_context().run, compute_one, block) for block in blocks]
        return [task.result() for task in tasks]
    finally:
        executor.shutdown(cancel_futures=True)


def n_threads_for_rows() -> int:
    """Return how many threads may solve rows.

    One per core, but at most the number of BLAS threads outside of our code, or that of
    `joblib.parallel_config(n_jobs=...)`. One inside a worker of joblib.
    """
    import joblib

    backend, n_jobs = joblib.parallel.get_active_backend()
    if backend.nesting_level:
        return 1
    n_most = int(joblib.effective_n_jobs(n_jobs))
    can_pin = hasattr(os, "sched_getaffinity")  # the cores that the process may use
    n_cores = len(os.sched_getaffinity(0)) if can_pin else os.cpu_count() or 1
    if n_jobs is None:
        with one_blas_thread():
            n_most = min(_blas.local.outside.values(), default=n_cores)
    return max(1, min(n_cores, n_most))


def checked_n_jobs(n_jobs: Any) -> int | None:
    """Return `n_jobs` if it is a whole number other than 0, or None."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral):
        raise InvalidArgumentTypeError(
            f"n_jobs must be a whole number or None; got {n_jobs!r} ({type(n_jobs).__name__})."
        )
    if n_jobs == 0:
        raise InvalidArgumentError(
            "n_jobs=0 means no workers. Pass their number, -1 for one per core, or None."
        )
    return int(n_jobs)


def n_workers_for(n_jobs: int | None, n_rows: int) -> int:
    """Return the number of workers, at most one for each row.

    As in scikit-learn, None means 1, unless `joblib.parallel_config` is active and this is no
    worker itself.
    """
    if n_jobs == 1 or n_rows < 2:
        return 1
    from joblib.parallel import get_active_backend

    backend, configured = get_active_backend()
    if n_jobs is None:
        default = getattr(backend, "default_n_jobs", 1) if configured is None else configured
        n_jobs = 1 if backend.nesting_level else default
    return min(int(backend.effective_n_jobs(n_jobs)), n_rows)


def parts_of_rows(n_rows: int, n_workers: int, seconds: float) -> list[Part]:
    """Return parts of about as many rows, for a call that takes so many seconds by itself."""
    n_parts = n_workers * int(np.clip(seconds / n_workers / _SHORT_SECONDS, 1, _PARTS_PER_WORKER))
    ends = np.linspace(0, n_rows, min(n_parts, n_rows) + 1).astype(int).tolist()
    return list(pairwise(ends))


def results_of_parts(
    shared: Any,
    task: Callable[..., _Result],
    parts: Sequence[Part],
    arguments: Callable[[Part], tuple[Any, ...]],
    n_workers: int,
) -> Iterator[tuple[Part, _Result]]:
    """Yield each part of the rows with `task(shared, stop, part, *arguments(part))`.

    Where a worker ends before its result, its part and the later ones are given to new workers.

    Parameters
    ----------
    shared : object
        What all parts need. Other processes load it once.
    task : callable
        A function of a module. Its `stop` is an event among threads, on which it ends early by any
        error, and None in another process.
    parts : list of tuples
        The parts.
    arguments : callable
        Returns what one part needs.
    n_workers : int
        The number of workers.

    Raises
    ------
    InvalidArgumentTypeError
        If `shared` cannot be pickled.
    WorkerError
        If workers end twice without any result in between; the message names the rows.
    """
    import joblib

    backend, _ = joblib.parallel.get_active_backend()
    form = "generator" if getattr(backend, "supports_return_generator", False) else "list"
    stop = Stop() if getattr(backend, "supports_sharedmem", False) else None
    sent = shared if stop is not None else Pickled.from_object(shared).argument
    settings = _Settings.current(None if stop is None else max(1, joblib.cpu_count() // n_workers))
    n_workers, was_lost = min(n_workers, len(parts)), False  # those without a part cost time, too

    def tasks(parts: Sequence[Part]) -> Iterator[Any]:
        for part in parts:
            context: Any = copy_context()
            run = _run_part if stop is None else partial(context.run, _run_part)
            yield joblib.delayed(run)(sent, settings, task, stop, part, *arguments(part))

    try:
        with _at_most_threads(settings.n_threads, "blas"):
            while parts:
                parallel, n_done = joblib.Parallel(n_workers, return_as=form, batch_size=1), 0
                try:
                    for part, result in zip(parts, parallel(tasks(parts)), strict=True):
                        for record in result[1]:
                            _warn_again(*record)
                        yield part, result[0]
                        n_done += 1
                    return
                except Exception as error:
                    if not _is_loss(error):
                        raise
                    if was_lost and not n_done:
                        raise _lost(parts[:n_workers]) from error
                parts, was_lost = parts[n_done:], True
                warn_user(
                    "A worker process ended before it had explained its rows. They are explained "
                    f"again, from row {row_number(parts[0][0])} on; finished rows are kept.",
                    subject="lost worker",
                )
    finally:
        if stop is not None:
            stop.end()  # threads would go on after an error or an interrupt


def _run_part(
    sent: Any, settings: _Settings, task: Any, stop: Stop | None, *arguments: Any
) -> tuple[Any, list[Any]]:
    """Return the result of a task in a worker, and its warnings if this is another process."""
    given: Any = []
    with ExitStack() as stack:
        if stop is None:
            given = stack.enter_context(warnings.catch_warnings(record=True))
            warnings.simplefilter("default")  # the parent's filters decide
        shared = sent if stop is not None else loaded_once(sent)
        settings.apply(stack)
        result = task(shared, stop, *arguments)
    records = [(one.category, str(one.message), one.filename, one.lineno) for one in given]
    return result, records


def _warn_again(category: type[Warning], text: str, filename: str, line: int) -> None:
    """Warn of what a worker has warned of."""
    if issubclass(category, ShapleyExtWarning):
        warn_user(text)
    else:
        warnings.warn_explicit(text, category, filename, line, registry=_shown)


def _is_loss(error: Exception) -> bool:
    """Return whether an error says that a worker ended, of joblib or of an engine behind it."""
    return isinstance(error, BrokenExecutor) or any(
        kind.__module__.partition(".")[0] in ("ray", "distributed") and kind.__name__ in _LOSSES
        for kind in type(error).__mro__
    )


def _lost(parts: Sequence[Part]) -> WorkerError:
    return WorkerError(
        "A worker process ended twice before it had explained its rows, one of rows "
        f"{row_number(parts[0][0])} to {row_number(parts[-1][1] - 1)}. Often memory ran out, or "
        "the model's own libraries ended it. Pass a smaller n_jobs= or smaller batches, or use "
        "threads, by joblib.parallel_config(backend='threading')."
    )


@dataclass(frozen=True)
class _Settings:
    """The settings of the thread that explains, which can change the bits of a result.

    Attributes
    ----------
    n_threads : int, optional
        The most threads of OpenMP in a worker; joblib and engines bound those of processes.
    first_row : int, optional
        The number by which messages name the first row.
    numpy_errors, sklearn : dict
        How NumPy handles overflow and the like, and the configuration of scikit-learn.
    torch : tuple
        The precision of new tensors, and that of autocast by device; empty without torch.
    """

    n_threads: int | None
    first_row: int | None
    numpy_errors: Any
    sklearn: dict[str, Any]
    torch: tuple[Any, ...]

    @classmethod
    def current(cls, n_threads: int | None) -> _Settings:
        """Return the settings of this thread."""
        sklearn, torch = sys.modules.get("sklearn"), sys.modules.get("torch")
        of_torch: tuple[Any, ...] = ()
        if torch is not None:
            lowered = filter(torch.is_autocast_enabled, ("cpu", "cuda"))
            autocast = {device: torch.get_autocast_dtype(device) for device in lowered}
            of_torch = (torch.get_default_dtype(), autocast)
        config = {} if sklearn is None else sklearn.get_config()
        return cls(n_threads, first_row(), np.geterr(), config, of_torch)

    def apply(self, stack: ExitStack) -> None:
        """Apply the settings in this thread until the stack ends."""
        stack.enter_context(rows_counted_from(self.first_row))
        stack.enter_context(np.errstate(**self.numpy_errors))
        stack.enter_context(_at_most_threads(self.n_threads, "openmp"))
        if self.sklearn:
            import sklearn

            stack.enter_context(sklearn.config_context(**self.sklearn))
        if self.torch:
            torch = sys.modules["torch"]  # loaded with the type of its numbers
            stack.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(self.torch[0])
            for device, dtype in self.torch[1].items():
                stack.enter_context(torch.autocast(device, dtype=dtype))


@contextmanager
def _at_most_threads(n_threads: int | None, api: str) -> Iterator[None]:
    """Bound the threads of torch, and of BLAS or OpenMP; None does not."""
    if n_threads is None:
        yield
        return
    libraries = ThreadpoolController().select(user_api=api)
    limits = {one.prefix: min(n_threads, one.num_threads) for one in libraries.lib_controllers}
    torch = sys.modules.get("torch")
    before = 1 if torch is None else torch.get_num_threads()
    with libraries.limit(limits=limits):
        if torch is not None:
            torch.set_num_threads(min(before, n_threads))
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(before)


_of_process: OrderedDict[str, Any] = OrderedDict()
_loading = threading.Lock()


@dataclass(frozen=True, eq=False)
class Pickled:
    """An object for workers.

    Attributes
    ----------
    data : array of bytes
        The pickle.
    """

    data: npt.NDArray[np.uint8]

    @classmethod
    def from_object(cls, thing: object) -> Pickled:
        """Pickle an object; models and functions may be defined in a script or a notebook.

        Raises
        ------
        InvalidArgumentTypeError
            If it holds something that cannot be pickled.
        """
        try:
            data = cloudpickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # the objects may raise any error
            raise InvalidArgumentTypeError(
                "The model, the masker or the data cannot be sent to other processes: "
                f"{type(error).__name__}: {error}. Define functions and classes in a module or a "
                "script, without locks, open files and generators; or use threads, by "
                "joblib.parallel_config(backend='threading')."
            ) from error
        return cls(np.frombuffer(data, dtype=np.uint8))

    @property
    def argument(self) -> bytes | npt.NDArray[np.uint8]:
        """The pickle as the argument of many tasks of joblib."""
        return self.data.tobytes() if self.data.nbytes <= _SMALL_BYTES else self.data


def loaded_once(data: bytes | npt.NDArray[np.uint8]) -> Any:
    """Return the object of a pickle, loaded once in each process; threads share it.

    Raises
    ------
    WorkerError
        If the process cannot load it.
    """
    pickled: Any = data
    key = hashlib.blake2b(pickled, digest_size=16).hexdigest()
    with _loading:
        if key not in _of_process:
            try:
                _of_process[key] = pickle.loads(pickled)
            except Exception as error:  # loading runs the code of the objects
                raise WorkerError(
                    f"A worker cannot load the model: {type(error).__name__}: {error}. Install the "
                    "same packages there; and define classes and functions in a package that is "
                    "installed, or in the script or notebook itself."
                ) from error
        _of_process.move_to_end(key)
        while len(_of_process) > _MOST_OBJECTS:
            _of_process.popitem(last=False)
        return _of_process[key]

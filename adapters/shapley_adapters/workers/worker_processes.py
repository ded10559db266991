"""What workers need beside the rows: settings, warnings, chunks of rows, and limits on threads."""

from __future__ import annotations

import numbers
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from ..array_types import IntArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError, ShapleyExtWarning, warn_user
from ..thread_limits import Library, set_threads

_ON_THIS_MACHINE = ("loky", "multiprocessing", "threading")

_DEVICES = ("cpu", "cuda")

_shown: dict[str | tuple[str, type[Warning], int], int] = {}
"""The warnings of this process that Python's filters show only once."""

_CHUNKS_PER_WORKER = 4
"""More chunks than workers, so that a worker with cheap rows takes over others."""

_SHORT_SECONDS = 0.1
"""Shorter chunks consist mostly of overhead: there are then fewer of them."""

_LONG_SECONDS = 30.0
"""Longer chunks let the progress bar stand still: there are then more of them."""


@dataclass(frozen=True)
class Jobs:
    """The workers of one call.

    Attributes
    ----------
    n_workers : int
        The number of workers; 1 without any.
    share_memory : bool
        Whether workers are threads of this process.
    threads_each : int
        The number of threads that BLAS and torch may use in each worker.
    return_as : {"generator", "list"}
        How joblib returns the results: one after another, or all in the end.
    """

    n_workers: int
    share_memory: bool = True
    threads_each: int = 1
    return_as: str = "list"


SERIAL = Jobs(1)


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
            "n_jobs=0 means no workers at all. Pass the number of workers, -1 for one per core, or "
            "None."
        )
    return int(n_jobs)


def jobs_of(n_jobs: int | None, n_rows: int) -> Jobs:
    """Return the workers for `n_rows` rows.

    They are at most as many as rows. As in scikit-learn, None means 1, unless
    `joblib.parallel_config` is active. Within a worker of joblib None means 1, too.
    """
    if n_jobs == 1 or n_rows < 2:
        return SERIAL
    from joblib.parallel import get_active_backend

    backend, configured = get_active_backend()
    if n_jobs is None:
        if backend.nesting_level:
            return SERIAL
        n_jobs = getattr(backend, "default_n_jobs", 1) if configured is None else configured
    else:
        n_jobs = checked_n_jobs(n_jobs)
    n_workers = 1 if n_jobs == 1 else min(int(backend.effective_n_jobs(n_jobs)), n_rows)
    if n_workers == 1:
        return SERIAL
    can_stream = getattr(backend, "supports_return_generator", False)
    return Jobs(
        n_workers,
        getattr(backend, "supports_sharedmem", False),
        _threads_each(backend, n_workers),
        "generator" if can_stream else "list",
    )


def _threads_each(backend: Any, n_workers: int) -> int:
    """Return the threads of one worker, so that all together use at most all cores.

    The engines of clusters, such as Dask, count one core for each task.
    """
    from joblib.parallel import BACKENDS, cpu_count

    of_user = getattr(backend, "inner_max_num_threads", None)
    if of_user is not None:
        return int(of_user)
    is_on_this_machine = type(backend) in [BACKENDS.get(name) for name in _ON_THIS_MACHINE]
    return max(1, cpu_count() // n_workers) if is_on_this_machine else 1


@dataclass(frozen=True)
class ProcessSettings:
    """The settings of NumPy, scikit-learn and torch in the thread that explains.

    Attributes
    ----------
    numpy_errors : mapping
        How NumPy handles floating-point errors, such as overflow.
    sklearn_config : mapping
        The configuration of scikit-learn, empty where it is not loaded.
    torch_dtype : torch.dtype, optional
        The precision of new tensors, where torch is loaded.
    autocast : mapping of str to torch.dtype
        The devices on which torch lowers the precision, and to which type.
    """

    numpy_errors: Mapping[str, Any]
    sklearn_config: Mapping[str, Any]
    torch_dtype: Any = None
    autocast: Mapping[str, Any] | None = None

    @classmethod
    def current(cls) -> ProcessSettings:
        """Return the settings of this thread."""
        sklearn, torch = sys.modules.get("sklearn"), sys.modules.get("torch")
        config = {} if sklearn is None else sklearn.get_config()
        if torch is None:
            return cls(np.geterr(), config)
        autocast = {
            device: torch.get_autocast_dtype(device)
            for device in _DEVICES
            if torch.is_autocast_enabled(device)
        }
        return cls(np.geterr(), config, torch.get_default_dtype(), autocast)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the settings in this thread, and restore its own afterwards."""
        with ExitStack() as stack:
            stack.enter_context(np.errstate(**self.numpy_errors))
            if self.sklearn_config:
                import sklearn

                stack.enter_context(sklearn.config_context(**self.sklearn_config))
            torch = sys.modules.get("torch")  # loaded with the model, if the model needs it
            if torch is not None and self.torch_dtype is not None:
                self._apply_to_torch(torch, stack)
            yield

    def _apply_to_torch(self, torch: Any, stack: ExitStack) -> None:
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(self.torch_dtype)
        for device, dtype in (self.autocast or {}).items():
            stack.enter_context(torch.autocast(device, dtype=dtype))


@dataclass(frozen=True)
class RecordedWarning:
    """A warning: its class, its text, and the line that it is about."""

    category: type[Warning]
    text: str
    filename: str
    line: int

    def show(self) -> None:
        """Warn in this process."""
        if issubclass(self.category, ShapleyExtWarning):
            warn_user(self.text)
        else:
            warnings.warn_explicit(
                self.text, self.category, self.filename, self.line, registry=_shown
            )


class _Recorder:
    """Records the warnings of each thread that is inside; those of other threads are shown."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_thread = threading.local()
        self._n_inside = 0
        self._filters: Any = None
        self._show_elsewhere: Any = None

    @contextmanager
    def recorded(self) -> Iterator[dict[RecordedWarning, None]]:
        """Yield the warnings of this thread, each once, in their order."""
        records: dict[RecordedWarning, None] = {}
        self._enter()
        self._of_thread.records = records
        try:
            yield records
        finally:
            self._of_thread.records = None
            self._leave()

    def _enter(self) -> None:
        with self._lock:
            self._n_inside += 1
            if self._n_inside == 1:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("always")  # the parent's filters decide
                self._show_elsewhere = warnings.showwarning
                warnings.showwarning = self._show

    def _leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._filters.__exit__(None, None, None)

    def _show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: str | None = None,
    ) -> None:
        records = getattr(self._of_thread, "records", None)
        if records is None:
            self._show_elsewhere(message, category, filename, lineno, file, line)
        else:
            records[RecordedWarning(category, str(message), filename, lineno)] = None


recorded_warnings = _Recorder().recorded
"""Context that records the warnings of its thread."""


def row_chunks(
    evaluations: IntArray, seconds_per_evaluation: float, n_workers: int
) -> list[tuple[int, int]]:
    """Return the start and the stop of each chunk of rows.

    Parameters
    ----------
    evaluations : array, (R,)
        The evaluations that each row is expected to need.
    seconds_per_evaluation : float
        The measured time of one evaluation.
    n_workers : int
        The number of workers.
    """
    costs = np.maximum(np.asarray(evaluations, dtype=float), 1.0)
    ends = np.cumsum(costs)
    seconds = float(ends[-1]) * seconds_per_evaluation
    per_worker = seconds / n_workers / _SHORT_SECONDS
    n_chunks = n_workers * int(np.clip(per_worker, 1, _CHUNKS_PER_WORKER))
    n_chunks = max(n_chunks, int(np.ceil(seconds / _LONG_SECONDS)))
    shares = ends[-1] * np.arange(1, n_chunks) / n_chunks
    # The row that reaches a share of the cost is the last one of its chunk.
    inner = np.searchsorted(ends, shares * (1 - 1e-12)) + 1
    bounds = np.unique([0, *np.minimum(inner, len(costs)), len(costs)])
    return [(int(a), int(b)) for a, b in pairwise(bounds)]


class _ThreadLimits:
    """The numbers of threads of the libraries, bounded while any worker of the process runs.

    BLAS libraries have one number for the process: the first worker bounds it, and the last one
    restores it. OpenMP has one number for each thread, and torch both: each worker sets them, and
    restores the number that the first one found.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._of_process: dict[Library, int] = {}
        self._of_torch: int | None = None

    @contextmanager
    def at_most(self, n_threads: int) -> Iterator[None]:
        """Bound the libraries that are loaded to `n_threads`."""
        of_process: list[Library] = []
        of_thread: dict[Library, int] = {}
        for controller in ThreadpoolController().lib_controllers:
            library = Library.from_controller(controller)
            if library.is_of_thread or controller.user_api == "openmp":
                of_thread[library] = library.get_threads()
            else:
                of_process.append(library)
        self._enter(of_process, n_threads)
        _bound(of_thread, n_threads)
        try:
            yield
        finally:
            set_threads(of_thread)
            self._leave()

    def _enter(self, libraries: list[Library], n_threads: int) -> None:
        with self._lock:
            self._n_inside += 1
            torch = sys.modules.get("torch")
            # Torch initialises the number of a thread where it is first read: before it is set.
            of_torch = None if torch is None else torch.get_num_threads()
            if self._n_inside == 1:
                self._of_process = {library: library.get_threads() for library in libraries}
                self._of_torch = of_torch
                _bound(self._of_process, n_threads)
            if torch is not None and self._of_torch is not None:
                torch.set_num_threads(min(self._of_torch, n_threads))

    def _leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            torch = sys.modules.get("torch")
            if torch is not None and self._of_torch is not None:
                torch.set_num_threads(self._of_torch)
            if self._n_inside == 0:
                set_threads(self._of_process)


def _bound(numbers: dict[Library, int], n_threads: int) -> None:
    set_threads({library: n_threads for library, number in numbers.items() if number > n_threads})


at_most_threads = _ThreadLimits().at_most
"""Context in which BLAS, OpenMP and torch use at most so many threads."""

"""Limits on threads: of BLAS while we solve, and of Python where rows are solved in threads.

Our matrices have some hundred rows. Several threads make the factorisation of such a matrix ten
times slower, and their number can change the last bits of a result. The user's model is never
called inside.

Rows are solved in blocks, each by one thread. The blocks do not depend on the number of threads, or
the result of a row does not depend on its block. Therefore results do not depend on the number of
threads.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import TypeVar

from threadpoolctl import LibController, OpenBLASController, ThreadpoolController

_THREADS_BYTES = 2**30
"""Bound on the bytes of all threads, as long as one thread needs less."""

_Block = TypeVar("_Block")

_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class Library:
    """A library, such as a BLAS library: the functions that read and set its number of threads.

    If OpenBLAS has one number for the process, these are the functions of OpenBLAS. Newer versions
    of threadpoolctl let only one thread set that number, but here any thread may be the first or
    the last one inside. Their functions also take longer, which slows estimates of few players.
    """

    get_threads: Callable[[], int]
    set_threads: Callable[[int], object]
    is_of_thread: bool = False

    @classmethod
    def from_controller(cls, controller: LibController) -> Library:
        """Return the library of threadpoolctl's controller."""
        if isinstance(controller, OpenBLASController):
            if controller.threading_layer == "openmp":
                return cls(controller.get_num_threads, controller.set_num_threads, True)
            for symbol in controller.check_symbols:
                if hasattr(controller.dynlib, symbol):
                    set_threads = getattr(controller.dynlib, symbol.replace("get_num", "set_num"))
                    return cls(getattr(controller.dynlib, symbol), set_threads)
        return cls(controller.get_num_threads, controller.set_num_threads)


class _BlasLibraries:
    """The BLAS libraries of the process, limited to one thread while any of our code needs it.

    Most libraries have one number of threads for the whole process. The first caller sets it to
    one, and the last caller restores it; they may run in different threads. In the meantime, a
    model that runs in another thread has one BLAS thread, too. The threads of torch do not change.
    OpenBLAS with OpenMP has one number per thread, which each thread restores.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state_of_thread = threading.local()
        self._n_threads_inside = 0
        self._numbers_outside: dict[Library, int] = {}
        self._n_modules = -1
        self._of_process: list[Library] = []
        self._of_thread: list[Library] = []

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Limit the libraries; calls of the same thread may be nested."""
        state = self._state_of_thread
        if getattr(state, "is_inside", False):
            yield
            return
        with self._lock:
            self._find_libraries()
            # Read each number only once: estimates of few players take less than a millisecond.
            of_process = {library: library.get_threads() for library in self._of_process}
            of_thread = {library: library.get_threads() for library in self._of_thread}
            state.n_outside = min((*of_process.values(), *of_thread.values()), default=None)
            if self._n_threads_inside == 0:
                self._numbers_outside = _limit_to_one(of_process)
            numbers_of_thread = _limit_to_one(of_thread)
            self._n_threads_inside += 1
        state.is_inside = True
        try:
            yield
        finally:
            state.is_inside = False
            set_threads(numbers_of_thread)
            with self._lock:
                self._n_threads_inside -= 1
                if self._n_threads_inside == 0:
                    set_threads(self._numbers_outside)
                    self._numbers_outside = {}  # a later fork must not set them again

    def n_threads_outside(self, default: int) -> int:
        """Return the number of threads that BLAS may use outside of our code.

        If another thread is inside, it is one. If no library has a number, it is `default`.
        """
        if getattr(self._state_of_thread, "is_inside", False):
            n_outside = self._state_of_thread.n_outside
            return default if n_outside is None else n_outside
        with self._lock:
            self._find_libraries()
            libraries = (*self._of_process, *self._of_thread)
        return min((library.get_threads() for library in libraries), default=default)

    def reset_after_fork(self) -> None:
        """Remove the threads that exist only in the parent process."""
        self._lock = threading.Lock()
        is_inside = getattr(self._state_of_thread, "is_inside", False)
        self._n_threads_inside = int(is_inside)
        if not is_inside:
            set_threads(self._numbers_outside)
            self._numbers_outside = {}

    def _find_libraries(self) -> None:
        """Find the libraries, and again after each import, because imports may load libraries."""
        if len(sys.modules) == self._n_modules:
            return
        self._n_modules = len(sys.modules)
        blas = ThreadpoolController().select(user_api="blas")
        libraries = [Library.from_controller(controller) for controller in blas.lib_controllers]
        self._of_thread = [library for library in libraries if library.is_of_thread]
        self._of_process = [library for library in libraries if not library.is_of_thread]


def _limit_to_one(numbers: dict[Library, int]) -> dict[Library, int]:
    """Set libraries to one thread; return the numbers of those that had another one."""
    changed = {library: number for library, number in numbers.items() if number != 1}
    set_threads(dict.fromkeys(changed, 1))
    return changed


def set_threads(numbers: dict[Library, int]) -> None:
    """Set the number of threads of each library."""
    for library, number in numbers.items():
        library.set_threads(number)


_libraries = _BlasLibraries()

one_blas_thread = _libraries.one_thread
"""Context, or decorator, in which the BLAS libraries use one thread."""

n_threads_outside = _libraries.n_threads_outside

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_libraries.reset_after_fork)


def map_in_threads(
    compute: Callable[[_Block], _Result], blocks: Sequence[_Block], max_threads: int
) -> list[_Result]:
    """Return the result of each block, computed in threads.

    The first error of a block is raised. Blocks that no thread has begun are then not computed.

    Parameters
    ----------
    compute : callable
        Takes a block and returns its result. It should spend its time in operations that release
        Python's lock.
    blocks : sequence
        The arguments of `compute`.
    max_threads : int
        The largest number of threads.
    """
    n_threads = min(max_threads, len(blocks))
    if n_threads > 1:
        n_threads = min(n_threads, n_threads_for_rows())
    if n_threads <= 1:
        return [compute(block) for block in blocks]

    def compute_with_one_blas_thread(context: Context, block: _Block) -> _Result:
        with one_blas_thread():
            return context.run(compute, block)

    executor = ThreadPoolExecutor(n_threads, thread_name_prefix="shapley-rows")
    try:
        contexts = [copy_context() for _ in blocks]  # with the caller's settings
        return list(executor.map(compute_with_one_blas_thread, contexts, blocks))
    finally:
        executor.shutdown(cancel_futures=True)


def n_threads_for_rows() -> int:
    """Return how many threads may solve rows.

    This is one per core that the process may use, but at most the number of BLAS threads outside of
    our code, which `OMP_NUM_THREADS`, threadpoolctl and joblib bound. The setting
    `joblib.parallel_config(n_jobs=...)` replaces that bound. Inside a worker of joblib it is one,
    because other workers use the other cores.
    """
    import joblib

    backend, n_jobs = joblib.parallel.get_active_backend()
    if backend.nesting_level:
        return 1
    n_cores = _n_cores()
    if n_jobs is not None:
        return max(1, min(n_cores, int(joblib.effective_n_jobs(n_jobs))))
    return max(1, min(n_cores, n_threads_outside(n_cores)))


def n_threads_within_memory(n_bytes: int) -> int:
    """Return how many threads that need so many bytes each may run at once."""
    return max(1, _THREADS_BYTES // max(1, n_bytes))


def _n_cores() -> int:
    """Return the number of cores that the process may use."""
    if hasattr(os, "sched_getaffinity"):  # on Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

"""Threads that solve blocks of rows at the same time.

One thread computes each block. The blocks do not depend on the number of threads, or the result of
a row does not depend on its block. Therefore results do not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import TypeVar

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from .blas_threads import n_threads_outside, one_blas_thread

_THREADS_BYTES = 2**30
"""Bound on the bytes of all threads, as long as one thread needs less."""

_Block = TypeVar("_Block")
_Result = TypeVar("_Result")


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

    numpy_settings = np.geterr()  # before NumPy 2, they are settings of the thread

    def compute_with_one_blas_thread(context: Context, block: _Block) -> _Result:
        with one_blas_thread(), np.errstate(**numpy_settings):
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
    backend, n_jobs = get_active_backend()
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

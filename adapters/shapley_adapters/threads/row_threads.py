"""Threads that solve blocks of rows at the same time.

Blocks are the same whatever the number of threads, and each is computed by one thread, so that
results do not depend on that number.
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

_Block = TypeVar("_Block")
_Result = TypeVar("_Result")


def map_in_threads(
    compute: Callable[[_Block], _Result], blocks: Sequence[_Block], most: int
) -> list[_Result]:
    """Return the result of each block, computed by as many threads as there are for us.

    The first error of a block is raised, and the blocks that no thread has begun are left.

    Parameters
    ----------
    compute : callable
        Takes a block. It should spend its time in operations that other threads can run beside.
    blocks : sequence
        What to compute.
    most : int
        Bound on the number of threads.
    """
    n_threads = min(most, len(blocks))
    if n_threads > 1:
        n_threads = min(n_threads, n_threads_for_rows())
    if n_threads <= 1:
        return [compute(block) for block in blocks]

    numpy_settings = np.geterr()  # of this thread alone before NumPy 2

    def compute_with_one_blas_thread(context: Context, block: _Block) -> _Result:
        with one_blas_thread(), np.errstate(**numpy_settings):
            return context.run(compute, block)

    executor = ThreadPoolExecutor(n_threads, thread_name_prefix="shapley-rows")
    try:
        contexts = [copy_context() for _ in blocks]  # they hold the caller's settings
        return list(executor.map(compute_with_one_blas_thread, contexts, blocks))
    finally:
        executor.shutdown(cancel_futures=True)


def n_threads_for_rows() -> int:
    """Return how many threads may solve rows.

    One for each core that the process may use, but no more than BLAS may use outside of our code:
    `OMP_NUM_THREADS`, threadpoolctl and joblib bound that. `joblib.parallel_config(n_jobs=...)`
    replaces that bound. One inside a worker of joblib, which shares the cores with other workers.
    """
    backend, n_jobs = get_active_backend()
    if backend.nesting_level:
        return 1
    n_cores = _n_cores()
    if n_jobs is not None:
        return max(1, min(n_cores, int(joblib.effective_n_jobs(n_jobs))))
    return max(1, min(n_cores, n_threads_outside(n_cores)))


def _n_cores() -> int:
    """Return the number of cores that the process may use."""
    if hasattr(os, "sched_getaffinity"):  # on Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

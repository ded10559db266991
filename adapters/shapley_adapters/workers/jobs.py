"""The number of workers, from `n_jobs` and joblib's settings."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import joblib
from joblib.parallel import BACKENDS, get_active_backend

from ..errors import InvalidArgumentError, InvalidArgumentTypeError


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
    of_user = getattr(backend, "inner_max_num_threads", None)
    if of_user is not None:
        return int(of_user)
    is_on_this_machine = type(backend) in [BACKENDS.get(name) for name in _ON_THIS_MACHINE]
    return max(1, joblib.cpu_count() // n_workers) if is_on_this_machine else 1


_ON_THIS_MACHINE = ("loky", "multiprocessing", "threading")

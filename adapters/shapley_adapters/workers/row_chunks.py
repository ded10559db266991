"""Contiguous chunks of rows that cost about the same."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..array_types import IntArray

_CHUNKS_PER_WORKER = 4
"""More chunks than workers, so that a worker with cheap rows takes over others."""

_SHORT_SECONDS = 0.1
"""Shorter chunks consist mostly of overhead: there are then fewer of them."""

_LONG_SECONDS = 30.0
"""Longer chunks let the progress bar stand still: there are then more of them."""


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
    n_chunks = _n_chunks(float(ends[-1]) * seconds_per_evaluation, n_workers)
    shares = ends[-1] * np.arange(1, n_chunks) / n_chunks
    # The row that reaches a share of the cost is the last one of its chunk.
    inner = np.searchsorted(ends, shares * (1 - 1e-12)) + 1
    bounds = np.unique([0, *np.minimum(inner, len(costs)), len(costs)])
    return [(int(a), int(b)) for a, b in pairwise(bounds)]


def _n_chunks(seconds: float, n_workers: int) -> int:
    """Return the number of chunks for rows that take `seconds` in all."""
    per_worker = seconds / n_workers / _SHORT_SECONDS
    n_chunks = n_workers * int(np.clip(per_worker, 1, _CHUNKS_PER_WORKER))
    return max(n_chunks, int(np.ceil(seconds / _LONG_SECONDS)))

"""Arrays computed once for each row of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..array_types import FloatArray, IntArray


class RowCache:
    """Arrays with one entry for each row of the data that was needed so far.

    Parameters
    ----------
    n_rows : int
        D, the number of rows of the data.
    """

    def __init__(self, n_rows: int) -> None:
        self._positions = np.full(n_rows, -1)  # position of each data row in the arrays
        self._arrays: tuple[FloatArray | None, ...] = ()

    def fill(
        self, rows: IntArray, compute: Callable[[IntArray], tuple[FloatArray | None, ...]]
    ) -> None:
        """Compute the arrays of those rows that are not in the cache.

        Parameters
        ----------
        rows : array of any shape
            Indices of rows of the data.
        compute : callable
            Takes the indices of new rows, in increasing order, and returns arrays with one entry
            per row, or None for an array that cannot be computed for any row.
        """
        needed = np.unique(rows)
        new_rows = needed[self._positions[needed] < 0]
        if len(new_rows) == 0:
            return
        arrays = compute(new_rows)
        n_cached = int((self._positions >= 0).sum())
        if n_cached:
            pairs = zip(self._arrays, arrays, strict=True)
            arrays = tuple(None if a is None else np.concatenate([a, b]) for a, b in pairs)
        self._arrays = arrays
        self._positions[new_rows] = n_cached + np.arange(len(new_rows))

    def at(self, rows: IntArray) -> tuple[Any, ...]:
        """Return the arrays of the given rows, each with the shape (*rows.shape, …)."""
        positions = self._positions[rows]
        return tuple(None if array is None else array[positions] for array in self._arrays)

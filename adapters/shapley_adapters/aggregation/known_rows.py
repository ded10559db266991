"""What was found for rows of the data, each row once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..array_types import FloatArray, IntArray


class KnownRows:
    """Arrays with a row for each row of the data that was needed so far.

    Parameters
    ----------
    n_rows : int
        D, how many rows the data have.
    """

    def __init__(self, n_rows: int) -> None:
        self._places = np.full(n_rows, -1)  # of the rows of the data in the arrays
        self._found: tuple[FloatArray | None, ...] = ()

    def learn(
        self, places: IntArray, find: Callable[[IntArray], tuple[FloatArray | None, ...]]
    ) -> None:
        """Find what is not known of the rows at `places`.

        Parameters
        ----------
        places : array of any shape
            Rows of the data.
        find : callable
            New rows, in increasing order, to arrays with a row for each; None for what cannot be
            found, which holds for all rows.
        """
        needed = np.unique(places)
        new = needed[self._places[needed] < 0]
        if len(new) == 0:
            return
        found = find(new)
        n_known = int((self._places >= 0).sum())
        if n_known:
            pairs = zip(self._found, found, strict=True)
            found = tuple(None if a is None else np.concatenate([a, b]) for a, b in pairs)
        self._found = found
        self._places[new] = n_known + np.arange(len(new))

    def at(self, places: IntArray) -> tuple[Any, ...]:
        """Return what `find` found for the rows at `places`, each array (*places.shape, …)."""
        rows = self._places[places]
        return tuple(None if one is None else one[rows] for one in self._found)

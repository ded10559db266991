"""A cache of matrices that depend on the coalitions and on a prior only, not on the game.

Rows and calls with as many players mostly have the same coalitions, up to the order of the players.
If all players have equal strengths, the order matters for nothing but the order of the results. So
the players are sorted, and matrices are computed once for many calls.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

from ...array_types import FloatArray, IntArray

_MOST_BYTES = 2**25
"""Bound on the bytes of one cache. Larger matrices take so long to factor only because they have
many values, which take long to evaluate."""

_MOST_ENTRIES = 256
"""Bound on the entries, because small ones consist mostly of Python's objects."""

_T = TypeVar("_T")


class FactorCache(Generic[_T]):
    """The most recently used matrices, each a dataclass of arrays."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._entries: OrderedDict[Hashable, _T] = OrderedDict()
        self._n_bytes = 0
        self._lock = Lock()  # explainers may run in threads

    def get(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return the entry of a key, computed if it is not there."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        entry = compute()
        if n_bytes(entry) <= self.most_bytes:
            self._put(key, entry)
        return entry

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
            self._n_bytes = 0

    def _put(self, key: Hashable, entry: _T) -> None:
        with self._lock:
            if key in self._entries:  # another thread was faster
                return
            self._entries[key] = entry
            self._n_bytes += n_bytes(entry)
            while self._n_bytes > self.most_bytes or len(self._entries) > _MOST_ENTRIES:
                self._n_bytes -= n_bytes(self._entries.popitem(last=False)[1])


def n_bytes(entry: Any) -> int:
    """Return the bytes of the arrays of a dataclass, and of those that it holds."""
    values = [getattr(entry, field.name) for field in fields(entry)]
    return sum(n_bytes(v) if is_dataclass(v) else getattr(v, "nbytes", 0) for v in values)


def sorted_players(signs: FloatArray) -> IntArray:
    """Return an order of the players that depends only on the coalitions of each, (M,)."""
    of_players = np.packbits(signs > 0, axis=0).T
    order = sorted(range(len(of_players)), key=lambda player: of_players[player].tobytes())
    return np.array(order, dtype=np.intp)


def coalitions_key(signs: FloatArray) -> Hashable:
    """Return a key of coalitions, (n, M)."""
    return signs.shape, np.packbits(signs > 0).tobytes()

"""Values that are known from earlier rounds of a call, and a time at which it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from time import perf_counter

import numpy as np

from ..array_types import CoalitionArray, IntArray, ValueArray
from .game import Game

_WORTH_STORING = 2e-5
"""Seconds of an evaluation from which on it is stored; to store one takes some 2e-6."""

_MOST_STORED = 10**6
"""Values that are stored at most, of some 300 bytes each."""


class TimeIsUp(Exception):  # noqa: N818 # no error: what was estimated before is the answer
    """The next batch would end after the time of the call."""


@dataclass
class ValueMemory:
    """Stores the values of a game, so that they are not paid twice.

    Attributes
    ----------
    is_recording : bool
        Whether new values are stored, unless to compute them again is as cheap. The last round of
        a call need not store its values.
    n_evaluations : int
        The values that the game computed.
    seconds_each : float
        The least seconds of an evaluation in a batch.
    ends_at : float
        Batches that are expected to end later, by `perf_counter`, raise `TimeIsUp`.
    """

    is_recording: bool = True
    n_evaluations: int = 0
    seconds_each: float = inf
    ends_at: float = inf
    _stored: dict[tuple[int, bytes], ValueArray] = field(default_factory=dict, repr=False)
    _rows: set[int] = field(default_factory=set, repr=False)

    def values(self, game: Game, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values of coalitions, (P, K), of which only the unknown ones are computed."""
        keys, new = [], np.ones(len(rows), dtype=bool)
        if self.is_recording or np.isin(rows, list(self._rows)).any():
            packed = np.packbits(coalitions, axis=1)
            keys = [(row, key.tobytes()) for row, key in zip(rows.tolist(), packed, strict=True)]
            new = np.array([key not in self._stored for key in keys])
            if not new.any():
                return np.array([self._stored[key] for key in keys])
        started, n = perf_counter(), int(new.sum())
        if self.ends_at < inf and started + n * self.seconds_each > self.ends_at:
            raise TimeIsUp
        computed = np.asarray(game(rows[new], coalitions[new]), dtype=np.float64)
        self.seconds_each = min(self.seconds_each, (perf_counter() - started) / n)
        self.n_evaluations += n
        if not keys or len(computed) != n:  # the evaluator refuses a wrong length
            return computed
        result = np.empty((len(rows), *computed.shape[1:]))
        result[new] = computed
        for index in np.flatnonzero(~new):
            result[index] = self._stored[keys[index]]
        is_worth_it = self.seconds_each >= _WORTH_STORING and len(self._stored) < _MOST_STORED
        if self.is_recording and is_worth_it:
            self._rows.update(rows.tolist())
            for index in np.flatnonzero(new):
                self._stored[keys[index]] = result[index]
        return result

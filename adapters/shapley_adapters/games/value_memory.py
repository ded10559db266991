"""Values of first evaluations: what they cost, and no coalition twice when a call goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from time import perf_counter

import numpy as np

from ..array_types import CoalitionArray, IntArray, ValueArray
from .game import Game

_WORTH_STORING = 2e-5
"""Seconds of an evaluation from which on it is stored; to store one takes some 2e-6."""


class TimeIsUp(Exception):  # noqa: N818 # no error: what was estimated before is the answer
    """The next batch would end after the time of the call."""


@dataclass
class ValueMemory:
    """Times a game, and stores values while costs are measured, so that they are not paid twice.

    Attributes
    ----------
    is_recording : bool
        Whether new values are stored, unless to compute them again is as cheap. The last round of
        a call need not store its values.
    n_evaluations : int
        The values that the game computed.
    n_found : int
        The values that were asked for again.
    seconds : float
        The seconds of the game and of this memory.
    seconds_each : float
        The seconds of one evaluation, from the largest of the latest batches. Small batches mostly
        consist of the overhead of a call.
    ends_at : float
        Batches that are expected to end later, by `perf_counter`, raise `TimeIsUp`.
    """

    is_recording: bool = True
    n_evaluations: int = 0
    n_found: int = 0
    seconds: float = 0.0
    seconds_each: float = 0.0
    ends_at: float = inf
    _stored: dict[tuple[int, bytes], ValueArray] = field(default_factory=dict, repr=False)
    _rows: set[int] = field(default_factory=set, repr=False)
    _largest_batch: int = 0

    @property
    def is_storing(self) -> bool:
        """Whether a new value would be stored."""
        return self.is_recording and self.seconds_each >= _WORTH_STORING

    def values(self, game: Game, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values of coalitions, (P, K), of which only the unknown ones are computed."""
        started = perf_counter()
        values = self._values_of(game, rows, coalitions)
        self.seconds += perf_counter() - started
        return values

    def _values_of(self, game: Game, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        if not self.is_recording and not np.isin(rows, list(self._rows)).any():
            return self._timed(game, rows, coalitions)
        packed = np.packbits(coalitions, axis=1)
        keys = [(row, key.tobytes()) for row, key in zip(rows.tolist(), packed, strict=True)]
        new = np.array([key not in self._stored for key in keys])
        self.n_found += int(np.count_nonzero(~new))
        if not new.any():
            return np.array([self._stored[key] for key in keys])
        computed = self._timed(game, rows[new], coalitions[new])
        if len(computed) != np.count_nonzero(new):
            return computed  # of a wrong length, which the evaluator refuses
        result = np.empty((len(rows), *computed.shape[1:]))
        result[new] = computed
        for index in np.flatnonzero(~new):
            result[index] = self._stored[keys[index]]
        if self.is_storing:
            self._rows.update(rows.tolist())
            for index in np.flatnonzero(new):
                self._stored[keys[index]] = result[index]
        return result

    def _timed(self, game: Game, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        started, n = perf_counter(), len(rows)
        if started + n * self.seconds_each > self.ends_at:
            raise TimeIsUp
        values = np.asarray(game(rows, coalitions), dtype=np.float64)
        seconds = perf_counter() - started
        self.n_evaluations += n
        if 2 * n >= self._largest_batch:
            # The first call of a model may be slow, and is replaced by the next one.
            self.seconds_each = seconds / n
            self._largest_batch = max(n, self._largest_batch)
        return values

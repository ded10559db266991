"""The number of evaluations in one call of the model: bounded by memory, optimised by timing."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..memory_bounds import MAX_INPUT_BYTES

_FIRST_ROWS, _MAX_ROWS = 64, 2**15
"""Rows of the model's input in the first batch, and the most rows of a batch."""

_FIRST_EVALUATIONS = 16
"""The first batch has at least so many evaluations if memory allows it, and no smaller batch is
timed: models such as trees need more time for some coalitions than for others, so that the time of
a few evaluations says little."""

_SHORT_SECONDS = 5e-4
"""Shorter calls consist mostly of overhead: the next batch is four times as large."""

_LONG_SECONDS = 5e-3
"""Longer batches grow only if that saves time, shorter ones also if the time stays the same."""

_GAIN = 0.04
"""The share of the time per evaluation that another size must save."""

_LARGE_GAIN = 0.65
"""If a larger short batch takes at most this share of the time per evaluation, the next size is
four times as large."""

_WORSE = 1.25
"""A size that is slower than the best by this factor is not timed a second time; nor is one whose
second batch may cost more than `_TRIAL_SHARE` of the time that remains."""

_FIRST_PAUSE = 8
"""Batches of the best size before its neighbours are timed again; each pause is twice as long as
the one before."""

_MIN_BATCHES = 5
"""After a pause, a size is timed only if the remaining evaluations are at least this many batches.
Otherwise the trial costs more than it can save."""

_TRIAL_SHARE, _UNTIMED_RATIO = 0.02, 1.25
"""After a pause, a trial may take at most this share of the time for the remaining evaluations
longer than the best size would. A larger size that was never timed counts as this much slower."""

_LAST_BATCH = 1.5
"""If at most this multiple of the size remains, it becomes one batch."""


@dataclass(frozen=True)
class BatchBounds:
    """The evaluations of the first batch, and the largest number that fits into memory."""

    first: int
    largest: int

    @classmethod
    def from_bytes(
        cls,
        row_bytes: int,
        rows_each: int = 1,
        max_rows: int = _MAX_ROWS,
        max_bytes: int = MAX_INPUT_BYTES,
        rows_at_once: int | None = None,
    ) -> BatchBounds:
        """Return the bounds for evaluations that take `rows_each` rows of the model's input.

        Parameters
        ----------
        row_bytes : int
            Memory of one row of the input.
        rows_each : int
            Rows per evaluation, such as one per background row.
        max_rows : int
            The largest number of rows of a batch.
        max_bytes : int
            The largest memory of the inputs of a batch.
        rows_at_once : int, optional
            The rows that keep a model busy which runs many calls at once. All batches then have
            this size: their times say nothing, and the number of calls is known beforehand.
        """
        bound = max(1, min(max_rows, max_bytes // max(1, row_bytes)) // rows_each)
        first = min(max(_FIRST_EVALUATIONS, (rows_at_once or _FIRST_ROWS) // rows_each), bound)
        return cls(first, first if rows_at_once else bound)


@dataclass
class FixedBatchSize:
    """A size that the user or the game has chosen; it is halved if memory runs out."""

    size: int

    def next_size(self, n_left: int) -> int:
        """Return the size of the next batch when `n_left` evaluations remain."""
        return min(self.size, n_left)

    def note(self, size: int, seconds: float) -> None:
        """Ignore the time of a batch."""

    def shrink_to(self, size: int) -> None:
        """Use `size` from now on."""
        self.size = size


@dataclass
class TimedBatchSize:
    """The size of the next batch, from the times of the batches so far.

    It doubles as long as this saves time per evaluation. A size that is faster than the best one
    becomes the best one. A slower one is timed a second time and the shorter time is used, because
    other programs may slow a batch down. Later, half, a quarter and twice the best size are timed
    again, after longer and longer pauses, so that a busy machine has no lasting effect. Sizes above
    a fifth of the remaining evaluations, and sizes whose trial would take too long by the times so
    far, are not timed again.

    Attributes
    ----------
    bounds : BatchBounds
        The smallest and the largest size.
    is_warm : bool
        Whether the model was called before. The first call may be slow.
    size : int
        The next size to time.
    best : int
        The best size so far.
    """

    bounds: BatchBounds
    is_warm: bool = False
    size: int = field(init=False)
    best: int = field(init=False)
    _seconds: dict[int, list[float]] = field(default_factory=dict, init=False)
    _ratios: dict[int, float] = field(default_factory=dict, init=False)
    _candidates: list[int] = field(default_factory=list, init=False)
    _n_to_wait: int = field(default=0, init=False)
    _pause: int = field(default=_FIRST_PAUSE, init=False)
    _n_left: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.size = self.best = self.bounds.first

    @property
    def is_known(self) -> bool:
        """Whether any batch has been timed."""
        return bool(self._seconds) or self.best != self.bounds.first

    def next_size(self, n_left: int) -> int:
        """Return the size of the next batch when `n_left` evaluations remain."""
        self._n_left = n_left
        is_last = n_left <= min(_LAST_BATCH * self.size, self.bounds.largest)
        return n_left if is_last else min(self.size, n_left)

    def note(self, size: int, seconds: float) -> None:
        """Record the time of a batch, if it was full, and choose the next size."""
        was_warm, self.is_warm = self.is_warm, True
        if size != self.size:
            return
        if seconds < _SHORT_SECONDS and size < self.bounds.largest:
            self._seconds.clear()
            self.best = self.size = min(4 * size, self.bounds.largest)
        elif was_warm:
            self._seconds[size] = [*self._seconds.get(size, []), seconds / size][-2:]
            if size == self.best:
                self._wait_or_try()
            else:
                self._judge(size)

    def shrink_to(self, size: int) -> None:
        """Use sizes up to `size`: larger batches do not fit into memory."""
        self.bounds = BatchBounds(min(self.bounds.first, size), size)
        self._seconds.clear()
        self._candidates.clear()
        self.size = self.best = min(self.best, size)

    def _wait_or_try(self) -> None:
        """Time the sizes next to the best one, unless they were timed recently."""
        self._n_to_wait -= 1
        if self._n_to_wait <= 0:
            self._n_to_wait, self._pause = self._pause, 2 * self._pause
            self._seconds = {self.best: self._seconds[self.best]}
            neighbours = (2 * self.best, self.best // 2, self.best // 4)
            self._candidates = [size for size in neighbours if self._is_cheap(size)]
            self._try_next()

    def _is_cheap(self, size: int) -> bool:
        """Return whether the remaining evaluations pay for timing a size again."""
        is_first_trial = not self._ratios
        guess = 1.0 if is_first_trial or size < self.best else _UNTIMED_RATIO
        ratio = self._ratios.get(size, guess)
        n_lost = (ratio - 1) * size
        return _MIN_BATCHES * size <= self._n_left and n_lost <= _TRIAL_SHARE * self._n_left

    def _judge(self, size: int) -> None:
        """Compare a size with the best one."""
        seconds, is_larger = min(self._seconds[size]), size > self.best
        ratio = self._ratios[size] = seconds / min(self._seconds[self.best])
        is_short = is_larger and size * seconds < _LONG_SECONDS
        if ratio <= (1.0 if is_short else 1 - _GAIN):
            growth = 4 if ratio <= _LARGE_GAIN and is_short else 2
            # The previous best size may have been slow by chance: time it a second time.
            self._candidates = [growth * size, self.best] if is_larger else [size // 2]
            if is_larger and not is_short and ratio > 1 - 2 * _GAIN:
                self._candidates.pop(0)  # each doubling saves about half of what the last one did
            self.best = size
        elif self._deserves_repetition(size, ratio):
            return
        elif size > 2 * self.best:
            self._candidates.insert(0, size // 2)
        elif size < self.best and ratio > 1 + _GAIN:
            self._candidates.clear()  # even smaller sizes would be slower
        self._try_next()

    def _deserves_repetition(self, size: int, ratio: float) -> bool:
        """Return whether a size that was slower once is timed again, as it may be by chance."""
        is_close = ratio <= _WORSE and len(self._seconds[size]) < 2
        return is_close and (ratio - 1) * size <= _TRIAL_SHARE * self._n_left

    def _try_next(self) -> None:
        smallest = min(_FIRST_EVALUATIONS, self.bounds.first)
        while self._candidates:
            size = min(self._candidates.pop(0), self.bounds.largest)
            if size >= smallest and len(self._seconds.get(size, [])) < 2 and size != self.best:
                self.size = size
                return
        self.size = self.best

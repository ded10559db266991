"""How many evaluations go into one call of the model: bounds by memory, the best by timing."""

from __future__ import annotations

from dataclasses import dataclass, field

_FIRST_ROWS, _MOST_ROWS, _MOST_BYTES = 64, 2**15, 2**26
"""Rows of the model's input in the first batch, and bounds on those of any batch."""

_SHORT_SECONDS = 5e-4
"""A call this short is mostly overhead: the next one is four times as large."""

_LONG_SECONDS = 2e-2
"""Batches this long grow only if that saves time; shorter ones also if it costs none."""

_GAIN = 0.04
"""Another size must save this share of the time per evaluation."""

_MUCH = 0.65
"""Where a larger short batch leaves no more than this share of the time, four times its size is
next."""

_WORSE = 1.25
"""A size this much slower than the best is not timed a second time."""

_FIRST_PAUSE = 8
"""Batches of the best size before its neighbours are timed again; each pause is twice as long."""

_SHARE = 5
"""After a pause only sizes are timed that fit this many times into what is left: others cost more
than they can save."""

_REST = 1.5
"""So many times the size is taken at once where no more is left."""


@dataclass(frozen=True)
class BatchBounds:
    """The evaluations of the first batch, and the most that memory allows."""

    first: int
    most: int

    @classmethod
    def of_bytes(cls, row_bytes: int, rows_each: int = 1, most: int = _MOST_ROWS) -> BatchBounds:
        """Return the bounds for evaluations that take `rows_each` rows of the model's input.

        Parameters
        ----------
        row_bytes : int
            Memory that one row of the input takes.
        rows_each : int
            Rows for one evaluation, such as one for each background row.
        most : int
            Bound on the rows of a batch.
        """
        bound = max(1, min(most, _MOST_BYTES // max(1, row_bytes)) // rows_each)
        return cls(min(max(1, _FIRST_ROWS // rows_each), bound), bound)


@dataclass
class FixedBatchSize:
    """A size that the user or the game has chosen, or half of it where memory runs out."""

    size: int

    def of(self, n_left: int) -> int:
        """Return the size of the next batch where so many evaluations are left."""
        return min(self.size, n_left)

    def note(self, size: int, seconds: float) -> None:
        """Learn nothing from the time of a batch."""

    def shrink_to(self, size: int) -> None:
        """Take `size` from now on."""
        self.size = size


@dataclass
class TimedBatchSize:
    """The size of the next batch, found by timing the batches so far.

    It doubles as long as this saves time per evaluation. A size that is faster at first sight is
    taken; one that is not is timed twice and the faster time counts, because other programs slow
    some batches down. Later the sizes beside the best one are timed again, after longer and longer
    pauses, so that a wrong decision on a busy machine does not last; but no size that takes more
    than a fifth of what is left.

    Attributes
    ----------
    bounds : BatchBounds
        Between which sizes to choose.
    size : int
        The size to time next.
    best : int
        The best size so far.
    """

    bounds: BatchBounds
    size: int = field(init=False)
    best: int = field(init=False)
    _seconds: dict[int, list[float]] = field(default_factory=dict, init=False)
    _candidates: list[int] = field(default_factory=list, init=False)
    _is_warm: bool = field(default=False, init=False)
    _n_to_wait: int = field(default=0, init=False)
    _pause: int = field(default=_FIRST_PAUSE, init=False)
    _n_left: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.size = self.best = self.bounds.first

    @classmethod
    def after(cls, other: TimedBatchSize) -> TimedBatchSize:
        """Return the size for other evaluations of the same model, which begins with the best."""
        size = cls(BatchBounds(other.best, other.bounds.most))
        size._is_warm = True
        return size

    @property
    def is_known(self) -> bool:
        """Whether any batch has been timed."""
        return bool(self._seconds) or self.best != self.bounds.first

    def of(self, n_left: int) -> int:
        """Return the size of the next batch where so many evaluations are left."""
        self._n_left = n_left
        is_rest = n_left <= min(_REST * self.size, self.bounds.most)
        return n_left if is_rest else min(self.size, n_left)

    def note(self, size: int, seconds: float) -> None:
        """Take the time of a batch into account, if it was a full one."""
        was_warm, self._is_warm = self._is_warm, True  # the first call of a model may be slow
        if size != self.size:
            return
        if seconds < _SHORT_SECONDS and size < self.bounds.most:
            self._seconds.clear()
            self.best = self.size = min(4 * size, self.bounds.most)
        elif was_warm:
            self._seconds[size] = [*self._seconds.get(size, []), seconds / size][-2:]
            if size == self.best:
                self._wait_or_try()
            else:
                self._judge(size)

    def shrink_to(self, size: int) -> None:
        """Stay at `size` or below: more does not fit into memory."""
        self.bounds = BatchBounds(min(self.bounds.first, size), size)
        self._seconds.clear()
        self._candidates.clear()
        self.size = self.best = min(self.best, size)

    def _wait_or_try(self) -> None:
        """Time the sizes beside the best one, unless that has been done lately."""
        self._n_to_wait -= 1
        if self._n_to_wait <= 0:
            self._n_to_wait, self._pause = self._pause, 2 * self._pause
            self._seconds = {self.best: self._seconds[self.best]}
            around = (2 * self.best, self.best // 2, self.best // 4)
            self._candidates = [size for size in around if _SHARE * size <= self._n_left]
            self._try_next()

    def _judge(self, size: int) -> None:
        """Compare a size with the best one."""
        seconds, is_larger = min(self._seconds[size]), size > self.best
        ratio = seconds / min(self._seconds[self.best])
        is_short = is_larger and size * seconds < _LONG_SECONDS
        if ratio <= (1.0 if is_short else 1 - _GAIN):
            growth = 4 if ratio <= _MUCH and is_short else 2
            # The size before may have been slow by chance: it is timed a second time.
            self._candidates = [growth * size, self.best] if is_larger else [size // 2]
            self.best = size
        elif ratio <= _WORSE and len(self._seconds[size]) < 2:
            return
        elif size > 2 * self.best:
            self._candidates.insert(0, size // 2)
        self._try_next()

    def _try_next(self) -> None:
        while self._candidates:
            size = min(self._candidates.pop(0), self.bounds.most)
            if size >= 1 and len(self._seconds.get(size, [])) < 2 and size != self.best:
                self.size = size
                return
        self.size = self.best

"""Evaluation of games: in full batches, with bounded memory and checked values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from ..array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable
from ..errors import ModelOutputError, NonFiniteValueError
from ..row_numbers import row_number
from .batch_sizes import BatchBounds, FixedBatchSize, TimedBatchSize
from .game import Game, GameOfTimedBatches
from .output_shapes import OutputShape

_CACHE_BYTES = {"cpu": 2**20}
"""Total size of rows for which a call is efficient; other devices need larger calls."""

_MIN_ROWS, _MAX_ROWS, _MAX_BYTES = 64, 4096, 2**26


def rows_per_batch(row_bytes: int, device: str = "cpu") -> int:
    """Return an efficient number of model rows per batch: small rows fill the cache."""
    row_bytes = max(1, row_bytes)
    n_efficient = max(_MIN_ROWS, _CACHE_BYTES.get(device, 2**24) // row_bytes)
    return max(1, min(n_efficient, _MAX_ROWS, _MAX_BYTES // row_bytes))


@dataclass(frozen=True)
class Request:
    """Coalitions to evaluate for some rows.

    Attributes
    ----------
    rows : array, (R,)
        The rows of the game.
    table : CoalitionTable
        The coalitions, of m players each.
    players : array, (R, m), optional
        The game's player of each column of the table, for each row; by default all players in
        their order.
    n_players : int, optional
        The number of players of the game; needed with `players`.
    """

    rows: IntArray
    table: CoalitionTable
    players: IntArray | None = None
    n_players: int = 0

    @property
    def n_pairs(self) -> int:
        """The number of requested values."""
        if self.table.is_shared:
            return int(self.table.counts[0]) * len(self.rows)
        return int(self.table.counts.sum())

    def values(self, flat: ValueArray) -> ValueArray:
        """Arrange the values of all pairs as (R, C, K), padded with zeros."""
        n_rows, n_coalitions = len(self.rows), self.table.coalitions.shape[1]
        if self.table.is_shared:
            return flat.reshape(n_rows, n_coalitions, flat.shape[1])
        values = np.zeros((n_rows, n_coalitions, flat.shape[1]))
        values[self._is_requested()] = flat
        return values

    def pairs(self) -> Callable[[int, int], tuple[IntArray, CoalitionArray]]:
        """Return a function that returns the pairs from `start` to `stop`, ordered by row.

        Boosted trees take a third less time for neighbouring evaluations of one row than of many.
        """
        if self.table.is_shared:
            return self._shared_pairs
        row, column = np.nonzero(self._is_requested())

        def take(start: int, stop: int) -> tuple[IntArray, CoalitionArray]:
            r, c = row[start:stop], column[start:stop]
            return self.rows[r], self._of_all_players(self.table.coalitions[r, c], r)

        return take

    def _shared_pairs(self, start: int, stop: int) -> tuple[IntArray, CoalitionArray]:
        row, column = np.divmod(np.arange(start, stop), self.table.coalitions.shape[1])
        return self.rows[row], self._of_all_players(self.table.coalitions[0, column], row)

    def _is_requested(self) -> BoolArray:
        return np.arange(self.table.coalitions.shape[1]) < self.table.counts[:, None]

    def _of_all_players(self, coalitions: CoalitionArray, row: IntArray) -> CoalitionArray:
        """Convert coalitions of the row's players to coalitions of the game's players."""
        if self.players is None:
            return coalitions
        of_game = np.zeros((len(coalitions), self.n_players), dtype=bool)
        np.put_along_axis(of_game, self.players[row], coalitions, axis=1)
        return of_game


def _output_shape() -> OutputShape:
    return OutputShape("The model", "Check that it does not depend on the batch.")


@dataclass(frozen=True)
class Evaluator:
    """Evaluates a game.

    Parameters
    ----------
    game : Game
        The game.
    batch_size : int, optional
        Evaluations in one call of the game; by default the game's `evaluations_per_batch`.
    on_progress : callable, optional
        Called after each batch with its number of evaluations.
    on_error : callable, optional
        Called with an error of the game, the rows and the coalitions, before it is raised.
    is_timed : bool
        Whether to choose the batch size by timing, if the game has bounds and the user gives no
        size. A model in single precision may round differently in batches of other sizes.
    """

    game: Game
    batch_size: int | None = None
    on_progress: Callable[[int], object] = lambda _: None
    _output_shape: OutputShape = field(default_factory=_output_shape, init=False, repr=False)
    is_timed: bool = False
    on_error: Callable[[Exception, IntArray, CoalitionArray], object] = lambda *_: None
    _timed_sizes: dict[int, TimedBatchSize] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, requests: Sequence[Request]) -> list[ValueArray]:
        """Return the values of each request, (R, C, K), evaluated together."""
        if sum(request.n_pairs for request in requests) == 0:
            return [np.zeros((len(request.rows), 0, 0)) for request in requests]
        takes = [request.pairs() for request in requests]
        ends = np.cumsum([request.n_pairs for request in requests])
        starts = ends - [request.n_pairs for request in requests]
        flat: list[ValueArray] = []

        def evaluate(start: int, stop: int) -> None:
            spans = [
                (take, max(start, first) - first, min(stop, end) - first)
                for take, first, end in zip(takes, starts, ends, strict=True)
                if first < stop and end > start
            ]
            pieces = [take(int(a), int(b)) for take, a, b in spans]
            rows = np.concatenate([piece[0] for piece in pieces])
            coalitions = np.concatenate([piece[1] for piece in pieces])
            try:
                values = self.game(rows, coalitions)
            except Exception as error:
                self.on_error(error, rows, coalitions)
                raise
            flat.append(self._checked(values, rows, coalitions))
            self.on_progress(stop - start)

        in_batches_of(int(ends[-1]), self._size_at(requests, ends), evaluate)
        values = np.concatenate(flat)
        return [
            request.values(values[start:end])
            for request, start, end in zip(requests, starts, ends, strict=True)
        ]

    def values_of(self, coalitions: CoalitionArray) -> ValueArray:
        """Return the values of some coalitions, (C, M), for all rows of the game, (R, C, K)."""
        table = CoalitionTable(coalitions[None], np.array([len(coalitions)]))
        return self([Request(np.arange(self.game.n_rows), table)])[0]

    @property
    def best_sizes(self) -> dict[int, int]:
        """The best batch size so far for each number of players, where it was timed."""
        return {m: size.best for m, size in self._timed_sizes.items() if size.is_known}

    def start_at(self, sizes: Mapping[int, int]) -> None:
        """Start at the best sizes of another evaluator of the same model."""
        if isinstance(self.game, GameOfTimedBatches) and self.game.batch_bounds is not None:
            bounds = self.game.batch_bounds
            for n_players, best in sizes.items():
                first = min(best, bounds.largest)
                self._timed_sizes[n_players] = TimedBatchSize.after(
                    TimedBatchSize(BatchBounds(first, bounds.largest))
                )

    def _size_at(
        self, requests: Sequence[Request], ends: IntArray
    ) -> Callable[[int], FixedBatchSize | TimedBatchSize]:
        """Return a function that returns the size of the batch that starts at an index."""
        bounds = None
        if self.is_timed and self.batch_size is None and isinstance(self.game, GameOfTimedBatches):
            bounds = self.game.batch_bounds
        if bounds is None:
            fixed = FixedBatchSize(self.batch_size or self.game.evaluations_per_batch)
            return lambda _: fixed

        def size_at(start: int) -> TimedBatchSize:
            request = requests[int(np.searchsorted(ends, start, side="right"))]
            return self._timed_size(request.table.coalitions.shape[2], bounds)

        return size_at

    def _timed_size(self, n_players: int, bounds: BatchBounds) -> TimedBatchSize:
        """Return the batch size for rows of `n_players` players, such as texts of one length."""
        size = self._timed_sizes.get(n_players)
        if size is None or not size.is_known:
            earlier = sorted(self._timed_sizes.values(), key=lambda timed: timed.is_known)
            size = TimedBatchSize.after(earlier[-1]) if earlier else TimedBatchSize(bounds)
            self._timed_sizes[n_players] = size
        return size

    def _checked(
        self, values: ValueArray, rows: IntArray, coalitions: CoalitionArray
    ) -> ValueArray:
        values = np.asarray(values, dtype=np.float64)
        if len(values) != len(rows):
            raise ModelOutputError(
                f"The model must return one entry for each input row; it returned {len(values)} "
                f"for {len(rows)} evaluations. Check that it does not reduce over the batch."
            )
        self._output_shape.check(values.shape[1:])
        finite = np.isfinite(values)
        if not finite.all():
            pair, output = np.argwhere(~finite)[0]
            raise NonFiniteValueError(
                f"The value of row {row_number(rows[pair])}, output {output}, is "
                f"{values[pair, output]} for the coalition of players "
                f"{np.flatnonzero(coalitions[pair]).tolist()}. The model or forward_func must "
                "return finite numbers: look for missing values that it cannot take, for overflow, "
                "and for a link such as logit at probabilities of 0 or 1."
            )
        return values


def in_batches(total: int, size: int, call: Callable[[int, int], None]) -> None:
    """Call `call(start, stop)` over `total` items in batches; halve them if memory runs out."""
    fixed = FixedBatchSize(size)
    in_batches_of(total, lambda _: fixed, call)


def in_batches_of(
    total: int,
    size_at: Callable[[int], FixedBatchSize | TimedBatchSize],
    call: Callable[[int, int], None],
) -> None:
    """Call `call(start, stop)` over `total` items, in batches of the size at their start.

    If memory runs out, the batch is halved and repeated; later batches have the smaller size, too.
    """
    start = 0
    while start < total:
        size = size_at(start)
        stop, start_time = start + size.of(total - start), perf_counter()
        try:
            call(start, stop)
        except (MemoryError, RuntimeError) as error:
            if stop - start == 1 or not ran_out_of_memory(error):
                raise
            size.shrink_to((stop - start) // 2)
            continue
        size.note(stop - start, perf_counter() - start_time)
        start = stop


def ran_out_of_memory(error: BaseException) -> bool:
    """Return whether the memory of the host or of a device was too small, from its error."""
    # The classes of the frameworks are not imported here; torch's are RuntimeErrors with this text.
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "allocate memory" in text

"""Evaluation of games: in full batches, with bounded memory and checked outputs of the model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..array_types import CoalitionArray, FloatArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable
from ..errors import ModelOutputError, NonFiniteValueError, ShapleyExtError, row_number, warn_user
from ..torch_support.tensor_arrays import array_of
from .batch_sizes import BatchBounds, FixedBatchSize, TimedBatchSize
from .game import Game
from .value_memory import ValueMemory

_CACHE_BYTES = {"cpu": 2**20}
"""Total size of rows for which a call is efficient; other devices need larger calls."""

_MIN_ROWS, _MAX_ROWS, _MAX_BYTES = 64, 4096, 2**26

SizeAt: TypeAlias = Callable[[int], FixedBatchSize | TimedBatchSize]
"""Returns the size of the batch that starts at an index."""

_Output = TypeVar("_Output")

_OF_SHAPES = (AssertionError, RuntimeError, ValueError, IndexError, TypeError)
"""Errors that models raise for a number of rows that they do not take."""

_MOST_OF_ERROR = 100
"""Characters of an error of the model that a warning shows."""

_MOST_WHOLE = 2**53
"""Double precision holds all whole numbers up to this one."""


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
        return int(np.broadcast_to(self.table.counts, len(self.rows)).sum())

    def values(self, flat: ValueArray) -> ValueArray:
        """Arrange the values of all pairs as (R, C, K), padded with zeros."""
        n_rows, n_coalitions = len(self.rows), self.table.coalitions.shape[1]
        if len(self.table.coalitions) == 1:  # which all rows share
            return flat.reshape(n_rows, n_coalitions, flat.shape[1])
        values = np.zeros((n_rows, n_coalitions, flat.shape[1]))
        values[self._row_and_column] = flat
        return values

    def pairs(self, start: int, stop: int) -> tuple[IntArray, CoalitionArray]:
        """Return the rows and coalitions of the pairs from `start` to `stop`, ordered by row.

        Boosted trees take a third less time for neighbouring evaluations of one row than of many.
        """
        if len(self.table.coalitions) == 1:
            row, column = np.divmod(np.arange(start, stop), self.table.coalitions.shape[1])
            coalitions = self.table.coalitions[0, column]
        else:
            row, column = (indices[start:stop] for indices in self._row_and_column)
            coalitions = self.table.coalitions[row, column]
        if self.players is not None:
            coalitions = self._of_game(coalitions, self.players[row])
        return self.rows[row], coalitions

    def _of_game(self, coalitions: CoalitionArray, players: IntArray) -> CoalitionArray:
        """Return coalitions of some players as coalitions of all players of the game."""
        of_game = np.zeros((len(coalitions), self.n_players), dtype=bool)
        np.put_along_axis(of_game, players, coalitions, axis=1)
        return of_game

    @cached_property
    def _row_and_column(self) -> tuple[IntArray, ...]:
        """The indices into the table of all requested pairs, without its padding."""
        is_requested = np.arange(self.table.coalitions.shape[1]) < self.table.counts[:, None]
        return np.nonzero(is_requested)


@dataclass
class OutputShape:
    """Remembers the shape of the output for one row, and refuses outputs of another shape.

    Attributes
    ----------
    model : str
        The name of the model in messages, such as "The model".
    advice : str
        Advice to the user if the shape varies.
    shape : tuple of int, or None
        The shape; None before the first call.
    names : list of str, or None
        The names of the outputs, where the model returns frames.
    rounding : float
        The relative rounding error of the type of the numbers; 0 before the first call.
    """

    model: str
    advice: str
    shape: tuple[int, ...] | None = field(default=None, init=False)
    names: list[str] | None = field(default=None, init=False)
    rounding: float = field(default=0.0, init=False)

    def check(self, shape: tuple[int, ...]) -> None:
        """Compare the shape of another call.

        Raises
        ------
        ModelOutputError
            If the output has no number, or if its shape differs from that of earlier calls.
        """
        if 0 in shape:
            raise ModelOutputError(
                f"{self.model} returns no number for a row: its output for one row has shape "
                f"{shape}. Return at least one number."
            )
        if self.shape not in (None, shape):
            raise ModelOutputError(
                f"{self.model} must return outputs of the same shape in all calls; for one row "
                f"the shape was {self.shape} first and {shape} later. {self.advice}"
            )
        self.shape = shape


def in_double_precision(model: str, numbers: Any) -> FloatArray:
    """Return a copy of the outputs of a model as an array in double precision.

    Raises
    ------
    ModelOutputError
        If whole numbers exceed 2^53, beyond which double precision rounds them.
    """
    array = np.asarray(numbers)
    if array.dtype.kind in "iuO" and array.size:
        whole = array
        if array.dtype.kind == "O":
            are_whole = [isinstance(entry, (int, np.integer)) for entry in array.flat]
            whole = array[np.array(are_whole).reshape(array.shape)]
        largest = max(int(whole.max()), int(whole.min()), key=abs) if whole.size else 0
        if abs(largest) > _MOST_WHOLE:
            raise ModelOutputError(
                f"{model} returns whole numbers beyond 2^53, such as {largest}, which "
                "double precision cannot hold exactly. Subtract a constant from them, or convert "
                "them to floating point if rounding does not matter."
            )
    return np.array(array, dtype=np.float64)


def as_outputs(output: Any, n_rows: int, shape: OutputShape | None = None) -> FloatArray:
    """Convert the output of a model to an array, (n_rows, K); further dimensions are flattened.

    The array is a copy, because some models write each output into the same memory.

    Raises
    ------
    ModelOutputError
        If there is not one entry for each row, or not one number at least in each entry; or if K
        differs from that of earlier calls with the same `shape`.
    """
    columns = getattr(output, "columns", None)
    names = None if columns is None else list(map(str, columns))
    if isinstance(output, (list, tuple)):
        arrays = [array_of(entry) for entry in output]
        output = arrays if isinstance(output, list) else tuple(arrays)
        _refuse_one_array_per_target(output)
    output = array_of(output)
    if isinstance(output, np.ma.MaskedArray) and np.ma.is_masked(output):
        raise ModelOutputError(
            "The model returned a masked array, some of whose values are masked. Return numbers "
            "for all rows, for example by output.filled(0.0)."
        )
    try:
        array = np.asarray(output)  # outputs may be lists or tables
        kind = array.dtype.kind
        are_texts = kind == "O" and any(isinstance(cell, (str, bytes)) for cell in array.flat)
        if are_texts or kind not in "biufcO":
            raise TypeError("texts and times are not numbers")  # NumPy would convert "1" to 1.0
        if kind == "c":
            raise ModelOutputError("The model must return real numbers; it returned complex ones.")
        values = in_double_precision("The model", array)
    except ModelOutputError:  # a ValueError, too
        raise
    except (TypeError, ValueError) as error:
        advice = "Explain a function that does, such as predict_proba."
        if inspect.iscoroutine(output):
            output.close()
            advice = "Wrap the coroutine function: RemoteModel(model)."
        raise ModelOutputError(
            f"The model must return numbers; it returned {type(output).__name__}. {advice}"
        ) from error
    if values.ndim == 0 or len(values) != n_rows:
        raise ModelOutputError(
            f"The model must return one entry for each of its {n_rows} input rows; its output has "
            f"shape {values.shape}."
        )
    if values.size == 0 and n_rows > 0:
        raise ModelOutputError(
            f"The model must return one number at least for each row; its output has shape "
            f"{values.shape}."
        )
    values = values.reshape(n_rows, -1)
    if shape is not None:
        shape.check(values.shape[1:])
        shape.rounding = float(np.finfo(array.dtype).eps) if kind == "f" else 0.0
        shape.names = names
    return values


def _refuse_one_array_per_target(output: list[Any] | tuple[Any, ...]) -> None:
    """Refuse lists of arrays, which may hold one array for each target and not for each row."""
    n_axes = [np.ndim(entry) for entry in output]
    max_axes = 0 if isinstance(output, tuple) else 1  # a list may hold the outputs of each row
    if any(n > max_axes for n in n_axes):
        raise ModelOutputError(
            f"The model returned a {type(output).__name__} of {len(output)} arrays, so that it is "
            "not known which axis holds the rows. Explain a function that returns one array: "
            "lambda x: function(x)[0] explains the first target, lambda x: np.hstack(function(x)) "
            "all targets side by side. Of an estimator, function is its method predict_proba."
        )


def background_mean(outputs: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Return the mean over the background, (P, K), of outputs, (P, B, K).

    Parameters
    ----------
    outputs : array, (P, B, K)
        Outputs for B background rows.
    weights : array, (B,), or None
        Weight of each background row, 1 in all; None for equal weights.
    """
    if outputs.shape[1] == 1:  # taking a mean of ones is slow
        return outputs[:, 0]
    mean: FloatArray
    mean = outputs.mean(axis=1) if weights is None else (outputs * weights[:, None]).sum(axis=1)
    return mean


_new_shape = partial(OutputShape, "The model", "Check that it does not depend on the batch.")


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
    memory : ValueMemory, optional
        Values that are known already, and the place for new ones.
    spent : list of one float
        The seconds of the game so far.
    timed_sizes : dict of int to TimedBatchSize
        The sizes of batches so far, for each number of players.
    """

    game: Game
    batch_size: int | None = None
    on_progress: Callable[[int], object] | None = None
    _output_shape: OutputShape = field(default_factory=_new_shape, init=False, repr=False)
    is_timed: bool = False
    on_error: Callable[[Exception, IntArray, CoalitionArray], object] | None = None
    memory: ValueMemory | None = None
    spent: list[float] = field(default_factory=partial(list, (0.0,)))
    timed_sizes: dict[int, TimedBatchSize] = field(default_factory=dict, repr=False)

    def __call__(self, requests: Sequence[Request]) -> list[ValueArray]:
        """Return the values of each request, (R, C, K), evaluated together."""
        counts = [request.n_pairs for request in requests]
        ends = np.cumsum(counts)
        starts = ends - counts
        if sum(counts) == 0:
            return [np.zeros((len(request.rows), 0, 0)) for request in requests]
        flat: list[ValueArray] = []
        bounds = self.game.batch_bounds if self.is_timed and self.batch_size is None else None
        size_at: SizeAt | FixedBatchSize
        if bounds is None or bounds.first == bounds.largest:
            size = self.game.evaluations_per_batch if bounds is None else bounds.largest
            size_at = FixedBatchSize(self.batch_size or size)
        else:
            size_at = partial(self._size_at, requests, ends, bounds)
        batches = Batches(int(ends[-1]), size_at)
        for start, stop in batches:
            pieces = [
                request.pairs(int(max(start, first) - first), int(min(stop, end) - first))
                for request, first, end in zip(requests, starts, ends, strict=True)
                if first < stop and end > start
            ]
            rows = np.concatenate([piece[0] for piece in pieces])
            coalitions = np.concatenate([piece[1] for piece in pieces])
            started = perf_counter()
            try:
                if self.memory is None:
                    values = self.game(rows, coalitions)
                else:
                    values = self.memory.values(self.game, rows, coalitions)
                self.spent[0] += perf_counter() - started
            except Exception as error:
                if self.on_error is not None:
                    self.on_error(error, rows, coalitions)
                if not batches.halve(error):
                    raise
                continue
            values = np.asarray(values, dtype=np.float64)
            if len(values) != len(rows):
                raise ModelOutputError(
                    f"The model must return one entry for each input row; it returned "
                    f"{len(values)} for {len(rows)} evaluations. Check that it does not reduce "
                    "over the batch."
                )
            self._output_shape.check(values.shape[1:])
            if not (finite := np.isfinite(values)).all():
                pair, output = np.argwhere(~finite)[0]
                raise NonFiniteValueError(
                    f"The value of row {row_number(rows[pair])}, output {output}, is "
                    f"{values[pair, output]} for the coalition of players "
                    f"{np.flatnonzero(coalitions[pair]).tolist()}. The model or forward_func must "
                    "return finite numbers. Look for missing values that it cannot take, for "
                    "overflow, and for a link such as logit at probabilities of 0 or 1."
                )
            flat.append(values)
            if self.on_progress is not None:
                self.on_progress(stop - start)
        together = np.concatenate(flat)
        return [
            request.values(together[start:end])
            for request, start, end in zip(requests, starts, ends, strict=True)
        ]

    def values_of(self, coalitions: CoalitionArray) -> ValueArray:
        """Return the values of some coalitions, (C, M), for all rows of the game, (R, C, K)."""
        table = CoalitionTable(coalitions[None], np.array([len(coalitions)]))
        return self([Request(np.arange(self.game.n_rows), table)])[0]

    @property
    def best_sizes(self) -> dict[int, int]:
        """The best batch size so far for each number of players, where it was timed."""
        return {m: size.best for m, size in self.timed_sizes.items() if size.is_known}

    def start_at(self, sizes: Mapping[int, int]) -> None:
        """Start at the best sizes of another evaluator of the same model."""
        bounds = self.game.batch_bounds
        if bounds is not None:
            for n_players, best in sizes.items():
                first = BatchBounds(min(best, bounds.largest), bounds.largest)
                self.timed_sizes[n_players] = TimedBatchSize(first, is_warm=True)

    def _size_at(
        self, requests: Sequence[Request], ends: IntArray, bounds: BatchBounds, start: int
    ) -> TimedBatchSize:
        """Return the size for the number of players at an index, such as texts of one length."""
        request = requests[int(np.searchsorted(ends, start, side="right"))]
        n_players = request.table.coalitions.shape[2]
        size = self.timed_sizes.get(n_players)
        if size is None or not size.is_known:
            others = list(self.timed_sizes.values())
            size = TimedBatchSize(bounds)
            if others:  # the same model: start at the best size of other rows
                last = ([other for other in others if other.is_known] or others)[-1]
                size = TimedBatchSize(BatchBounds(last.best, last.bounds.largest), is_warm=True)
            self.timed_sizes[n_players] = size
        return size


@dataclass
class Batches:
    """The first and the last index of each batch of `total` items, of the size at its start.

    If memory runs out, the batch is halved and repeated; later batches have the smaller size, too.
    """

    total: int
    size_at: SizeAt | FixedBatchSize
    _n_of_batch: int = field(default=0, init=False)
    _smaller: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the batches; the time until the next one is asked for is that of the batch."""
        start = 0
        while start < self.total:
            at = self.size_at
            size = at if isinstance(at, FixedBatchSize) else at(start)
            self._n_of_batch, self._smaller = size.next_size(self.total - start), 0
            start_time = perf_counter()
            yield start, start + self._n_of_batch
            if self._smaller:
                size.shrink_to(self._smaller)
                continue
            size.note(self._n_of_batch, perf_counter() - start_time)
            start += self._n_of_batch

    def halve(self, error: Exception) -> bool:
        """Repeat the batch as two, if memory ran out and it can be halved; return whether it is."""
        can_be_halved = self._n_of_batch > 1 and ran_out_of_memory(error)
        if can_be_halved:
            self._smaller = self._n_of_batch // 2
        return can_be_halved


def in_batches(total: int, size: int, call: Callable[[int, int], None]) -> None:
    """Call `call(start, stop)` over `total` items in batches; halve them if memory runs out."""
    in_batches_of(total, FixedBatchSize(size), call)


def in_batches_of(
    total: int, size_at: SizeAt | FixedBatchSize, call: Callable[[int, int], None]
) -> None:
    """Call `call(start, stop)` over `total` items, in batches of the size at their start."""
    batches = Batches(total, size_at)
    for start, stop in batches:
        try:
            call(start, stop)
        except (MemoryError, RuntimeError) as error:
            if not batches.halve(error):
                raise


@dataclass
class ModelCalls:
    """Calls a model with all rows of a batch or, if it takes one row only, once for each row.

    Some models assert that there is one row, or keep a state for one row. Their first batch fails,
    and its first row alone does not: from then on, each row is a call. An error that the first row
    raises, too, is one of the model itself, and so is any error after a batch that worked.

    Attributes
    ----------
    model : str
        The name of the model in the warning, such as "The model".
    take_batches : bool, optional
        Whether the model takes several rows in a call; None before the first batch.
    """

    model: str
    take_batches: bool | None = None

    def __call__(self, call: Callable[[slice], _Output], n_rows: int) -> list[_Output]:
        """Return the outputs of all calls.

        Parameters
        ----------
        call : callable
            Calls the model with a slice of the rows. While `take_batches` is None, the model must
            get copies, because it may write into rows before it fails.
        n_rows : int
            The number of rows.
        """
        if n_rows > 1 and self.take_batches is False:
            return [call(slice(row, row + 1)) for row in range(n_rows)]
        try:
            output = call(slice(0, n_rows))
        except _OF_SHAPES as error:
            is_ours = isinstance(error, ShapleyExtError)
            if n_rows == 1 or self.take_batches or is_ours or ran_out_of_memory(error):
                raise
            return self._row_by_row(call, n_rows, error)
        if n_rows > 1:
            self.take_batches = True
        return [output]

    def _row_by_row(
        self, call: Callable[[slice], _Output], n_rows: int, error: Exception
    ) -> list[_Output]:
        """Return the outputs of single rows, after a batch has failed; warn of the calls."""
        try:
            outputs = [call(slice(0, 1))]
        except Exception:  # the model fails for any number of rows
            raise error from error.__cause__
        self.take_batches = False
        outputs += [call(slice(row, row + 1)) for row in range(1, n_rows)]
        first_line = str(error).partition("\n")[0][:_MOST_OF_ERROR]
        problem = f"{type(error).__name__} for {n_rows} rows: {first_line}".rstrip(": ")
        warn_user(
            f"{self.model} takes one row at a time ({problem}). The values are the same, but "
            "each row takes a call of its own, where a model of batches needs few calls for "
            "all rows. Let it take any number of rows, the first axis, if that is too slow.",
            subject="one row at a time",
        )
        return outputs


def ran_out_of_memory(error: BaseException) -> bool:
    """Return whether the memory of the host or of a device was too small, from its error."""
    # The classes of the frameworks are not imported here; torch's are RuntimeErrors with this text.
    if not isinstance(error, RuntimeError):
        return isinstance(error, MemoryError)
    text = str(error).lower()
    # The third is that of PyTorch on Windows, the last that of cuBLAS and cuDNN.
    words = "out of memory", "allocate memory", "tried to allocate", "status_alloc_failed"
    return any(part in text for part in words)

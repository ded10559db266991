"""Models behind a network: many calls at once, tried again where they fail, and paid for once."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import inspect
import json
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import closing, contextmanager, suppress
from dataclasses import KW_ONLY, astuple, dataclass, field, fields
from datetime import date, timedelta
from functools import partial
from hashlib import blake2s
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse

from .arguments import checked_count, checked_path, checked_positive
from .errors import (
    CheckpointError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    RemoteCallError,
    warn_user,
)
from .torch_support.tensor_arrays import array_of, is_tensor, tensor_beside

_FIRST_WAIT, _LONGEST_WAIT = 0.25, 30.0
"""Seconds before the first and before any later repetition; each wait is twice the one before, and
up to as long again by chance, so that calls that failed together do not return together."""

_ROUNDS_AT_ONCE = 8
"""A batch has rows for so many rounds of all calls, so that few wait for the last one."""

_POLL = 0.01
"""Seconds between two looks at what may be started or is late."""


@dataclass(frozen=True)
class Usage:
    """What a remote model was used for.

    Attributes
    ----------
    calls : int
        Calls that were started, repetitions included.
    retries : int
        Calls that were repetitions.
    rows : int
        Rows that were answered.
    remembered_rows : int
        Rows whose answer was known from `memory`, or equals that of another row of the batch.
    seconds : float
        Seconds of all calls in sum; of calls at the same time, each counts.
    money : float
        What the answered rows cost.
    """

    calls: int = 0
    retries: int = 0
    rows: int = 0
    remembered_rows: int = 0
    seconds: float = 0.0
    money: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        """Return what two models were used for."""
        return Usage(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: Usage) -> Usage:
        """Return what was used after another time."""
        return Usage(*(mine - its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        """State the counts that are not 0."""
        parts = [f"{self.calls} calls"]
        parts += [f"{self.retries} repeated"] if self.retries else []
        parts += [f"{self.remembered_rows} rows remembered"] if self.remembered_rows else []
        return ", ".join(parts + ([f"cost {self.money:.4g}"] if self.money else []))


@dataclass(eq=False, repr=False)
class RemoteModel:
    """A model whose calls are slow, limited, or fail now and then.

    It takes the place of the model in every explainer and attribution, and returns what `call`
    returns for the same rows. Batches are divided into calls of a few rows, many of which run at
    the same time; explainers make their batches large enough for that.

    Parameters
    ----------
    call : callable
        The model: a function or a coroutine function of the same arguments. Arguments with an entry
        for each row are divided, others are passed as they are. It returns one entry for each row.
    concurrency : int
        Calls in flight at the same time, whatever the number of batches and threads. Calls that
        are late by `timeout` count until they end.
    rows_per_call : int
        Rows in one call at most.
    retries : int
        How often a call that failed is repeated at most. The first wait is .25 to .5 s; each later
        one is twice as long, up to 30 to 60 s. After an error with `Retry-After`, no call starts
        before that time.
    retry_on : type of Exception, or tuple of types
        The errors after which a call is repeated. The default has those of connections, of time
        limits and of `urllib`; name those of your client, such as `httpx.TransportError`. An error
        with an HTTP status is repeated if that is 408, 425, 429, or 500 and above, and no other.
        Truncated answers, wrong numbers of entries, shapes that differ from most, and numbers that
        are not finite are repeated always, the last two for the rows that have them.
    rate : float, optional
        Calls that may start in a second, over all threads of this process.
    timeout : float, optional
        Seconds after which a call counts as failed by a `TimeoutError`. It cannot be stopped; an
        answer that comes later is used and kept.
    cost : float, optional
        What an answered row costs.
    memory : path, optional
        A file, or a folder for it, that keeps the outputs of all rows that were answered, so that a
        call that is repeated, or asks for more evaluations of the same rows, pays only for what is
        new. It holds numbers, no code, and a checksum of each row. Processes that use it at once
        take turns by batches, so that none pays for what another one has asked for. It is for
        models that answer the same question always alike: others would seem to.
    name : str, optional
        The model and its version; needed with `memory`, in which outputs of other names differ.

    Attributes
    ----------
    usage : Usage
        What was used so far, in this process.

    Raises
    ------
    RemoteCallError
        By a call of the model: a call failed for good. No other call is started then, and those
        that are running are waited for, as long as `timeout`.
    ModelOutputError
        By a call of the model: an answer has a wrong number of entries or numbers that are not
        finite, as often as it was asked for.

    Notes
    -----
    Calls run at the same time without workers: one process explains whatever `n_jobs` is, so that
    limits and counts hold. Ctrl-C ends a call within a second.
    """

    call: Callable[..., Any]
    _: KW_ONLY
    concurrency: int = 16
    rows_per_call: int = 8
    retries: int = 3
    retry_on: type[Exception] | tuple[type[Exception], ...] = OSError
    rate: float | None = None
    timeout: float | None = None
    cost: float | None = None
    memory: str | PathLike[str] | None = None
    name: str | None = None

    derivative_obstacle: ClassVar[str] = "the model is a RemoteModel"

    def __post_init__(self) -> None:
        if not callable(self.call):
            raise InvalidArgumentTypeError(
                f"call must be a function or a coroutine function; got {type(self.call).__name__}."
            )
        types = self.retry_on if isinstance(self.retry_on, tuple) else (self.retry_on,)
        if not all(isinstance(error, type) and issubclass(error, Exception) for error in types):
            raise InvalidArgumentTypeError(
                f"retry_on must be a type of Exception, or a tuple of types; got {self.retry_on!r}."
            )
        for name, minimum in {"concurrency": 1, "rows_per_call": 1, "retries": 0}.items():
            setattr(self, name, checked_count(name, getattr(self, name), minimum=minimum))
        for name in ("rate", "timeout", "cost"):
            if getattr(self, name) is not None:
                setattr(self, name, checked_positive(name, getattr(self, name)))
        self._memory: _Memory | None = None
        if self.memory is not None:
            if not isinstance(self.name, str) or not self.name:
                raise InvalidArgumentError(
                    "memory= needs name=, the model and its version as a text, so that the outputs "
                    f"of another model are not taken for those of this one; got {self.name!r}."
                )
            self._memory = _Memory(checked_path("memory", self.memory), self.name)
        self.usage = Usage()
        self._lock, self._slots = threading.Lock(), threading.Semaphore(self.concurrency)
        self._next_start = self._last_end = time.monotonic()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __reduce__(self) -> Any:
        """Leave locks and counts behind."""
        options = {each.name: getattr(self, each.name) for each in fields(self)}
        return partial(type(self), options.pop("call"), **options), ()

    def __repr__(self) -> str:
        """Name the function and what was used."""
        function = getattr(self.call, "__qualname__", type(self.call).__name__)
        return f"RemoteModel({function}; {self.usage})"

    @property
    def rows_at_once(self) -> int:
        """The rows of a batch that keeps all calls busy."""
        return _ROUNDS_AT_ONCE * self.concurrency * self.rows_per_call

    def __call__(self, *inputs: Any) -> Any:
        """Return the outputs of all rows, in their order.

        Parameters
        ----------
        *inputs : arrays, tensors, frames, lists, or others
            The first has a row for each output.
        """
        n_rows, memory = _n_rows_of(inputs), self._memory
        if memory is None:
            batch = _Batch(inputs, range(n_rows))
            return self._answers(batch, list(batch.keys))
        keys = memory.keys(inputs, n_rows)
        batch = _Batch(inputs, keys)
        batch.know(memory.find(keys))
        first = sorted({key: row for row, key in reversed(list(enumerate(keys)))}.values())
        asked = batch.missing(first)
        if asked:
            with memory.turn():  # another process may have asked for some of them
                batch.know(memory.find([keys[row] for row in asked]))
                asked = batch.missing(asked)
                output = self._answers(batch, asked)
        else:
            output = self._answers(batch, [])
        self._count(remembered_rows=n_rows - len(asked))
        return tensor_beside(inputs[0], output)

    def forget(self, *inputs: Any) -> None:
        """Forget what `memory` holds for some rows; without rows, for all rows and models.

        Parameters
        ----------
        *inputs : arrays, tensors, frames, lists, or others
            The arguments of a call.
        """
        if self._memory is None:
            raise InvalidArgumentError("forget() needs memory=, but this RemoteModel has none.")
        self._memory.forget(self._memory.keys(inputs, _n_rows_of(inputs)) if inputs else None)

    def _answers(self, batch: _Batch, rows: list[int]) -> Any:
        """Return the outputs of a batch, of whose rows some are asked for."""
        for _ in range(self.retries + 1):
            self._ask(batch, rows)
            rows = self._drop_unlike(batch)
            if not rows:
                return _joined([batch.found[key] for key in batch.keys])
        raise ModelOutputError(
            f"call must return entries of one shape; those of rows {rows[:9]} differ from others."
        )

    def _ask(self, batch: _Batch, rows: list[int]) -> None:
        """Find the outputs of rows by calls of a few rows, which are repeated where they fail."""
        start, size = time.monotonic(), self.rows_per_call
        parts = [rows[first : first + size] for first in range(0, len(rows), size)]
        waiting = [(start, 0, part) for part in parts]  # from when on, repetitions, rows
        running: dict[futures.Future[None], tuple[float, int, list[int]]] = {}  # until when, ...
        calls: list[futures.Future[None]] = []  # those that are late, too
        try:
            while waiting or running:
                now = time.monotonic()
                while waiting and waiting[0][0] <= now and len(running) < self.concurrency:
                    missing = batch.missing(waiting[0][2])  # unless late calls have answered
                    if missing and not self._may_start():
                        break
                    _, n_retries, _ = heapq.heappop(waiting)
                    if missing:
                        calls.append(self._started(batch, missing, n_retries > 0))
                        running[calls[-1]] = now + (self.timeout or np.inf), n_retries, missing
                if running:
                    futures.wait(running, _POLL, futures.FIRST_COMPLETED)
                elif waiting:
                    time.sleep(_POLL)
                    idle_since = max(waiting[0][0], self._next_start, self._last_end)
                    if self.timeout and now - idle_since > self.timeout * (self.retries + 1):
                        late = TimeoutError("All calls in flight are late by timeout=.")
                        self._refuse(late, waiting[0][2], waiting[0][1] + 1, len(batch.keys))
                now = time.monotonic()
                for call in [c for c, (end, _, _) in running.items() if c.done() or now > end]:
                    _, n_retries, part = running.pop(call)
                    error: BaseException | None = TimeoutError(
                        f"It took longer than timeout={self.timeout} seconds."
                    )
                    error = call.exception() if call.done() else error
                    if error is not None and (missing := batch.missing(part)):
                        if n_retries == self.retries or not self._is_repeated(error):
                            self._refuse(error, missing, n_retries + 1, len(batch.keys))
                        retry_at = now + self._pause(error, n_retries)
                        heapq.heappush(waiting, (retry_at, n_retries + 1, missing))
        except BaseException as end:  # keep what is about to be answered
            futures.wait(calls, self.timeout if isinstance(end, Exception) else _FIRST_WAIT)
            raise

    def _drop_unlike(self, batch: _Batch) -> list[int]:
        """Forget the outputs of another shape than most, and return their rows."""
        shapes = list(batch.shapes.items())  # late calls may add some
        wanted = Counter(shape for _, shape in shapes).most_common(1)[0][0]
        wrong = {key for key, shape in shapes if shape != wanted}
        if wrong and self._memory is not None:
            self._memory.forget(list(wrong))
        for key in wrong:
            batch.found.pop(key, None)
            batch.shapes.pop(key)
        return list({key: row for row, key in enumerate(batch.keys) if key in wrong}.values())

    def _may_start(self) -> bool:
        """Take a place among the calls in flight, if there is one and the rate allows it."""
        with self._lock:
            now = time.monotonic()
            if now < self._next_start or not self._slots.acquire(blocking=False):
                return False
            self._next_start = now + (1 / self.rate if self.rate else 0.0)
            return True

    def _started(self, batch: _Batch, rows: list[int], is_retry: bool) -> futures.Future[None]:
        """Start a call in a thread of its own, which nothing waits for if it hangs."""
        call: futures.Future[None] = futures.Future()

        def run() -> None:
            error = None
            try:
                self._call(batch, rows, is_retry)
            except BaseException as raised:
                error = raised
            self._last_end = time.monotonic()
            self._slots.release()
            call.set_result(None) if error is None else call.set_exception(error)

        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(run,), daemon=True).start()
        return call

    def _call(self, batch: _Batch, rows: list[int], is_retry: bool) -> None:
        """Ask for some rows, and keep those that are answered."""
        arguments = [_rows_at(value, len(batch.keys), rows) for value in batch.inputs]
        started = time.perf_counter()
        try:
            output = self._finished(self.call(*arguments))
        finally:
            seconds = time.perf_counter() - started
            self._count(calls=1, retries=int(is_retry), seconds=seconds)
        array = _as_array(output, len(rows))
        is_finite = np.ones(len(rows), dtype=bool)
        if array.dtype.kind in "fc":
            is_finite = np.isfinite(array).reshape(len(rows), -1).all(axis=1)
        if self._memory is not None:
            if array.dtype.kind not in "biuf":
                raise ModelOutputError("memory= keeps numbers; call returned others.")
            output = array
        entries = output.iloc if hasattr(output, "iloc") else output
        found = {batch.keys[rows[i]]: entries[i : i + 1] for i in np.flatnonzero(is_finite)}
        if self._memory is not None:
            self._memory.keep(found)
        self._count(rows=len(rows), money=len(rows) * (self.cost or 0.0))
        batch.know(found, array.shape[1:])
        if not is_finite.all():
            raise _UnfitAnswerError(
                f"call returned NaN or an infinite number for row {rows[is_finite.argmin()]}."
            )

    def _finished(self, output: Any) -> Any:
        """Return the output of a coroutine: its loop has a thread, as that of notebooks runs."""
        if not inspect.isawaitable(output):
            return output

        async def awaited() -> Any:
            return await output

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result()

    def _is_repeated(self, error: BaseException) -> bool:
        from http.client import HTTPException

        status, _ = _response_of(error)
        if status is not None:
            return status in (408, 425, 429) or status >= 500
        truncated = (HTTPException, json.JSONDecodeError)
        return isinstance(error, (_UnfitAnswerError, *truncated, self.retry_on))

    def _pause(self, error: BaseException, n_retries: int) -> float:
        """Return the seconds before a repetition; `Retry-After` holds for all calls."""
        allowed = time.monotonic() + _response_of(error)[1]
        with self._lock:
            self._next_start = max(self._next_start, allowed)
        seconds = min(_FIRST_WAIT * 2.0**n_retries, _LONGEST_WAIT)
        return seconds * float(np.random.default_rng().uniform(1, 2))

    def _refuse(self, error: BaseException, part: list[int], tries: int, n_rows: int) -> None:
        """Raise the error of a call, with what is kept."""
        if isinstance(error, (ModelOutputError, CheckpointError)):
            raise error
        advice = "With memory= and name=, a repeated call pays only for what is missing."
        if self._memory is not None:
            kept = f"What was answered is kept in {self._memory.path}"
            advice = f"{kept}: repeat the call, and only the rest is paid for."
        name, times = type(error).__name__, f" {tries} times" if tries > 1 else ""
        if not self._is_repeated(error) and _response_of(error)[0] is None:
            advice += f" retry_on={name} would repeat such calls."
        where = f"rows {part[0]} to {part[-1]} of {n_rows}"
        message = f"The call for {where} failed{times}: {name}: {error}. {advice}"
        raise RemoteCallError(message) from error

    def _count(self, **amounts: Any) -> None:
        with self._lock:
            self.usage += Usage(**amounts)


class _UnfitAnswerError(ModelOutputError):
    """An answer that may be right when it is asked for again."""


@dataclass
class _Batch:
    """The arguments of one call of the model, the keys of its rows, and the outputs by keys."""

    inputs: Sequence[Any]
    keys: Sequence[Any]
    found: dict[Any, Any] = field(default_factory=dict)
    shapes: dict[Any, tuple[int, ...]] = field(default_factory=dict)

    def know(self, found: Mapping[Any, Any], shape: tuple[int, ...] | None = None) -> None:
        """Take outputs, of one shape or arrays, each with an axis of one row."""
        self.shapes.update(
            {k: row.shape[1:] if shape is None else shape for k, row in found.items()}
        )
        self.found.update(found)

    def missing(self, rows: Sequence[int]) -> list[int]:
        """Return the rows without an output."""
        return [row for row in rows if self.keys[row] not in self.found]


@dataclass
class _Memory:
    """A database of outputs that were paid for, by digests of the model's name and of rows.

    Whatever asks for the same row finds its output: the same call after it was interrupted, a
    larger budget, another estimator, another process.
    """

    path: Path
    name: str
    _held: dict[bytes, bytes] = field(default_factory=dict, init=False, repr=False)
    _patience: float = field(default=_LONGEST_WAIT, init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the file, or refuse one of others."""
        if self.path.is_dir():
            self.path /= "outputs.db"
        with self._database() as database:
            tables = database.execute("SELECT name FROM sqlite_master").fetchall()
            if set(tables) - {(b"answers",)}:
                raise CheckpointError(
                    f"memory={str(self.path)!r} is a database of another program. Choose another "
                    "file."
                )
            database.execute("PRAGMA journal_mode = WAL")
            database.execute(
                "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer BLOB) "
                "WITHOUT ROWID"
            )

    def turn(self) -> Any:
        """Return the lock of a batch; the system opens it however the process ends."""
        from filelock import FileLock

        return FileLock(f"{self.path}.lock")

    def keys(self, inputs: Sequence[Any], n_rows: int) -> list[bytes]:
        """Return a digest of each row, with what all rows share."""
        try:
            divided = [value for value in inputs if _length_of(value) == n_rows]
            shared = [None if _length_of(value) == n_rows else value for value in inputs]
            question = _content([self.name, *shared])
            rows = zip(*map(_row_contents, divided), strict=True)
            return [_digest(question, *row) for row in rows]
        except InvalidArgumentTypeError as error:
            raise InvalidArgumentTypeError(
                "memory= recognises rows by their content, which must be numbers, texts or times; "
                f"got {error}. Convert the others inside call=, or leave memory= out."
            ) from error

    def find(self, keys: Sequence[bytes]) -> dict[bytes, npt.NDArray[Any]]:
        """Return the outputs that are known, each with an axis of one row; drop damaged ones."""
        if self._held:
            self.keep({})
        kept, known = {key: self._held[key] for key in keys if key in self._held}, {}
        with self._database() as database:
            for key in keys:
                query = "SELECT key, answer FROM answers WHERE key = ?"
                kept.update(database.execute(query, (key,)))
            for key, answer in kept.items():
                checksum, content = answer[:_N_BYTES], answer[_N_BYTES:]
                if checksum == _digest(key, content):
                    head, _, numbers = content.partition(b"\n")
                    dtype, *sizes = head.decode().split()
                    known[key] = np.frombuffer(numbers, dtype).reshape(1, *map(int, sizes))
            damaged = [(key,) for key in kept.keys() - known.keys()]
            if damaged:
                warn_user(
                    f"{len(damaged)} outputs in memory={str(self.path)!r} are damaged; they are "
                    "asked for again."
                )
                database.executemany("DELETE FROM answers WHERE key = ?", damaged)
        return known

    def keep(self, outputs: Mapping[bytes, npt.NDArray[Any]]) -> None:
        """Keep outputs; without room on the disk, this process holds them until there is some."""
        for key, rows in outputs.items():
            head = " ".join([rows.dtype.str, *map(str, rows.shape[1:])])
            content = head.encode() + b"\n" + rows.tobytes()
            self._held[key] = _digest(key, content) + content
        held = list(self._held.items())
        try:
            with self._database() as database, database:
                database.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", held)
            for key, _ in held:
                self._held.pop(key, None)
            self._patience = _LONGEST_WAIT
        except CheckpointError as error:
            self._patience = _POLL
            if not isinstance(error.__cause__, sqlite3.OperationalError):
                raise
            warn_user(
                f"{error} Outputs are held by this process until they can be written; when it ends "
                "before, a repeated call pays for them again."
            )

    def forget(self, keys: Sequence[bytes] | None) -> None:
        """Forget some outputs, or all."""
        with self._database() as database, database:
            if keys is None:
                self._held.clear()
                database.execute("DELETE FROM answers")
            else:
                self._held = {key: its for key, its in self._held.items() if key not in keys}
                database.executemany("DELETE FROM answers WHERE key = ?", [(k,) for k in keys])

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, self._patience)) as database:
                database.text_factory = bytes  # one bit makes a text of bytes
                database.execute("PRAGMA synchronous = NORMAL")
                yield database
                database.commit()
        except sqlite3.Error as error:
            advice = "Is the disk full, or another process stopped that uses it?"
            raise CheckpointError(
                f"memory={str(self.path)!r} cannot be used: {error}. {advice}"
            ) from error


def _response_of(error: BaseException) -> tuple[int | None, float]:
    """Return the HTTP status and the seconds of `Retry-After`, for errors of all usual clients."""
    from email.utils import parsedate_to_datetime

    statuses, seconds = [], 0.0
    for holder in (error, getattr(error, "response", None)):
        statuses += [getattr(holder, name, None) for name in ("status_code", "status", "code")]
        headers: Any = getattr(holder, "headers", None)
        text = headers.get("Retry-After") if hasattr(headers, "get") else None
        if text and text.isdigit():
            seconds = float(text)
        elif text:
            with suppress(ValueError):
                seconds = parsedate_to_datetime(text).timestamp() - time.time()
    known = [status for status in statuses if isinstance(status, int) and status >= 400]
    return (known[0] if known else None), max(seconds, 0.0)


def _length_of(value: Any) -> int | None:
    """Return the number of entries of an argument; None if it has none, or is a text."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    return len(value) if isinstance(value, (list, tuple)) else None


def _n_rows_of(inputs: Sequence[Any]) -> int:
    n_rows = _length_of(inputs[0]) if inputs else None
    if n_rows is None:
        found = type(inputs[0]).__name__ if inputs else "nothing"
        raise InvalidArgumentTypeError(
            f"A RemoteModel takes rows as its first argument, such as an array; got {found}."
        )
    return n_rows


def _rows_at(value: Any, n_rows: int, rows: list[int]) -> Any:
    """Return an argument at some rows, or as it is if it has no entry for each row."""
    if _length_of(value) != n_rows:
        return value
    if isinstance(value, (list, tuple)):
        return type(value)([value[row] for row in rows])
    return value.iloc[rows] if hasattr(value, "iloc") else value[rows]


def _joined(outputs: list[Any]) -> Any:
    """Return the outputs of all rows together."""
    first, pandas = outputs[0], sys.modules.get("pandas")  # whoever has a frame has loaded it
    if is_tensor(first):
        return sys.modules["torch"].cat(outputs)
    if pandas is not None and isinstance(first, (pandas.DataFrame, pandas.Series)):
        return pandas.concat(outputs)
    if isinstance(first, (list, tuple)):
        return [entry for output in outputs for entry in output]
    return np.concatenate(outputs)


def _as_array(output: Any, n_rows: int) -> npt.NDArray[Any]:
    """Return an output as an array of numbers, or of objects that stand for anything else."""
    length = len(output) if hasattr(output, "__len__") else None
    if length != n_rows:
        found = "no sequence" if length is None else f"{length} entries"
        raise _UnfitAnswerError(
            f"call must return one entry for each row; it returned {found} for {n_rows} rows."
        )
    try:
        array = np.asarray(array_of(output))
        return array.astype(float) if array.dtype.kind == "O" else array  # None, as of JSON
    except (TypeError, ValueError):  # texts, or entries of unlike lengths
        return np.empty(n_rows, dtype=object)


_N_BYTES = blake2s().digest_size


def _digest(*parts: bytes) -> bytes:
    digest = blake2s()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()


def _content(value: Any) -> bytes:
    """Return bytes that are equal only where the types and the values are."""
    if is_tensor(value):
        return str(value.dtype).encode() + _content(array_of(value))
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind in "biufcmM":
            return f"{value.dtype.str} {value.shape} ".encode() + value.tobytes()
        value = value.tolist()  # types of texts hold the length of the longest, another row's
    if isinstance(value, (list, tuple)):
        return _digest(b"sequence", *map(_content, value))
    if isinstance(value, frozenset):
        return _digest(b"set", *sorted(map(_content, value)))
    if isinstance(value, Mapping):
        return _digest(b"mapping", *sorted(_content(item) for item in value.items()))
    plain = (str, bytes, int, float, complex, date, timedelta, type(None))
    if isinstance(value, plain) or type(value).__name__ in ("NAType", "Decimal"):
        return f"{type(value).__name__} {value!r}".encode("utf-8", "surrogatepass")
    raise InvalidArgumentTypeError(type(value).__name__)


def _row_contents(value: Any) -> list[bytes]:
    """Return the content of each row, with the names and the types of columns."""
    head: list[Any] = []
    if hasattr(value, "iloc"):
        types = value.dtypes if hasattr(value, "columns") else [value.dtype]
        head = [*getattr(value, "columns", []), *map(str, types)]
        value = value.to_numpy(dtype=object).reshape(len(value), -1)
    elif is_tensor(value):
        head, value = [str(value.dtype)], array_of(value)
    elif scipy.sparse.issparse(value):
        value = value.toarray()
    return [_content(head) + _content(row) for row in value]

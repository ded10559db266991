"""Models behind a network: many calls at once, tried again where they fail, and paid for once."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import os
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent import futures
from contextlib import nullcontext, suppress
from dataclasses import KW_ONLY, astuple, dataclass, field, fields
from functools import partial
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .answer_memory import LONGEST_WAIT, N_SHARED, AnswerMemory, length_of, with_entries_of_rows
from .arguments import checked_count, checked_path, checked_positive
from .errors import (
    CheckpointError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    NonFiniteValueError,
    RemoteCallError,
)
from .torch_support.tensor_arrays import array_of, is_tensor, tensor_beside

_FIRST_WAIT = 0.25
"""Seconds before the first repetition. Each wait is twice the one before, up to `LONGEST_WAIT`, and
up to as long again by chance, so that calls that failed together do not return together."""

_ROUNDS_AT_ONCE = 8
"""A batch has rows for so many rounds of all calls, so that few wait for the last one."""

_POLL = 0.1
"""Seconds between two looks for Ctrl-C."""


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
        for each row are divided, beside tensors only tensors; others are passed as they are. It
        returns one entry for each row.
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
        self._memory: AnswerMemory | None = None
        if self.memory is not None:
            if not isinstance(self.name, str) or not self.name:
                raise InvalidArgumentError(
                    "memory= needs name=, a text with the model and its version; got "
                    f"{self.name!r}. It keeps the outputs of different models apart."
                )
            self._memory = AnswerMemory(checked_path("memory", self.memory), self.name)
        self.usage, self._lock = Usage(), threading.Lock()
        self._process, self._next_start = 0, 0.0
        self._shapes: dict[bytes, Any] = {}

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
        if not n_rows:
            raise InvalidArgumentError("A RemoteModel takes at least one row; got none.")
        if memory is None:
            return self._outputs(_Batch(inputs, range(n_rows)))
        batch = _Batch(inputs, memory.keys(inputs, n_rows))
        batch.found |= memory.find(batch.keys)
        with memory.turn() if batch.missing() else nullcontext():
            # Another process may have asked for some of them meanwhile.
            batch.found |= memory.find([batch.keys[row] for row in batch.missing()])
            self._count(remembered_rows=n_rows - len(batch.missing()))
            return tensor_beside(inputs[0], self._outputs(batch))

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

    def _outputs(self, batch: _Batch) -> Any:
        """Return the outputs of all rows; ask for those that are missing, or unlike the others."""
        for _ in range(self.retries + 1):
            if batch.missing():
                self._finish(self._ask(batch))
            unlike = batch.drop_unlike()
            if not unlike:
                self._compare(batch)
                return _joined([batch.found[key] for key in batch.keys])
            if self._memory is not None:
                self._memory.forget(unlike)
        raise ModelOutputError(
            f"call must return entries of one shape; those of rows {batch.missing()[:9]} differ "
            "from others."
        )

    def _compare(self, batch: _Batch) -> None:
        """Refuse entries of another shape than in former batches, and keep only those of most."""
        if self._memory is None:
            return
        key = batch.keys[0]
        shape = _as_array(batch.found[key], 1).shape[1:]
        before = self._shapes.setdefault(key[:N_SHARED], shape)
        if shape == before:
            return
        self._shapes.clear()
        if self._memory.forget_unlike(key):
            raise ModelOutputError(
                f"call must return entries of one shape; it returned entries of the shape {before} "
                f"first, and {shape} later. The memory has forgotten those that fewer rows have: "
                "repeat the call."
            )

    def _finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Finish some work in the loop that starts all calls, which has a thread of its own."""
        with self._lock:
            if self._process != os.getpid():  # a fork has no thread
                self._process, self._loop = os.getpid(), asyncio.new_event_loop()
                self._running = set[asyncio.Task[None]]()
                self._door, self._disk = asyncio.Lock(), asyncio.Lock()
                threading.Thread(target=_run, args=(self._loop,), daemon=True).start()
                end = weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)
                end.atexit = False
        task = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            while not futures.wait([task], _POLL).done:  # Windows reads no Ctrl-C in longer waits
                pass
        except BaseException:
            task.cancel()
            time.sleep(_FIRST_WAIT)  # keep what is about to be answered
            raise
        task.result()

    async def _ask(self, batch: _Batch) -> None:
        """Find the missing outputs by calls of a few rows each."""
        rows, size = batch.missing(), self.rows_per_call
        try:
            async with asyncio.TaskGroup() as group:
                for first in range(0, len(rows), size):
                    group.create_task(self._ask_part(batch, rows[first : first + size]))
        except ExceptionGroup as errors:
            if self._running:  # whose answers are paid for
                await asyncio.wait(self._running, timeout=self.timeout)
            raise errors.exceptions[0] from errors.exceptions[0].__cause__

    async def _ask_part(self, batch: _Batch, part: list[int]) -> None:
        """Find the outputs of a few rows, by calls that are repeated where they fail."""
        for n_tries in range(1, self.retries + 2):
            try:
                async with self._door:  # in the order in which they came
                    await self._permission()
                    part = batch.missing(part)  # unless late calls have answered
                    if not part:
                        return
                    self._next_start = time.monotonic() + (1 / self.rate if self.rate else 0.0)
                    call = asyncio.create_task(self._call(batch, part, n_tries > 1))
                    self._running.add(call)
                    call.add_done_callback(self._end)
                await asyncio.wait_for(asyncio.shield(call), self.timeout)
                return
            except Exception as error:
                part = batch.missing(part)
                if not part:
                    return
                if n_tries > self.retries or not self._is_repeated(error):
                    self._refuse(error, part, n_tries, len(batch.keys))
                allowed = time.monotonic() + _response_of(error)[1]
                self._next_start = max(self._next_start, allowed)  # of all calls
                seconds = min(_FIRST_WAIT * 2.0 ** (n_tries - 1), LONGEST_WAIT)
            await asyncio.sleep(seconds * float(np.random.default_rng().uniform(1, 2)))

    async def _permission(self) -> None:
        """Wait until another call may start."""
        patience = self.timeout and self.timeout * (self.retries + 1)
        while len(self._running) >= self.concurrency:
            first = asyncio.FIRST_COMPLETED
            done, _ = await asyncio.wait(self._running, timeout=patience, return_when=first)
            if not done:
                raise RemoteCallError(
                    f"No call can start: all in flight are late by timeout={self.timeout} seconds. "
                    "Pass a larger timeout= or concurrency=."
                )
        while (seconds := self._next_start - time.monotonic()) > 0:
            await asyncio.sleep(seconds)

    def _end(self, call: asyncio.Task[None]) -> None:
        """Forget a call, and its error: another one may have ended the batch by then."""
        self._running.discard(call)
        if not call.cancelled():
            call.exception()

    async def _call(self, batch: _Batch, rows: list[int], is_retry: bool) -> None:
        """Ask for some rows, and keep those that are answered, however late."""
        are_divided = with_entries_of_rows(batch.inputs, len(batch.keys))
        arguments = [
            _rows_at(value, rows) if is_divided else value
            for value, is_divided in zip(batch.inputs, are_divided, strict=True)
        ]
        started = time.perf_counter()
        self._count(calls=1, retries=int(is_retry))
        try:
            output = await _in_thread(self.call, arguments)
            if inspect.isawaitable(output):
                output = await output
        except BaseException as error:
            if isinstance(error, Exception):
                raise
            raise RuntimeError(repr(error)) from error  # others end the loop, or nothing
        finally:
            self._count(seconds=time.perf_counter() - started)
        array = _as_array(output, len(rows))
        is_number = ~np.ma.getmaskarray(output if np.ma.isMA(output) else array)
        if array.dtype.kind in "fc":
            is_number &= np.isfinite(array)
        is_finite = is_number.reshape(len(rows), -1).all(axis=1)
        if self._memory is not None:
            if array.dtype.kind not in "biuf":
                raise ModelOutputError("memory= keeps numbers; call returned others.")
            output = array
        copied = getattr(output, "clone", None) or getattr(output, "copy", None)
        output = copied() if copied else output  # the next call may use its memory
        entries = output.iloc if hasattr(output, "iloc") else output
        found = {batch.keys[rows[i]]: entries[i : i + 1] for i in np.flatnonzero(is_finite)}
        if self._memory is not None:
            self._memory.hold(found)
            async with self._disk:  # whoever is next writes for all that wait
                if found.keys() & self._memory.held.keys():
                    await asyncio.to_thread(self._memory.write)
        self._count(rows=len(rows), money=len(rows) * (self.cost or 0.0))
        batch.found |= found
        if not is_finite.all():
            raise NonFiniteAnswerError(
                "call returned NaN or an infinite number, or one that is masked, for row "
                f"{rows[is_finite.argmin()]}."
            )

    def _is_repeated(self, error: BaseException) -> bool:
        from http.client import HTTPException

        status, _ = _response_of(error)
        if status is not None:
            return status in (408, 425, 429) or status >= 500
        truncated = (HTTPException, json.JSONDecodeError)
        return isinstance(error, (_UnfitAnswerError, *truncated, self.retry_on))

    def _refuse(self, error: Exception, part: list[int], n_tries: int, n_rows: int) -> None:
        """Raise the error of a call, with what is kept."""
        if isinstance(error, (ModelOutputError, CheckpointError, RemoteCallError)):
            raise error
        advice = "With memory= and name=, a repeated call pays only for what is missing."
        if self._memory is not None:
            kept = f"What was answered is kept in {self._memory.path}"
            advice = f"{kept}: repeat the call, and only the rest is paid for."
        name, times = type(error).__name__, f" {n_tries} times" if n_tries > 1 else ""
        if not self._is_repeated(error) and _response_of(error)[0] is None:
            advice += f" retry_on={name} would repeat such calls."
        where = f"rows {part[0]} to {part[-1]} of {n_rows}"
        late = f"no answer came within timeout={self.timeout} seconds"
        text = str(error) or (late if isinstance(error, TimeoutError) else "without a message")
        message = f"The call for {where} failed{times}: {name}: {text}. {advice}"
        raise RemoteCallError(message) from error

    def _count(self, **amounts: Any) -> None:
        with self._lock:
            self.usage += Usage(**amounts)


class _UnfitAnswerError(ModelOutputError):
    """An answer that may be right when it is asked for again."""


class NonFiniteAnswerError(_UnfitAnswerError, NonFiniteValueError):
    """An answer without a number."""


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _in_thread(function: Callable[..., Any], arguments: Sequence[Any]) -> asyncio.Future[Any]:
    """Call a function in a thread of its own, which nothing waits for if it hangs."""
    result: futures.Future[Any] = futures.Future()

    def run() -> None:
        try:
            result.set_result(function(*arguments))
        except BaseException as error:
            is_taken = not isinstance(error, StopIteration)  # which a coroutine cannot raise
            result.set_exception(error if is_taken else RuntimeError(repr(error)))

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), daemon=True).start()
    return asyncio.wrap_future(result)


@dataclass
class _Batch:
    """The arguments of one call of the model, the keys of its rows, and the outputs by keys.

    Each output has an axis of one row.
    """

    inputs: Sequence[Any]
    keys: Sequence[Any]
    found: dict[Any, Any] = field(default_factory=dict)

    def missing(self, rows: Sequence[int] | None = None) -> list[int]:
        """Return the rows without an output, among some or all; of equal ones the first."""
        rows = range(len(self.keys)) if rows is None else rows
        first = {self.keys[row]: row for row in reversed(rows)}
        return sorted(row for key, row in first.items() if key not in self.found)

    def drop_unlike(self) -> list[Any]:
        """Drop the outputs of another shape than most, and return their keys."""
        found = self.found.copy().items()  # late calls may add some
        shapes = {key: _as_array(output, 1).shape for key, output in found}
        ((wanted, _),) = Counter(shapes.values()).most_common(1)
        unlike = [key for key, shape in shapes.items() if shape != wanted]
        for key in unlike:
            del self.found[key]
        return unlike


def _response_of(error: BaseException) -> tuple[int | None, float]:
    """Return the HTTP status and the seconds of `Retry-After`, for errors of all usual clients."""
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    statuses, seconds = [], 0.0
    for holder in (error, getattr(error, "response", None)):
        statuses += [getattr(holder, name, None) for name in ("status_code", "status", "code")]
        headers: Any = getattr(holder, "headers", None)
        items = headers.items() if hasattr(headers, "items") else ()
        lower = {str(name).lower(): value for name, value in items}
        if (after := lower.get("retry-after")) is not None:
            with suppress(ValueError):
                date = parsedate_to_datetime(str(after))  # without a zone, it is that of HTTP
                date = date if date.tzinfo else date.replace(tzinfo=UTC)
                seconds = date.timestamp() - time.time()
            with suppress(ValueError):
                seconds = float(after)
    known = [status for status in statuses if isinstance(status, int) and status >= 400]
    return (known[0] if known else None), max(seconds, 0.0) if np.isfinite(seconds) else 0.0


def _n_rows_of(inputs: Sequence[Any]) -> int:
    n_rows = length_of(inputs[0]) if inputs else None
    if n_rows is None:
        found = type(inputs[0]).__name__ if inputs else "nothing"
        raise InvalidArgumentTypeError(
            f"A RemoteModel takes rows as its first argument, such as an array; got {found}."
        )
    return n_rows


def _rows_at(value: Any, rows: list[int]) -> Any:
    """Return the entries of an argument for some rows."""
    if isinstance(value, (list, tuple)):
        return type(value)([value[row] for row in rows])
    return value.iloc[rows] if hasattr(value, "iloc") else value[rows]


def _joined(outputs: list[Any]) -> Any:
    """Return the outputs of all rows together."""
    first = outputs[0]
    if is_tensor(first):
        return sys.modules["torch"].cat(outputs)
    if hasattr(first, "iloc"):  # whoever has a frame has loaded pandas
        return sys.modules["pandas"].concat(outputs)
    if isinstance(first, (list, tuple)):
        return [entry for output in outputs for entry in output]
    return np.concatenate(outputs)


def _as_array(output: Any, n_rows: int) -> npt.NDArray[Any]:
    """Return an output as an array of numbers, or of objects that stand for anything else."""
    is_sequence = hasattr(output, "__getitem__") and not isinstance(output, (str, bytes, dict))
    length = len(output) if is_sequence and hasattr(output, "__len__") else None
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

"""A model behind a network: many calls at once, tried again where they fail, and paid for once."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from os import PathLike
from time import monotonic, perf_counter
from typing import Any

import numpy as np

from ..arguments import checked_count, checked_path, checked_positive
from ..array_types import IntArray
from ..errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    RemoteCallError,
    required_packages,
)
from ..model_usage import Usage
from ..torch_support.tensor_arrays import tensor_beside
from .model_rows import joined, n_rows_of, new_rows, parts_of, rows_at
from .paid_outputs import PaidOutputs

_FIRST_WAIT, _LONGEST_WAIT = 0.25, 30.0
"""Seconds before the first and before any later repetition; each wait is twice the one before, and
up to as long again by chance, so that calls that failed together do not return together."""

_ROUNDS_AT_ONCE = 8
"""A batch has rows for so many rounds of all calls, so that few wait for the last one."""


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
        Calls at the same time, whatever the number of batches and threads.
    rows_per_call : int
        Rows in one call at most.
    retries : int
        How often a call that failed is repeated at most. The first wait is .25 to .5 s; each later
        one is twice as long, up to 30 to 60 s.
    retry_on : type of Exception, or tuple of types
        The errors after which a call is repeated. The default has those of connections, of time
        limits and of `urllib`; name those of your client, such as `httpx.TransportError`.
    rate, row_rate : float, optional
        Calls and rows that may start in a second, over all threads of this process.
    timeout : float, optional
        Seconds after which a call counts as failed by a `TimeoutError`. A coroutine is cancelled;
        a function cannot be, and ends unheard.
    cost : float or callable, optional
        What a row costs, or a function that returns what a call cost from its arguments and
        output: `cost(*inputs, output)`.
    memory : path, optional
        A file, or a folder for it, that keeps the outputs of all rows that were answered, so that a
        call that is repeated, or asks for more evaluations of the same rows, pays only for what is
        new. It holds numbers, no code. Several processes may use it at once. It is for models that
        answer the same question always alike: others would seem to.
    name : str, optional
        The model and its version; needed with `memory`, in which outputs of other names differ.
    memory_bytes : int
        The size of the memory from which on the oldest outputs are dropped.

    Attributes
    ----------
    usage : Usage
        What was used so far, in this process.

    Raises
    ------
    RemoteCallError
        By a call of the model: a call failed for good. No other call is started then, and those
        that are running are waited for; with `memory`, what they return is kept.

    Notes
    -----
    Needs tenacity: `pip install 'shapley-ext[remote]'`. Calls run at the same time without workers:
    one process explains whatever `n_jobs` is, so that limits and counts hold.
    """

    derivative_obstacle = "the model is a RemoteModel"

    def __init__(
        self,
        call: Callable[..., Any],
        *,
        concurrency: int = 16,
        rows_per_call: int = 8,
        retries: int = 3,
        retry_on: type[Exception] | tuple[type[Exception], ...] = OSError,
        rate: float | None = None,
        row_rate: float | None = None,
        timeout: float | None = None,
        cost: float | Callable[..., float] | None = None,
        memory: str | PathLike[str] | None = None,
        name: str | None = None,
        memory_bytes: int = 2**30,
    ) -> None:
        with required_packages("RemoteModel needs tenacity", "remote"):
            import tenacity

            del tenacity
        if not callable(call):
            raise InvalidArgumentTypeError(
                f"call must be a function or a coroutine function; got {type(call).__name__}."
            )
        self.call = call
        self.concurrency = checked_count("concurrency", concurrency)
        self.rows_per_call = checked_count("rows_per_call", rows_per_call)
        self.retries = checked_count("retries", retries, minimum=0)
        self.retry_on = _checked_errors(retry_on)
        self.rate = None if rate is None else checked_positive("rate", rate)
        self.row_rate = None if row_rate is None else checked_positive("row_rate", row_rate)
        self.timeout = None if timeout is None else checked_positive("timeout", timeout)
        if cost is not None and not callable(cost):
            cost = checked_positive("cost", cost)
        self.cost = cost
        self.memory: PaidOutputs | None = None
        if memory is not None:
            if not isinstance(name, str) or not name:
                raise InvalidArgumentError(
                    "memory= needs name=, the model and its version as a text, so that the "
                    f"outputs of another model are not taken for those of this one; got {name!r}."
                )
            path = checked_path("memory", memory)
            self.memory = PaidOutputs(path, name, checked_count("memory_bytes", memory_bytes))
        self._start()

    def _start(self) -> None:
        self.usage = Usage()
        self._lock = threading.Lock()
        self._next_start = 0.0
        self._pool: tuple[int, ThreadPoolExecutor] | None = None
        self._loop: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._chance = np.random.default_rng()

    def __getstate__(self) -> dict[str, Any]:
        """Leave threads and counts behind."""
        own = {"usage", "_lock", "_next_start", "_pool", "_loop", "_chance"}
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin with counts of 0."""
        self.__dict__.update(state)
        self._start()

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
        n_rows = n_rows_of(inputs)
        if self.memory is None:
            answers = self._answers(inputs, n_rows, np.arange(n_rows))
            return joined([output for _, output in answers])
        keys = self.memory.keys(inputs, n_rows)
        known = self.memory.find(keys)
        asked = new_rows(keys, known)
        self._count(remembered_rows=n_rows - len(asked))
        for part, output in self._answers(inputs, n_rows, asked, keys):
            known.update(zip((keys[row] for row in part), np.asarray(output), strict=True))
        outputs = np.stack([known[key] for key in keys])
        return tensor_beside(inputs[0], outputs)

    def _answers(
        self, inputs: Sequence[Any], n_rows: int, rows: IntArray, keys: Sequence[bytes] = ()
    ) -> list[tuple[IntArray, Any]]:
        """Return the parts of some rows and their outputs, which are kept under their keys."""
        stop = threading.Event()
        parts = parts_of(rows, self.rows_per_call)

        def answer(part: IntArray) -> Any:
            try:
                output = self._tried(rows_at(inputs, n_rows, part), part, stop)
            except BaseException:
                stop.set()
                raise
            if self.memory is not None:
                output = self.memory.keep([keys[row] for row in part], output)
            return output

        futures = [
            self._threads.submit(contextvars.copy_context().run, answer, part) for part in parts
        ]
        try:
            concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
        finally:  # after an error or Ctrl-C: start nothing more, and keep what was paid for
            if not all(future.done() for future in futures):
                stop.set()
                for future in futures:
                    future.cancel()
                concurrent.futures.wait(futures)
        failed = [(f.exception(), p) for f, p in zip(futures, parts, strict=True) if _failed(f)]
        if failed:
            self._refuse(*failed[0], n_rows)
        return [(part, future.result()) for part, future in zip(parts, futures, strict=True)]

    def _refuse(self, error: BaseException | None, part: IntArray, n_rows: int) -> None:
        """Raise the error of a call, with what is kept."""
        if isinstance(error, ModelOutputError):
            raise error
        tries = self.retries + 1 if isinstance(error, self.retry_on) else 1
        if self.memory is None:
            advice = "With memory= and name=, a repeated call pays only for what is missing."
        else:
            advice = (
                f"What was answered is kept in {self.memory.path}: repeat the call, and only the "
                "rest is paid for."
            )
        how_often = "" if tries == 1 else f" {tries} times"
        error_type = type(error).__name__
        raise RemoteCallError(
            f"The call for rows {part[0]} to {part[-1]} of {n_rows} failed{how_often}: "
            f"{error_type}: {error}. {advice}"
            + ("" if tries > 1 else f" retry_on={error_type} would repeat such calls.")
        ) from error

    def _tried(self, arguments: Sequence[Any], part: IntArray, stop: threading.Event) -> Any:
        """Return the output of one call, which is repeated after the errors of `retry_on`."""
        import tenacity

        def wait(state: tenacity.RetryCallState) -> float:
            seconds = min(_FIRST_WAIT * 2.0 ** (state.attempt_number - 1), _LONGEST_WAIT)
            with self._lock:
                return seconds * float(self._chance.uniform(1, 2))

        for attempt in tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(self.retry_on),
            stop=tenacity.stop_after_attempt(self.retries + 1) | tenacity.stop_when_event_set(stop),
            wait=wait,
            sleep=tenacity.sleep_using_event(stop),
            reraise=True,
        ):
            with attempt:
                self._wait_for_turn(len(part), stop)
                if stop.is_set():
                    raise concurrent.futures.CancelledError
                n_retries = int(attempt.retry_state.attempt_number > 1)
                started = perf_counter()
                try:
                    output = self._answered(arguments)
                finally:
                    seconds = perf_counter() - started
                    self._count(calls=1, retries=n_retries, seconds=seconds)
        _check_length(output, len(part))
        money = self.cost
        if callable(money):
            self._count(rows=len(part), money=float(money(*arguments, output)))
        else:
            self._count(rows=len(part), money=(money or 0.0) * len(part))
        return output

    def _answered(self, arguments: Sequence[Any]) -> Any:
        """Return the output of a call; a coroutine runs in a loop of our own."""
        if self.timeout is not None and not inspect.iscoroutinefunction(self.call):
            return _in_time(lambda: self._finished(self.call(*arguments)), self.timeout)
        return self._finished(self.call(*arguments))

    def _finished(self, output: Any) -> Any:
        if not inspect.isawaitable(output):
            return output

        async def awaited() -> Any:
            return await output

        return _result_in_time(
            asyncio.run_coroutine_threadsafe(awaited(), self._event_loop), self.timeout
        )

    def _wait_for_turn(self, n_rows: int, stop: threading.Event) -> None:
        """Wait until the rates allow another call of so many rows."""
        pause = max(1 / self.rate if self.rate else 0.0, n_rows / (self.row_rate or np.inf))
        if pause:
            with self._lock:
                now = monotonic()
                start = max(now, self._next_start)
                self._next_start = start + pause
            stop.wait(start - now)

    def _count(self, **amounts: Any) -> None:
        with self._lock:
            self.usage += Usage(**amounts)

    @property
    def _threads(self) -> ThreadPoolExecutor:
        """The threads of all calls; those of a forked process are its own."""
        with self._lock:
            if self._pool is None or self._pool[0] != os.getpid():
                self._pool = os.getpid(), ThreadPoolExecutor(self.concurrency, "RemoteModel")
            return self._pool[1]

    @property
    def _event_loop(self) -> asyncio.AbstractEventLoop:
        """A loop in a thread of its own, so that it works in notebooks, whose loop is running."""
        with self._lock:
            if self._loop is None or self._loop[0] != os.getpid():
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, daemon=True, name="RemoteModel").start()
                self._loop = os.getpid(), loop
            return self._loop[1]


def _failed(future: Future[Any]) -> bool:
    """Return whether a call failed by itself."""
    if future.cancelled():
        return False
    return not isinstance(future.exception(), (type(None), concurrent.futures.CancelledError))


def _checked_errors(errors: Any) -> tuple[type[Exception], ...]:
    together = errors if isinstance(errors, tuple) else (errors,)
    if not all(isinstance(error, type) and issubclass(error, Exception) for error in together):
        raise InvalidArgumentTypeError(
            f"retry_on must be a type of Exception, or a tuple of types; got {errors!r}."
        )
    return together


def _check_length(output: Any, n_rows: int) -> None:
    length = len(output) if hasattr(output, "__len__") else None
    if length != n_rows:
        found = "no sequence" if length is None else f"{length} entries"
        raise ModelOutputError(
            f"call must return one entry for each row; it returned {found} for {n_rows} rows."
        )


def _in_time(function: Callable[[], Any], seconds: float) -> Any:
    """Return the result of a function that runs in a thread of its own."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()  # it cannot be cancelled

    def run() -> None:
        try:
            result = function()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), daemon=True).start()
    return _result_in_time(future, seconds)


def _result_in_time(future: Future[Any], seconds: float | None) -> Any:
    try:
        return future.result(seconds)
    except TimeoutError as error:
        if future.done():  # the call itself raised it
            raise
        future.cancel()
        raise TimeoutError(f"The call took longer than timeout={seconds:g} seconds.") from error

"""A stand-in for a model: it counts what a call would ask the model for, and asks nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from ..array_types import FloatArray, IntArray
from ..errors import InvalidArgumentTypeError, ModelOutputError
from ..model_usage import Usage
from ..torch_support.tensor_arrays import array_of, is_tensor, tensor_beside
from .model_rows import hashes_of_rows, keys_of_rows, n_rows_of, new_rows, parts_of, rows_at
from .remote_model import RemoteModel

_FACTS = (
    "derivative_obstacle",
    "is_in_training_mode",
    "max_input_bytes",
    "rounding",
    "rows_at_once",
)
"""What the games of both hosts ask a model for, beside its outputs."""

_PHASE = np.sqrt(2)
"""Irrational, so that the outputs of a row differ, and none is a whole number."""


class StandIn:
    """Answers with made-up numbers, the same for the same row, and counts calls and rows.

    The numbers lie between 0 and 1, so that every link takes them; several of a row sum to 1.

    Parameters
    ----------
    model : callable
        The model that it stands for. A `RemoteModel` divides rows into calls, and knows what its
        memory holds already.
    is_measured : bool
        Whether to ask the model once, for the shape of its outputs and for its speed.

    Attributes
    ----------
    usage : Usage
        What the model would be used for; without seconds and money.
    """

    def __init__(self, model: Callable[..., Any], is_measured: bool) -> None:
        self.model = model
        self.remote = model if isinstance(model, RemoteModel) else None
        self.memory = None if self.remote is None else self.remote.memory
        for name in _FACTS:
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        self._must_measure = is_measured
        self._shape: tuple[int, ...] = ()
        self._seconds_of_row = np.nan
        self.restart()

    def restart(self) -> None:
        """Count from 0 for another call."""
        self.usage = Usage()
        self._n_rounds = 0
        self._answered: set[bytes] = set()

    def __call__(self, *inputs: Any) -> Any:
        """Count the rows, and return a made-up output for each."""
        n_rows = n_rows_of(inputs)
        if any(is_tensor(value) and value.requires_grad for value in inputs):
            return self._smooth(inputs[0], n_rows)
        keys = self._keys(inputs, n_rows)
        asked = self._asked(keys)
        if self._must_measure and len(asked):
            self._measure(inputs, n_rows, asked)
            asked = self._asked(keys)  # a memory holds now what was answered
        n_calls = 1
        if self.remote is not None:
            n_calls = len(parts_of(asked, self.remote.rows_per_call))
            self._n_rounds += -(-n_calls // self.remote.concurrency)
            if self.memory is not None:
                self._answered.update(keys)
        self.usage += Usage(n_calls, rows=len(asked), remembered_rows=n_rows - len(asked))
        return tensor_beside(inputs[0], self._made_up(keys))

    @property
    def seconds(self) -> float:
        """The seconds of the calls, as long as those so far took; NaN if there were none.

        Calls of a `RemoteModel` run at the same time, in rounds, and wait for its rates.
        """
        model, usage = self.remote, self.usage
        if model is None:
            return self._seconds_of_row * usage.rows
        if not usage.calls:
            return 0.0
        past = model.usage
        each = past.seconds / past.calls if past.calls else np.nan
        limits = usage.calls / (model.rate or np.inf), usage.rows / (model.row_rate or np.inf)
        return float(np.fmax(self._n_rounds * each, max(limits) or np.nan))

    @property
    def money(self) -> float:
        """What the calls cost; NaN where a function says it and has seen no call."""
        model, n_rows = self.remote, self.usage.rows
        if model is None or model.cost is None or not n_rows:
            return 0.0
        if not callable(model.cost):
            return float(model.cost * n_rows)
        past = model.usage
        return past.money / past.rows * n_rows if past.rows else np.nan

    def _keys(self, inputs: tuple[Any, ...], n_rows: int) -> list[bytes]:
        if self.memory is not None:
            return self.memory.keys(inputs, n_rows)
        hashes = hashes_of_rows(inputs, n_rows)
        if hashes is not None:
            return hashes
        try:
            return keys_of_rows("", inputs, n_rows)
        except InvalidArgumentTypeError as error:
            raise InvalidArgumentTypeError(
                "A plan needs rows of numbers, texts or times, by which it knows equal rows."
            ) from error

    def _asked(self, keys: list[bytes]) -> IntArray:
        """Return the rows that the model would be asked for."""
        if self.memory is None:
            return np.arange(len(keys))
        return new_rows(keys, self.memory.find(keys).keys() | self._answered)

    def _measure(self, inputs: tuple[Any, ...], n_rows: int, asked: IntArray) -> None:
        """Ask the model for one call; a model that is not remote, for all rows of the batch."""
        self._must_measure = False
        if self.remote is not None:
            asked = asked[: self.remote.rows_per_call]
        started = perf_counter()
        output = self.model(*rows_at(inputs, n_rows, asked))
        self._seconds_of_row = (perf_counter() - started) / len(asked)
        shape = np.shape(array_of(output))
        if shape[:1] != (len(asked),):
            raise ModelOutputError(
                f"plan() needs a model that returns one entry for each row; for {len(asked)} rows, "
                f"its output has shape {shape}."
            )
        self._shape = shape[1:]

    def _made_up(self, keys: list[bytes]) -> Any:
        words = np.frombuffer(b"".join(keys), dtype="<u8").reshape(len(keys), -1)[:, :1]
        return self._outputs(np.sin(7 * words / 2.0**64 + self._phases))

    def _smooth(self, values: Any, n_rows: int) -> Any:
        """Return outputs that have derivatives, for methods that take those of the model."""
        torch = sys.modules["torch"]
        flat = values.reshape(n_rows, -1)
        weights = torch.arange(1, flat.shape[1] + 1).to(flat).sqrt()
        numbers = torch.sin(flat * weights).sum(dim=1, keepdim=True)
        return self._outputs(torch.sin(numbers + torch.as_tensor(self._phases).to(flat)))

    @property
    def _phases(self) -> FloatArray:
        """A phase for each output, (K,)."""
        phases: FloatArray = _PHASE * np.arange(int(np.prod(self._shape, dtype=int)))
        return phases

    def _outputs(self, waves: Any) -> Any:
        """Return the outputs, (n, …), made of numbers between -1 and 1, (n, K)."""
        outputs = 0.5 + waves / 4
        if outputs.shape[1] > 1:
            outputs = outputs / outputs.sum(1)[:, None]
        return outputs.reshape(len(waves), *self._shape)


def stand_in_for(model: Any, is_measured: bool) -> Any:
    """Return the stand-in of a model, and a module of it where the model is one."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        return StandIn(model, is_measured)
    from ..torch_support.stand_in_module import StandInModule

    return StandInModule(StandIn(model, is_measured))

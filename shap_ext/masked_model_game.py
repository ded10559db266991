"""Masked rows of a model as cooperative games."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapley_adapters.array_types import (
    BoolArray,
    CoalitionArray,
    FloatArray,
    IntArray,
    ValueArray,
)
from shapley_adapters.batched_evaluation import rows_per_batch
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.value_functions import Reduction

from .links import LinkedAverage
from .models import as_outputs
from .shap_internals import is_identity

if TYPE_CHECKING:
    import torch

    from shapley_adapters.torch_modules import ArrayModule


@dataclass
class TabularGame:
    """Rows whose absent columns take the values of background rows.

    Masks without the masker: its own call keeps state between rows and threads, and multiplies by
    the mask, so that missing values leak.

    Attributes
    ----------
    predict : callable
        The model, of arrays (n, D) dressed by `dress`.
    rows, background : arrays, (R, D) and (B, D)
        Present and absent values, of one type.
    players : array, (D,)
        The player of each column.
    average : LinkedAverage
        How outputs of background rows become one value.
    dress : callable
        Turns (n, D) into what the model takes: another shape, or a DataFrame.
    module : ArrayModule, optional
        The torch module behind `predict`, where derivatives can be taken.
    row_shape : tuple of int
        Shape of one input of the module.
    """

    predict: Callable[[Any], Any]
    rows: npt.NDArray[Any]
    background: npt.NDArray[Any]
    players: IntArray
    average: LinkedAverage
    dress: Callable[[npt.NDArray[Any]], Any]
    module: ArrayModule | None = None
    row_shape: tuple[int, ...] = ()
    linearize_link: bool = True

    def __post_init__(self) -> None:
        if self.linearize_link and not is_identity(self.average.link):
            outputs = as_outputs(self.predict(self.dress(self.background)), len(self.background))
            self.average = self.average.linearized_at(outputs)

    @property
    def n_rows(self) -> int:
        """Number of rows to explain."""
        return len(self.rows)

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.players.max()) + 1

    @property
    def evaluations_per_batch(self) -> int:
        """How many evaluations fill a batch of model rows of bounded memory."""
        device = "cpu" if self.module is None else self.module.device.type
        n_model_rows = rows_per_batch(self.rows.shape[1] * self.rows.itemsize, device)
        return max(1, n_model_rows // len(self.background))

    def active_players(self) -> BoolArray:
        """Tell where a row differs from any background row; missing values equal each other."""
        first = self.background[:1]
        is_constant = _same(self.background, first).all(axis=0)
        differs = ~(_same(self.rows, first) & is_constant)
        active = np.zeros((self.n_rows, self.n_players), dtype=bool)
        row, column = np.nonzero(differs)
        active[row, self.players[column]] = True
        return active

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K), averaged over the background."""
        return self.reduced(rows, coalitions, lambda outputs, _: self.average(outputs))

    def reduced(self, rows: IntArray, coalitions: CoalitionArray, reduce: Reduction) -> ValueArray:
        """Return the values that `reduce` makes of the outputs for the background rows."""
        n_background, n_columns = self.background.shape
        absent = (~coalitions)[:, self.players]
        masked = self.rows[np.repeat(rows, n_background)].reshape(-1, n_background, n_columns)
        np.copyto(masked, self.background, where=absent[:, None])
        joined = masked.reshape(-1, n_columns)
        outputs = as_outputs(self.predict(self.dress(joined)), len(joined))
        return reduce(outputs.reshape(len(rows), n_background, -1), rows)

    # What follows makes this a DifferentiableGame. Derivatives are those of the averaged output
    # itself; a link does not change by much which players interact.

    @property
    def derivative_obstacle(self) -> str | None:
        """Say why there are no derivatives."""
        if self.module is None:
            return "the model is not a torch module"
        if not np.issubdtype(self.rows.dtype, np.floating):
            return f"the rows hold {self.rows.dtype} numbers"
        return None

    def fully_present(self, n_points: int) -> torch.Tensor:
        """Return ones in the module's precision."""
        return self._module().ones(n_points, self.n_players)

    def presence_values(self, rows: IntArray, presence: torch.Tensor) -> torch.Tensor:
        """Return the outputs between background and rows."""
        inputs = self.rows[rows]
        return self._module().between(
            self.background, inputs, self.players, presence, self.row_shape
        )

    def _module(self) -> ArrayModule:
        if self.module is None:
            raise InvalidArgumentTypeError("model must be a torch module to have derivatives.")
        return self.module


@dataclass
class MaskerGame:
    """Rows masked by any masker, one coalition at a time, evaluated together.

    Attributes
    ----------
    predict : callable
        The model, of what the masker returns.
    masker : callable
        Takes a mask and the inputs of one row; returns any number of masked rows.
    inputs : sequence of tuples
        The inputs of each row.
    players : array, (D,)
        The player of each place of the mask.
    average : LinkedAverage
        How the outputs of masked rows become one value.
    """

    predict: Callable[..., Any]
    masker: Callable[..., Any]
    inputs: Sequence[tuple[Any, ...]]
    players: IntArray
    average: LinkedAverage
    linearize_link: bool = True
    evaluations_per_batch: int = 256
    _averages: dict[int, LinkedAverage] = field(default_factory=dict, init=False)

    @property
    def n_rows(self) -> int:
        """Number of rows to explain."""
        return len(self.inputs)

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.players.max()) + 1

    def active_players(self) -> BoolArray:
        """Take all players for active: only the masker knows."""
        return np.ones((self.n_rows, self.n_players), dtype=bool)

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K), each the average over its masked rows."""
        return self.reduced(
            rows, coalitions, lambda outputs, row: self._average(int(row[0]))(outputs)
        )

    def reduced(self, rows: IntArray, coalitions: CoalitionArray, reduce: Reduction) -> ValueArray:
        """Return the values that `reduce` makes of the outputs for the masked rows of each pair."""
        pairs = zip(rows, coalitions[:, self.players], strict=True)
        outputs = self._outputs([(int(row), mask) for row, mask in pairs])
        return np.concatenate(
            [reduce(own[None], rows[place : place + 1]) for place, own in enumerate(outputs)]
        )

    def _outputs(self, pairs: list[tuple[int, npt.NDArray[np.bool_]]]) -> list[FloatArray]:
        """Return the outputs of each pair's masked rows, from one call of the model."""
        masked = [self._masked(row, mask) for row, mask in pairs]
        counts = [len(arguments[0]) for arguments in masked]
        joined = [_concatenated(parts) for parts in zip(*masked, strict=True)]
        outputs = as_outputs(self.predict(*joined), sum(counts))
        return np.split(outputs, np.cumsum(counts)[:-1])

    def _masked(self, row: int, mask: npt.NDArray[np.bool_]) -> tuple[Any, ...]:
        masked = self.masker(mask, *self.inputs[row])
        if not getattr(self.masker, "immutable_outputs", False):
            masked = copy.deepcopy(masked)
        if masked is None:
            raise InvalidArgumentTypeError(
                f"masker {type(self.masker).__name__} returned None instead of masked rows."
            )
        parts = masked if isinstance(masked, tuple) else (masked,)
        for part, own in zip(parts, self.inputs[row], strict=False):
            if np.ndim(own) > 0 and np.ndim(part) == np.ndim(own):
                raise InvalidArgumentError(
                    f"masker must return masked rows, one more dimension than its input's "
                    f"{np.shape(own)}; it returned {np.shape(part)}. Add it by masked[None]."
                )
        return parts

    def _average(self, row: int) -> LinkedAverage:
        if not self.linearize_link or is_identity(self.average.link):
            return self.average
        if row not in self._averages:
            nobody = np.zeros(len(self.players), dtype=bool)
            (outputs,) = self._outputs([(row, nobody)])
            self._averages[row] = self.average.linearized_at(outputs)
        return self._averages[row]


def _same(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> BoolArray:
    """Compare exactly; missing values are the same as each other."""
    if first.dtype != object:
        same_numbers: BoolArray = np.equal(first, second)
        if first.dtype.kind == "f":
            same_numbers |= np.isnan(first) & np.isnan(second)
        return same_numbers
    either, both = pd.isna(first) | pd.isna(second), pd.isna(first) & pd.isna(second)
    same = np.equal(first, second, dtype=object)
    result: BoolArray = np.where(either, both, same).astype(bool)
    return result


def _concatenated(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], pd.DataFrame):
        return pd.concat(parts, ignore_index=True)
    return np.concatenate(parts)

"""Rows masked by background rows as cooperative games."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shapley_adapters.array_types import (
    BoolArray,
    CoalitionArray,
    IntArray,
    ValueArray,
)
from shapley_adapters.batched_evaluation import rows_per_batch
from shapley_adapters.errors import InvalidArgumentTypeError
from shapley_adapters.value_functions import Reduction

from .exact_comparison import same
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
        is_constant = same(self.background, first).all(axis=0)
        differs = ~(same(self.rows, first) & is_constant)
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

"""Rows masked by background rows as cooperative games."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shapley_adapters.array_types import BoolArray, CoalitionArray, IntArray
from shapley_adapters.errors import InvalidArgumentTypeError
from shapley_adapters.games.batch_sizes import BatchBounds
from shapley_adapters.games.evaluation import rows_per_batch
from shapley_adapters.games.fingerprints import fingerprint

from ..inputs.exact_comparison import same
from .masked_table import MaskedTable

if TYPE_CHECKING:
    import torch

    from shapley_adapters.torch_support.array_module import ArrayModule


_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
"""Whole numbers of as many bits, by the bytes of a number."""


def _where(condition: BoolArray, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `np.where(condition, x, y)`, which for random conditions takes several times as long.

    Bits that differ are kept where the condition holds, without a branch for each number, so that
    missing values and signed zeros stay as they are.
    """
    bits = _BITS.get(x.dtype.itemsize)
    if x.dtype.hasobject or x.dtype != y.dtype or bits is None:
        return np.where(condition, x, y)
    y_bits = y.view(bits)
    result: npt.NDArray[Any] = x.view(bits) ^ y_bits
    result *= condition
    result ^= y_bits
    return result.view(x.dtype)


@dataclass(kw_only=True)
class TabularGame(MaskedTable):
    """Rows of arrays, whose absent columns take the values of background rows.

    Masks without the masker: its own call keeps state between rows and threads, and multiplies by
    the mask, so that missing values leak.

    Attributes
    ----------
    module : ArrayModule, optional
        The torch module behind `predict`, where derivatives can be taken.
    row_shape : tuple of int
        Shape of one input of the module.
    """

    module: ArrayModule | None = None
    row_shape: tuple[int, ...] = ()

    @property
    def evaluations_per_batch(self) -> int:
        """How many evaluations fill a batch of model rows of bounded memory."""
        device = "cpu" if self.module is None else self.module.device.type
        n_model_rows = rows_per_batch(self.rows.shape[1] * self.rows.itemsize, device)
        return max(1, n_model_rows // len(self.background))

    @property
    def batch_bounds(self) -> BatchBounds:
        """Between which sizes of batches to choose."""
        row_bytes = self.rows.shape[1] * self.rows.itemsize
        return BatchBounds.of_bytes(row_bytes, len(self.background), max_bytes=self.max_input_bytes)

    def active_players(self) -> BoolArray:
        """Return the players whose columns differ from any background row; NaN equals NaN."""
        first = self.background[:1]
        is_constant = same(self.background, first).all(axis=0)
        differs: BoolArray = ~(same(self.rows, first) & is_constant)
        if np.array_equal(self.players, np.arange(self.n_players)):  # each column is a player
            return differs
        active = np.zeros((self.n_rows, self.n_players), dtype=bool)
        row, column = np.nonzero(differs)
        active[row, self.players[column]] = True
        return active

    def row_fingerprints(self) -> list[bytes]:
        """Return a digest of each row."""
        return [fingerprint(row) for row in self.rows]

    def _masked(self, rows: IntArray, coalitions: CoalitionArray) -> Any:
        present = coalitions.take(self.players, axis=1)
        masked = _where(present[:, None], self.rows.take(rows, axis=0)[:, None], self.background)
        return masked.reshape(-1, self.background.shape[1])

    # The members below make this a DifferentiableGame. Derivatives are those of the averaged output
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
            self.background,
            inputs,
            self.players,
            presence,
            self.row_shape,
            self.background_weights,
        )

    def _module(self) -> ArrayModule:
        if self.module is None:
            raise InvalidArgumentTypeError("model must be a torch module to have derivatives.")
        return self.module

"""Rows of tables, dense or sparse, masked by background rows as cooperative games."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import shap

from shapley_adapters.array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from shapley_adapters.errors import InvalidArgumentTypeError
from shapley_adapters.games.batch_sizes import BatchBounds
from shapley_adapters.games.evaluation import ModelCalls, OutputShape, as_outputs, rows_per_batch
from shapley_adapters.games.fingerprints import fingerprint
from shapley_adapters.games.value_functions import Reduction

from ..argument_types import Table
from ..inputs.datasets import same
from ..inputs.models import GameOfModel, new_calls, new_shape
from .links import LinkedAverage

if TYPE_CHECKING:
    import torch

    from shapley_adapters.torch_support.array_module import ArrayModule


_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
"""Whole numbers of as many bits, by the bytes of a number."""

_BLOCK_BYTES = 2**17
"""Masked rows are made in blocks of this size, so that temporary arrays stay in the cache."""


@dataclass(kw_only=True)
class MaskedTable(GameOfModel):
    """Rows whose absent columns take the values of background rows.

    Attributes
    ----------
    predict : callable
        The model, of tables (n, D) that `to_model_input` has converted.
    rows, background : arrays or sparse matrices in csr form, (R, D) and (B, D)
        Present and absent values, of one type.
    players : array, (D,)
        The player of each column.
    average : LinkedAverage
        How outputs of background rows become one value.
    to_model_input : callable
        Converts (n, D) to the input of the model: another shape, or a DataFrame.
    linearize_link : bool
        Whether background rows are weighted so that additive models stay additive.
    module : ArrayModule, optional
        The torch module behind `predict`, where derivatives can be taken.
    n_rows, n_players, n_backgrounds : int
        Number of rows to explain, of players, and of background rows.
    row_bytes, evaluations_per_batch : int
        Memory that a row of the model's input takes while it is made, and how many evaluations
        fill a batch of model rows of bounded memory.
    """

    predict: Callable[[Any], Any]
    rows: Any
    background: Any
    players: IntArray
    average: LinkedAverage
    to_model_input: Callable[[Any], Any]
    linearize_link: bool = True
    module: ArrayModule | None = None
    n_rows: int = field(init=False)
    n_players: int = field(init=False)
    n_backgrounds: int = field(init=False)
    row_bytes: int = field(default=0, init=False)
    evaluations_per_batch: int = field(init=False)
    output_shape: OutputShape = field(default_factory=new_shape, init=False, repr=False)
    _calls: ModelCalls = field(default_factory=new_calls, init=False, repr=False)

    has_single_outputs = True

    def __post_init__(self) -> None:
        self.n_rows = int(self.rows.shape[0])
        self.n_players = int(self.players.max()) + 1
        self.n_backgrounds = int(self.background.shape[0])
        self.row_bytes = self.row_bytes or int(self.rows.shape[1] * self.rows.dtype.itemsize)
        device = "cpu" if self.module is None else self.module.device.type
        n_efficient = rows_per_batch(self.row_bytes, device)
        self.evaluations_per_batch = max(1, n_efficient // self.n_backgrounds)
        if self.linearize_link and self.average.link is not shap.links.identity:
            self.average = self.average.linearized_at(self._outputs(self.background.copy()))

    @property
    def background_weights(self) -> FloatArray | None:
        """Weight of each background row, 1 in all; None where they are equal."""
        return self.average.background_weights

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K), averaged over the background."""
        outputs = self._outputs(self._masked(rows, coalitions))  # (P·B, K)
        return self.average(outputs.reshape(len(rows), self.n_backgrounds, -1))

    @property
    def batch_bounds(self) -> BatchBounds:
        """Between which sizes of batches to choose."""
        return BatchBounds.from_bytes(
            self.row_bytes,
            self.n_backgrounds,
            max_bytes=self.max_input_bytes,
            rows_at_once=getattr(self.predict, "rows_at_once", None),
        )

    @property
    def has_one_full_value(self) -> bool:
        """Whether the value of all players needs one row of the model."""
        return self.average.link is shap.links.identity

    @property
    def sampling_obstacle(self) -> str:
        """Why the average over a part of the background would not do; "" if it does."""
        return self.average.sampling_obstacle

    def outputs_at(
        self, rows: IntArray, coalitions: CoalitionArray, backgrounds: IntArray
    ) -> ValueArray:
        """Return the outputs, (P, K), each for one background row."""
        outputs = self._outputs(self._masked_at(rows, coalitions, backgrounds))
        return self.average.row_contributions(outputs, backgrounds)

    def _masked_at(self, rows: IntArray, coalitions: CoalitionArray, backgrounds: IntArray) -> Any:
        """Return the masked rows, (P, D), each by one background row."""
        raise NotImplementedError

    def reduced(self, rows: IntArray, coalitions: CoalitionArray, reduce: Reduction) -> ValueArray:
        """Return the values that `reduce` makes of the outputs for the background rows."""
        outputs = self._outputs(self._masked(rows, coalitions))  # (P·B, K)
        return reduce(outputs.reshape(len(rows), self.n_backgrounds, -1), rows)

    def _masked(self, rows: IntArray, coalitions: CoalitionArray) -> Any:
        """Return the masked rows, (P·B, D)."""
        raise NotImplementedError

    def _outputs(self, table: Table) -> ValueArray:
        """Call the model with a table that nothing else uses, because it may write into it."""

        def call(part: slice) -> ValueArray:
            rows = table[part] if self._calls.take_batches else table[part].copy()
            n_rows = int(rows.shape[0])
            return as_outputs(self.predict(self.to_model_input(rows)), n_rows, self.output_shape)

        return np.concatenate(self._calls(call, int(table.shape[0])))


@dataclass(kw_only=True)
class TabularGame(MaskedTable):
    """Rows of arrays, whose absent columns take the values of background rows.

    Masks without the masker: its own call keeps state between rows and threads, and multiplies by
    the mask, so that missing values leak.

    Attributes
    ----------
    row_shape : tuple of int
        Shape of one input of the module.
    """

    row_shape: tuple[int, ...] = ()

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

    def level_columns(self, row: int) -> tuple[npt.NDArray[Any], IntArray] | None:
        """Return the columns, (B + 1, D), of the row and the background, and their players."""
        return np.concatenate([self.rows[row][None], self.background]), self.players

    def _masked(self, rows: IntArray, coalitions: CoalitionArray) -> Any:
        """Return the masked rows, (P·B, D).

        Equals `np.where`, which takes several times as long. Bits that differ from the background
        are kept where a column is present, so that missing values and signed zeros stay as they
        are.
        """
        of_rows, background, players = self.rows, self.background, self.players
        (n_background, n_columns), n_pairs = background.shape, len(rows)
        bits = _BITS.get(of_rows.dtype.itemsize)
        if of_rows.dtype.hasobject or of_rows.dtype != background.dtype or bits is None:
            present = coalitions.take(players, axis=1)[:, None]
            masked = np.where(present, of_rows.take(rows, axis=0)[:, None], background)
            return masked.reshape(-1, n_columns)
        row_bits, background_bits = of_rows.view(bits), background.view(bits)
        masked = np.empty((n_pairs, n_background, n_columns), bits)
        n_of_block = max(1, _BLOCK_BYTES // max(1, masked[:1].nbytes))
        for start in range(0, n_pairs, n_of_block):
            block = slice(start, start + n_of_block)
            present = np.negative(coalitions[block].view(np.int8)).astype(bits)  # all bits, or none
            result = masked[block]
            np.bitwise_xor(row_bits.take(rows[block], axis=0)[:, None], background_bits, out=result)
            result &= present.take(players, axis=1)[:, None]
            result ^= background_bits
        return masked.view(of_rows.dtype).reshape(-1, n_columns)

    def _masked_at(self, rows: IntArray, coalitions: CoalitionArray, backgrounds: IntArray) -> Any:
        present = coalitions.take(self.players, axis=1)
        return np.where(present, self.rows[rows], self.background[backgrounds])

    # Derivatives are those of the averaged output itself; a link does not change by much which
    # players interact.

    @property
    def derivative_obstacle(self) -> str | None:
        """Say why there are no derivatives."""
        if self.module is None:
            return super().derivative_obstacle
        if not np.issubdtype(self.rows.dtype, np.floating):
            return f"the rows hold {self.rows.dtype} numbers"
        return None

    @property
    def has_link(self) -> bool:
        """Whether values are a function of the model's averages."""
        return self.average.link is not shap.links.identity

    def fully_present(self, n_points: int) -> torch.Tensor:
        """Return ones in the module's precision."""
        return self._module().ones(n_points, self.n_players)

    def presence_values(
        self,
        rows: IntArray,
        presence: torch.Tensor,
        reduce: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """Return the outputs between background and rows, averaged or reduced over the former."""
        inputs = self.rows[rows]
        return self._module().between(
            self.background,
            inputs,
            self.players,
            presence,
            self.row_shape,
            self.background_weights,
            reduce,
        )

    def _module(self) -> ArrayModule:
        if self.module is None:
            raise InvalidArgumentTypeError("model must be a torch module to have derivatives.")
        return self.module


_MOST_DENSE_COLUMNS = 2**12
"""Columns of a background that may be made dense."""


@dataclass(kw_only=True)
class SparseGame(MaskedTable):
    """Sparse rows whose absent columns take the values of background rows.

    Only stored entries are touched, so that memory goes with their number, not with that of the
    columns.

    Attributes
    ----------
    is_dense_for_model : bool
        Whether the model takes arrays, so that batches have to be small.
    """

    is_dense_for_model: bool = False

    def __post_init__(self) -> None:
        n_background, n_columns = self.background.shape
        n_entries = np.diff(self.rows.indptr).max() + np.diff(self.background.indptr).max()
        # An entry is a number and two indices, stored twice while they are joined. The coalition
        # and its complement take one byte per column.
        n_bytes = 48 * int(n_entries) + 2 * int(n_columns) // int(n_background)
        if self.is_dense_for_model:
            n_bytes += n_columns * self.rows.dtype.itemsize
        self.row_bytes = int(n_bytes)
        super().__post_init__()

    def active_players(self) -> BoolArray:
        """Return the players whose columns differ from any background row; NaN equals NaN."""
        first = self.background[[0]].toarray()[0]
        varies = np.zeros(len(first), dtype=bool)
        for row in range(1, self.background.shape[0]):
            varies |= ~same(self.background[[row]].toarray()[0], first)
        active = np.zeros((self.n_rows, self.n_players), dtype=bool)
        for row in range(self.n_rows):  # one by one, to hold one dense row only
            differs = varies | ~same(self.rows[[row]].toarray()[0], first)
            active[row, self.players[differs]] = True
        return active

    def row_fingerprints(self) -> list[bytes]:
        """Return a digest of each row's entries that are not zero."""
        digests = []
        for row in range(self.n_rows):
            entries = self.rows[[row]].tocoo()
            order = np.argsort(entries.col, kind="stable")
            order = order[entries.data[order] != 0]
            digests.append(fingerprint(entries.col[order], entries.data[order]))
        return digests

    def level_columns(self, row: int) -> tuple[npt.NDArray[Any], IntArray] | None:
        """Return the columns, (B + 1, D), of the row and the background, if they are few."""
        if len(self.players) > _MOST_DENSE_COLUMNS:
            return None
        both = [self.rows[[row]].toarray(), self.background.toarray()]
        return np.concatenate(both), self.players

    def _masked(self, rows: IntArray, coalitions: CoalitionArray) -> Any:
        """Return the masked rows: entries of present columns and of absent ones."""
        n_background, n_columns = self.background.shape
        present, absent = self.rows[rows].tocoo(), self.background.tocoo()
        is_kept = coalitions[present.row, self.players[present.col]]
        pair, column, value = present.row[is_kept], present.col[is_kept], present.data[is_kept]
        backgrounds = np.arange(n_background)
        of_rows = (pair[:, None] * n_background + backgrounds).ravel()
        pairs, entries = np.nonzero(~coalitions[:, self.players[absent.col]])
        of_background = pairs * n_background + absent.row[entries]
        data = np.concatenate([np.repeat(value, n_background), absent.data[entries]])
        indices = (
            np.concatenate([of_rows, of_background]),
            np.concatenate([np.repeat(column, n_background), absent.col[entries]]),
        )
        shape = (len(rows) * n_background, n_columns)
        return type(self.rows)((data, indices), shape=shape, dtype=self.rows.dtype)

    def _masked_at(self, rows: IntArray, coalitions: CoalitionArray, backgrounds: IntArray) -> Any:
        """Return the masked rows, each of entries of its row and of one background row."""
        present, absent = self.rows[rows].tocoo(), self.background[backgrounds].tocoo()
        is_kept = coalitions[present.row, self.players[present.col]]
        is_filled = ~coalitions[absent.row, self.players[absent.col]]
        data, row, column = (
            np.concatenate([kept[is_kept], filled[is_filled]])
            for kept, filled in (
                (present.data, absent.data),
                (present.row, absent.row),
                (present.col, absent.col),
            )
        )
        shape = (len(rows), self.background.shape[1])
        return type(self.rows)((data, (row, column)), shape=shape, dtype=self.rows.dtype)


def in_one_type(rows: Table, background: Table) -> tuple[Any, Any]:
    """Return sparse rows and a background, sparse or not, in csr form and in one type."""
    matrix = scipy.sparse.csr_matrix if scipy.sparse.isspmatrix(rows) else scipy.sparse.csr_array
    common = np.result_type(rows.dtype, background.dtype)
    return matrix(rows.astype(common)), matrix(background.astype(common))

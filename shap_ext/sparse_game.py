"""Sparse rows as cooperative games."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from shapley_adapters.array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from shapley_adapters.batched_evaluation import rows_per_batch
from shapley_adapters.value_functions import Reduction

from .exact_comparison import same
from .links import LinkedAverage
from .models import as_outputs
from .shap_internals import is_identity


@dataclass
class SparseGame:
    """Sparse rows whose absent columns take the values of background rows.

    Only stored entries are touched, so that memory goes with their number, not with that of the
    columns.

    Attributes
    ----------
    predict : callable
        The model, of sparse matrices (n, D) dressed by `dress`.
    rows, background : sparse matrices in csr form, (R, D) and (B, D)
        Present and absent values, of one type.
    players : array, (D,)
        The player of each column.
    average : LinkedAverage
        How outputs of background rows become one value.
    dress : callable
        Turns a sparse matrix into what the model takes.
    is_dense_for_model : bool
        Whether that is an array, so that batches have to be small.
    """

    predict: Callable[[Any], Any]
    rows: Any
    background: Any
    players: IntArray
    average: LinkedAverage
    dress: Callable[[Any], Any]
    is_dense_for_model: bool = False
    linearize_link: bool = True

    def __post_init__(self) -> None:
        if self.linearize_link and not is_identity(self.average.link):
            inputs = self.dress(self.background)
            outputs = as_outputs(self.predict(inputs), self.background.shape[0])
            self.average = self.average.linearized_at(outputs)

    @property
    def n_rows(self) -> int:
        """Number of rows to explain."""
        return int(self.rows.shape[0])

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.players.max()) + 1

    @property
    def evaluations_per_batch(self) -> int:
        """How many evaluations fill a batch of model rows of bounded memory."""
        n_background, n_columns = self.background.shape
        most = np.diff(self.rows.indptr).max() + np.diff(self.background.indptr).max()
        # An entry is a number and two places, held twice while they are joined; the coalition and
        # its complement are a byte for each column.
        n_bytes = 48 * int(most) + 2 * int(n_columns) // int(n_background)
        if self.is_dense_for_model:
            n_bytes += n_columns * self.rows.dtype.itemsize
        return max(1, rows_per_batch(n_bytes) // int(n_background))

    def active_players(self) -> BoolArray:
        """Tell where a row differs from any background row; missing values equal each other."""
        first = self.background[[0]].toarray()[0]
        varies = ~_are_columns_constant(self.background, first)
        active = np.zeros((self.n_rows, self.n_players), dtype=bool)
        for row in range(self.n_rows):  # one by one, to hold one dense row only
            differs = varies | ~same(self.rows[[row]].toarray()[0], first)
            active[row, self.players[differs]] = True
        return active

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K), averaged over the background."""
        return self.reduced(rows, coalitions, lambda outputs, _: self.average(outputs))

    def reduced(self, rows: IntArray, coalitions: CoalitionArray, reduce: Reduction) -> ValueArray:
        """Return the values that `reduce` makes of the outputs for the background rows."""
        n_background = self.background.shape[0]
        masked = self._masked(rows, coalitions)
        outputs = as_outputs(self.predict(self.dress(masked)), masked.shape[0])
        return reduce(outputs.reshape(len(rows), n_background, -1), rows)

    def _masked(self, rows: IntArray, coalitions: CoalitionArray) -> Any:
        """Return the masked rows, (P·B, D): entries of present columns and of absent ones."""
        n_background, n_columns = self.background.shape
        present, absent = self.rows[rows].tocoo(), self.background.tocoo()
        is_kept = coalitions[present.row, self.players[present.col]]
        pair, column, value = present.row[is_kept], present.col[is_kept], present.data[is_kept]
        every = np.arange(n_background)
        of_rows = (pair[:, None] * n_background + every).ravel()
        pairs, entries = np.nonzero(~coalitions[:, self.players[absent.col]])
        of_background = pairs * n_background + absent.row[entries]
        data = np.concatenate([np.repeat(value, n_background), absent.data[entries]])
        places = (
            np.concatenate([of_rows, of_background]),
            np.concatenate([np.repeat(column, n_background), absent.col[entries]]),
        )
        shape = (len(rows) * n_background, n_columns)
        return type(self.rows)((data, places), shape=shape, dtype=self.rows.dtype)


def _are_columns_constant(background: Any, first: Any) -> BoolArray:
    """Tell which columns hold one value in all background rows."""
    constant = np.ones(background.shape[1], dtype=bool)
    for row in range(1, background.shape[0]):
        constant &= same(background[[row]].toarray()[0], first)
    return constant


def in_one_type(rows: Any, background: Any) -> tuple[Any, Any]:
    """Return sparse rows and a background, sparse or not, in csr form and in one type."""
    matrix = scipy.sparse.csr_matrix if scipy.sparse.isspmatrix(rows) else scipy.sparse.csr_array
    common = np.result_type(rows.dtype, background.dtype)
    return matrix(rows.astype(common)), matrix(background.astype(common))

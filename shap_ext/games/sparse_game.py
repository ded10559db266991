"""Sparse rows as cooperative games."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from shapley_adapters.array_types import BoolArray, CoalitionArray, IntArray
from shapley_adapters.games.fingerprints import fingerprint

from ..argument_types import Table
from ..inputs.masked_rows import same
from .dense_game import MaskedTable

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

    @property
    def row_bytes(self) -> int:
        """Memory that a row of the model's input takes while it is made."""
        n_background, n_columns = self.background.shape
        n_entries = np.diff(self.rows.indptr).max() + np.diff(self.background.indptr).max()
        # An entry is a number and two indices, stored twice while they are joined. The coalition
        # and its complement take one byte per column.
        n_bytes = 48 * int(n_entries) + 2 * int(n_columns) // int(n_background)
        if self.is_dense_for_model:
            n_bytes += n_columns * self.rows.dtype.itemsize
        return int(n_bytes)

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

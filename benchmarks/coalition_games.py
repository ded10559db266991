"""Games whose coalitions are all tabulated, and their exact Shapley values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_BATCH = 1024
"""Coalitions in one call of the model."""

Game = Callable[[BoolArray], FloatArray]
"""Coalitions (R, C, M), or (1, C, M) for all R rows alike, to values (R, C)."""


@dataclass(frozen=True)
class TabulatedGame:
    """One game for each explained row, by the values of all its coalitions.

    Attributes
    ----------
    table : array, (R, 2^M)
        The values; bit j of the place tells whether player j is present.
    n_players : int
        M.
    """

    table: FloatArray
    n_players: int

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """Look up the values, (R, C), of coalitions, (R, C, M) or (1, C, M)."""
        places = coalitions @ (1 << np.arange(self.n_players))
        return np.take_along_axis(self.table, np.broadcast_to(places, self._shape(places)), axis=1)

    def _shape(self, places: IntArray) -> tuple[int, int]:
        return len(self.table), places.shape[1]

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the values of the empty coalition and of all players, (R,) each."""
        return self.table[:, 0], self.table[:, -1]

    def shapley_values(self) -> FloatArray:
        """Return the exact values, (R, M), by their definition."""
        n = self.n_players
        places = np.arange(2**n)
        sizes = ((places[:, None] >> np.arange(n)) % 2).sum(axis=1)
        values = np.empty((len(self.table), n))
        for player in range(n):
            without = places[(places >> player) % 2 == 0]
            weights = np.array([1 / (n * comb(n - 1, size)) for size in sizes[without]])
            steps = self.table[:, without | 1 << player] - self.table[:, without]
            values[:, player] = steps @ weights
        return values


@dataclass(frozen=True)
class ModelGame:
    """One game for each explained row, by running the model.

    Attributes
    ----------
    predict : callable
        The model: inputs (B, D) to outputs (B,).
    rows : array, (R, D)
        What is explained.
    reference : array, (1, D)
        Values of absent columns.
    player_of_column : array, (D,)
        The player that each column belongs to.
    """

    predict: Callable[[npt.NDArray[Any]], FloatArray]
    rows: npt.NDArray[Any]
    reference: npt.NDArray[Any]
    player_of_column: IntArray

    @property
    def n_players(self) -> int:
        """M, the number of players."""
        return int(self.player_of_column.max()) + 1

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """Return the values, (R, C), of coalitions, (R, C, M) or (1, C, M)."""
        shape = (len(self.rows), *coalitions.shape[1:])
        of_rows = np.broadcast_to(coalitions, shape)
        return np.array([self.of_row(row, of_rows[row]) for row in range(len(self.rows))])

    def of_row(self, row: int, coalitions: BoolArray) -> FloatArray:
        """Return the values, (C,), of coalitions, (C, M), of one row."""
        values = np.empty(len(coalitions))
        for start in range(0, len(coalitions), _BATCH):
            batch = slice(start, start + _BATCH)
            values[batch] = self.of_pairs(np.array([row]), coalitions[batch])
        return values

    def of_pairs(self, rows: IntArray, coalitions: BoolArray) -> FloatArray:
        """Return the values, (P,), of rows, (P,) or (1,), and coalitions, (P, M), in one batch."""
        present = np.take(coalitions, self.player_of_column, axis=1)
        return self.predict(np.where(present, self.rows[rows], self.reference))


def tabulate(
    predict: Callable[[npt.NDArray[Any]], FloatArray],
    rows: npt.NDArray[Any],
    reference: npt.NDArray[Any],
    player_of_column: IntArray,
) -> TabulatedGame:
    """Run the model on every coalition of every row.

    Parameters
    ----------
    predict : callable
        The model: inputs (B, D) to outputs (B,).
    rows : array, (R, D)
        What is explained.
    reference : array, (1, D)
        Values of absent columns.
    player_of_column : array, (D,)
        The player that each column belongs to.
    """
    n_players = int(player_of_column.max()) + 1
    places = np.arange(2**n_players)
    coalitions = (places[:, None] >> np.arange(n_players)) % 2 == 1
    present = coalitions[:, player_of_column]  # (2^M, D)
    table = [predict(np.where(present, row, reference)) for row in rows]
    return TabulatedGame(np.array(table, dtype=np.float64), n_players)

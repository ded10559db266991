"""Single draws of a coalition's value: for one background row, or one answer of a random model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from .batch_sizes import BatchBounds
from .evaluation import Request
from .game import WrappedGame


@dataclass
class SingleDraws(WrappedGame):
    """A game with D rows for each row of a game: its draws. Row r · D + d is draw d of row r.

    Attributes
    ----------
    game : Game
        The game.
    n_draws : int
        D.
    is_background : bool
        Whether draws are background rows; otherwise they are answers of a random model.
    """

    game: Any
    n_draws: int
    is_background: bool

    @property
    def n_rows(self) -> int:
        """Number of draws of all rows."""
        return int(self.game.n_rows) * self.n_draws

    @property
    def _values_of_game(self) -> int:
        """How many draws take as many rows of the model as one value of the game."""
        return self.n_draws if self.is_background else 1

    @property
    def evaluations_per_batch(self) -> int:
        """Number of draws in a batch."""
        return int(self.game.evaluations_per_batch) * self._values_of_game

    @property
    def batch_bounds(self) -> BatchBounds | None:
        """Bounds of the batch size, if the inner game has them."""
        bounds = self.game.batch_bounds
        if bounds is None:
            return None
        n_each = self._values_of_game
        return BatchBounds(bounds.first * n_each, bounds.largest * n_each)

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values of draws, (P, K)."""
        of_game, draws = np.divmod(rows, self.n_draws)
        values: ValueArray
        if self.is_background:
            values = self.game.outputs_at(of_game, coalitions, draws)
        else:
            values = self.game(of_game, coalitions)
        return values


@dataclass(frozen=True, kw_only=True)
class DrawnRequest(Request):
    """Draws of coalitions to evaluate for some rows.

    Attributes
    ----------
    drawn : array, (1 or R, C, D)
        The draws of each coalition of the table.
    """

    drawn: BoolArray

    @property
    def n_pairs(self) -> int:
        """The number of requested draws."""
        return len(self._indices[0])

    def values(self, flat: ValueArray) -> ValueArray:
        """Arrange the values of all draws as (R, C, D · K), with zeros for the others."""
        shape = len(self.rows), *self.drawn.shape[1:], flat.shape[1]
        values = np.zeros(shape)
        values[self._indices] = flat
        return values.reshape(*shape[:2], shape[2] * shape[3])  # also of no coalitions

    def pairs(self, start: int, stop: int) -> tuple[IntArray, CoalitionArray]:
        """Return the rows of `SingleDraws` and the coalitions of the draws from start to stop."""
        row, column, draw = (indices[start:stop] for indices in self._indices)
        table = self.table.coalitions
        coalitions = table[np.minimum(row, len(table) - 1), column]
        if self.players is not None:
            coalitions = self._of_game(coalitions, self.players[row])
        return self.rows[row] * self.drawn.shape[2] + draw, coalitions

    @cached_property
    def _indices(self) -> tuple[IntArray, ...]:
        """The row, the coalition and the draw of all requested values."""
        counts = np.broadcast_to(self.table.counts, len(self.rows))[:, None]
        is_requested = np.arange(self.table.coalitions.shape[1]) < counts
        # Draws of a coalition are far from each other: near rows of a batch may have similar noise.
        row, draw, column = np.nonzero((is_requested[..., None] & self.drawn).swapaxes(1, 2))
        return row, column, draw

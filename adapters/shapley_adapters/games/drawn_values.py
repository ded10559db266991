"""Single draws of a coalition's value: for one background row, or one answer of a random model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from .batch_sizes import BatchBounds
from .evaluation import Request
from .game import Game, WrappedGame


@runtime_checkable
class BackgroundGame(Game, Protocol):
    """A game whose values are means over the rows of a background."""

    @property
    def n_backgrounds(self) -> int:
        """B, the number of background rows."""

    @property
    def background_weights(self) -> FloatArray | None:
        """Weight of each background row, 1 in all; None where they are equal."""

    @property
    def sampling_obstacle(self) -> str:
        """Why the mean over a part of the background would not do; "" if it does."""

    def outputs_at(
        self, rows: IntArray, coalitions: CoalitionArray, backgrounds: IntArray
    ) -> ValueArray:
        """Return the outputs, (P, K), of `coalitions`, (P, M), each for one background row."""


@runtime_checkable
class LevelledGame(BackgroundGame, Protocol):
    """A game whose players take the values of columns, in the row or in a background row."""

    def level_columns(self, row: int) -> tuple[npt.NDArray[Any], IntArray] | None:
        """Return the columns, (B + 1, D), of the row and the background, and their players.

        None where values are not in columns, as in texts, or where the columns are too many.
        """


@runtime_checkable
class RandomGame(Game, Protocol):
    """A game whose values are random by design, such as means of draws of absent features.

    The same row and coalition have the same value in each call. Other values of theirs are those of
    other repetitions.
    """

    @property
    def draws_values(self) -> bool:
        """Whether values of other repetitions differ: games that need no draws are not random."""

    def repeated(self, n_repeats: int) -> Any:
        """Return a game whose row r · n + i is repetition i of row r, each drawn independently."""


def is_random_by_design(game: Any) -> bool:
    """Return whether values are known to be random: absent features or answers are drawn."""
    return bool(getattr(game, "draws_values", False) or getattr(game, "answers_at_random", False))


def n_backgrounds_of(game: Any) -> int:
    """Return the rows of the model's input for one value."""
    return int(getattr(game, "n_backgrounds", 1))


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
        bounds = super().batch_bounds
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

    @property
    def pairs_of_rows(self) -> IntArray:
        """The number of requested draws of each row, (R,)."""
        return np.bincount(self._indices[0], minlength=len(self.rows))

    def values(self, flat: ValueArray) -> ValueArray:
        """Arrange the values of all draws as (R, C, D · K), with zeros for the others."""
        shape = len(self.rows), *self.drawn.shape[1:], flat.shape[1]
        values = np.zeros(shape)
        values[self._indices] = flat
        return values.reshape(*shape[:2], -1)

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
        counts = super().pairs_of_rows[:, None]
        is_requested = np.arange(self.table.coalitions.shape[1]) < counts
        return np.nonzero(is_requested[..., None] & self.drawn)

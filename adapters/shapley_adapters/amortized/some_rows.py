"""Some of the rows of a game."""

from __future__ import annotations

from dataclasses import dataclass

from ..array_types import BoolArray, IntArray, ValueArray
from ..games.game import Game


@dataclass(frozen=True)
class SomeRows:
    """The games of some of the rows of a game."""

    game: Game
    rows: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def n_players(self) -> int:
        """Number of players."""
        return self.game.n_players

    @property
    def evaluations_per_batch(self) -> int:
        """How many evaluations the game takes per batch."""
        return self.game.evaluations_per_batch

    def active_players(self) -> BoolArray:
        """Return which players can change the value."""
        return self.game.active_players()[self.rows]

    def __call__(self, rows: IntArray, coalitions: BoolArray) -> ValueArray:
        """Return values, (P, K)."""
        return self.game(self.rows[rows], coalitions)

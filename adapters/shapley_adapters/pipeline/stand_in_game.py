"""A game that takes the place of the user's model where only our own work is measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from ..games.game import Game

_N_UNITS = 4


@dataclass(frozen=True)
class StandInGame:
    """A smooth game with interactions, whose values cost little.

    Attributes
    ----------
    game : Game
        The game with the same rows and players.
    n_outputs : int
        The number of outputs, K.
    """

    game: Game
    n_outputs: int

    @property
    def n_rows(self) -> int:
        """The number of rows, R."""
        return self.game.n_rows

    @property
    def n_players(self) -> int:
        """The number of players, M."""
        return self.game.n_players

    @property
    def evaluations_per_batch(self) -> int:
        """Evaluations in one call."""
        return 4096

    def active_players(self) -> BoolArray:
        """Return the active players of the game."""
        return self.game.active_players()

    def row_fingerprints(self) -> list[bytes]:
        """Return a different digest for each row."""
        return [row.to_bytes(16, "big") for row in range(self.n_rows)]

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K), of `coalitions`, (P, M), each for its row."""
        players = np.arange(self.n_players)[:, None]
        weights = np.sin(1.0 + players * (1.0 + np.arange(_N_UNITS))) / np.sqrt(self.n_players)
        units = np.tanh(coalitions @ (3.0 * weights) + np.sin(rows)[:, None])
        values: ValueArray = np.repeat(units.sum(axis=1)[:, None], self.n_outputs, axis=1)
        return values

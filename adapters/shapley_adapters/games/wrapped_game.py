"""Base of games that change the values or the rows of another game."""

from __future__ import annotations

from typing import Any

from .batch_sizes import BatchBounds


class WrappedGame:
    """What a game has in common with the game that it changes.

    Attributes
    ----------
    game : Game
        The inner game.
    """

    game: Any

    @property
    def n_rows(self) -> int:
        """Number of rows to explain."""
        return int(self.game.n_rows)

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.game.n_players)

    @property
    def evaluations_per_batch(self) -> int:
        """Number of evaluations in a batch."""
        return int(self.game.evaluations_per_batch)

    @property
    def batch_bounds(self) -> BatchBounds | None:
        """Bounds of the batch size, if the inner game has them."""
        bounds: BatchBounds | None = getattr(self.game, "batch_bounds", None)
        return bounds

    @property
    def is_in_training_mode(self) -> bool:
        """Whether the model is known to be random, about which users are warned."""
        return bool(getattr(self.game, "is_in_training_mode", False))

    @property
    def rounding(self) -> float:
        """Relative rounding error of the model's output; 0 if it is unknown."""
        return float(getattr(self.game, "rounding", 0.0))

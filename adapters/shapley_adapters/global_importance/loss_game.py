"""The negative loss of a row's prediction as a cooperative game, as in SAGE.

Covert, Lundberg and Lee, 2020: the value of a coalition is the loss without any feature less the
loss with the features of the coalition. The prediction with some of the features is the mean over
the background. The loss is taken of this mean. The mean of the losses for the background rows, as a
model with the loss as its output gives it, is another game: it also charges the spread of the
predictions over the background.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ..games.evaluation import background_mean
from ..games.fingerprints import fingerprint
from ..games.wrapped_game import WrappedGame
from .losses import LabelledLoss


@dataclass
class LossGame(WrappedGame):
    """The negative loss of each row.

    Attributes
    ----------
    game : OutputGame
        Returns the outputs.
    loss : LabelledLoss
        The loss, with the labels of all rows of the game.
    background_weights : array, (B,), optional
        Weight of each background row, 1 in all; by default they are equal.
    """

    game: Any
    loss: LabelledLoss
    background_weights: FloatArray | None = None

    derivative_obstacle = "the loss is not differentiated"

    def active_players(self) -> BoolArray:
        """Return which players can change the value."""
        active: BoolArray = self.game.active_players()
        return active

    def row_fingerprints(self) -> list[bytes]:
        """Return digests of the inner game's rows and of their labels."""
        rows: list[bytes] = self.game.row_fingerprints()
        return [fingerprint(row, label) for row, label in zip(rows, self.loss.labels, strict=True)]

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the negative losses, (P, 1)."""
        values: ValueArray = self.game.reduced(rows, coalitions, self._negative_losses)
        return values

    def _negative_losses(self, outputs: FloatArray, rows: IntArray) -> ValueArray:
        """Return the negative losses, (P, 1), of outputs for the background, (P, B, K)."""
        predictions = background_mean(outputs, self.background_weights)
        return -self.loss(predictions, rows)[:, None]

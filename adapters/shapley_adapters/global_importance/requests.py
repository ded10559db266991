"""The arguments of `global_importance` that both hosts share, and the game of a loss (SAGE).

Covert, Lundberg and Lee, 2020: the value of a coalition is the loss without any feature less the
loss with the features of the coalition. The prediction with some of the features is the mean over
the background. The loss is taken of this mean. The mean of the losses for the background rows, as a
model with the loss as its output gives it, is another game: it also charges the spread of the
predictions over the background.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..arguments import checked_choice, checked_count, checked_flag
from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ..errors import InvalidArgumentError
from ..games.evaluation import background_mean
from ..games.fingerprints import fingerprint
from ..games.game import WrappedGame
from ..pipeline.settings import checked_tolerance
from .error_parts import KINDS
from .estimate_importance import Plan
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


def checked_plan(
    *,
    kind: Any,
    n_rows: Any,
    tolerance: Any,
    total: Any,
    population: Any,
    total_name: str,
) -> Plan:
    """Return what a user asks for, its arguments checked."""
    checked_choice("kind", kind, KINDS)
    if tolerance is not None and total is not None:
        raise InvalidArgumentError(
            f"tolerance= and {total_name}= both decide the cost; pass one of them."
        )
    return Plan(
        kind=kind,
        n_rows=None if n_rows is None else checked_count("n_rows", n_rows),
        tolerance=checked_tolerance(tolerance),
        total=None if total is None else checked_count(total_name, total),
        is_population=checked_flag("population", population),
        total_name=total_name,
    )


def check_no_loss(kind: str, **arguments: Any) -> None:
    """Refuse a loss and labels where attributions are averaged, which would ignore them."""
    for name, value in arguments.items():
        if value is not None:
            raise InvalidArgumentError(
                f"{name} is used with kind='loss' only; kind is {kind!r}. Pass kind='loss', or "
                f"leave out {name}."
            )

"""The rows that networks are trained on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..array_types import BoolArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import InvalidArgumentError
from ..games.evaluation import Evaluator, Request
from ..games.game import Game
from .progress import Progress


@dataclass
class TrainingRows:
    """The rows to train on: a game for each and what the network sees of it.

    Attributes
    ----------
    game : Game
        The games.
    inputs : array or Tensor, (R, …)
        What the network is given.
    n_real : int, optional
        How many of the rows, the first ones, are real: held-out rows are taken from these.
    progress : Progress
        Shows the progress of the evaluations of v(∅) and v(N), two for each row.
    """

    game: Game
    inputs: Any
    n_real: int | None = None
    progress: Progress = field(default_factory=Progress)
    active: BoolArray = field(init=False)
    empty: ValueArray = field(init=False)
    rise: ValueArray = field(init=False)

    def __post_init__(self) -> None:
        if len(self.inputs) != self.game.n_rows:
            raise InvalidArgumentError(
                f"The network's inputs have {len(self.inputs)} rows, the game has "
                f"{self.game.n_rows}."
            )
        self.active = self.game.active_players()
        table = CoalitionTable(end_points(self.game.n_players)[None], np.array([2]))
        n_rows = self.game.n_rows
        with self.progress.bar("end points", 2 * n_rows, "evaluations") as bar:
            evaluate = Evaluator(self.game, on_progress=bar.update)
            (ends,) = evaluate([Request(np.arange(n_rows), table)])
        self.empty, self.rise = ends[:, 0], ends[:, 1] - ends[:, 0]

    def batch(self, rows: IntArray) -> Tensor:
        """Return what the network is given for some rows."""
        return as_tensor(self.inputs[rows])


def as_tensor(inputs: Any) -> Tensor:
    """Return network inputs as a tensor; numbers that are no whole numbers in single precision."""
    tensor = inputs if isinstance(inputs, Tensor) else torch.as_tensor(np.asarray(inputs))
    return tensor.float() if tensor.is_floating_point() or tensor.dtype == torch.bool else tensor


@dataclass(frozen=True)
class SomeRows:
    """The games of some of the rows of another."""

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
        """What the whole game asks for."""
        return self.game.evaluations_per_batch

    def active_players(self) -> BoolArray:
        """Tell which players can change the value."""
        return self.game.active_players()[self.rows]

    def __call__(self, rows: IntArray, coalitions: BoolArray) -> ValueArray:
        """Return values, (P, K)."""
        return self.game(self.rows[rows], coalitions)

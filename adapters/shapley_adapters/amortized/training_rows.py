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
    """The training rows: the game of each row, and the network's input for it.

    Attributes
    ----------
    game : Game
        The games.
    inputs : array or Tensor, (R, …)
        The network's inputs.
    n_real : int, optional
        Number of real rows, which come first; held-out rows are drawn from these.
    progress : Progress
        Shows the progress of the evaluations of v(∅) and v(N), two per row.
    n_jobs : int, optional
        The number of workers that evaluate the coalitions of labels.
    """

    game: Game
    inputs: Any
    n_real: int | None = None
    progress: Progress = field(default_factory=Progress)
    n_jobs: int | None = 1
    active: BoolArray = field(init=False)
    empty: ValueArray = field(init=False)
    grand_minus_empty: ValueArray = field(init=False)

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
            (empty_and_grand,) = evaluate([Request(np.arange(n_rows), table)])
        self.empty, self.grand_minus_empty = (
            empty_and_grand[:, 0],
            empty_and_grand[:, 1] - empty_and_grand[:, 0],
        )

    def batch(self, rows: IntArray) -> Tensor:
        """Return the network's inputs for some rows."""
        return as_tensor(self.inputs[rows])


def as_tensor(inputs: Any) -> Tensor:
    """Return network inputs as a tensor; floating-point numbers and bools in single precision."""
    tensor = inputs if isinstance(inputs, Tensor) else torch.as_tensor(np.asarray(inputs))
    return tensor.float() if tensor.is_floating_point() or tensor.dtype == torch.bool else tensor


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

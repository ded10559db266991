"""The rows of a training, and what it has paid for: values and estimates, kept in its folder.

Estimates of rows do not depend on each other, so that they are made and kept in parts. A training
that was killed evaluates again only the part or the epoch that it was in, and one row of each, to
see that the model is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..array_types import AttributionArray, BoolArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import InvalidArgumentError
from ..games.evaluation import Evaluator, Request
from ..games.game import Game, SomeRows
from ..pipeline.estimate import estimate
from ..pipeline.settings import Settings
from .fitting import Progress
from .storage import digest, read_file, write_file

_FEWEST_ROWS, _MOST_PARTS = 64, 100
"""A part has at least so many rows, and more where there would be more parts than this."""

_ROUNDING = 1e-3
"""Largest difference between two runs of the same model, relative to its largest output."""

_REMEDY = "It is in folder=. Delete it, to pay for its rows again, or pass another folder."


@dataclass(frozen=True)
class PaidValues:
    """Values of some coalitions of rows, (R, n, K)."""

    values: ValueArray


@dataclass(frozen=True)
class PaidEstimates:
    """Estimates of some rows, (R, M, K), their standard errors, and each row's evaluations."""

    values: AttributionArray
    standard_errors: AttributionArray
    evaluations: IntArray


PaidT = TypeVar("PaidT", PaidValues, PaidEstimates)


@dataclass(frozen=True)
class Ledger:
    """Files in a folder; without a folder, nothing is kept."""

    folder: Path | str | None = None

    def paid(
        self,
        kind: type[PaidT],
        name: Sequence[Any],
        make: Callable[[IntArray], PaidT],
        rows: IntArray,
        is_checked: bool = True,
    ) -> PaidT:
        """Make values or estimates of rows, or read them; if `is_checked`, make the first again.

        `name` holds a text and all that they depend on, except the model.

        Raises
        ------
        InvalidArgumentError
            If the file is damaged, or holds values of another model.
        """
        if self.folder is None:
            return make(rows)
        path = Path(self.folder) / f"{name[0]}-{digest(*name[1:])}.safetensors"
        if not path.is_file():
            made = make(rows)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, "paid", made)
            return made
        kept = read_file(path, "paid", kind, _REMEDY)
        first, again = (one.values[:1] for one in (kept, make(rows[:1]) if is_checked else kept))
        size = max(np.abs(first).max(initial=0.0), np.abs(again).max(initial=0.0))
        if first.shape != again.shape or np.abs(first - again).max(initial=0.0) > _ROUNDING * size:
            raise InvalidArgumentError(
                f"folder={str(self.folder)!r} holds values of another model: {path.name} differs. "
                "Pass another folder, or empty this one."
            )
        return kept

    def values(
        self,
        game: Game,
        coalitions: BoolArray,
        inputs: Any = None,
        on_progress: Callable[[int], object] = lambda _: None,
    ) -> ValueArray:
        """Evaluate coalitions of all rows, or read their values; return (R, n, K).

        Parameters
        ----------
        game : Game
            The game.
        coalitions : array, (n, M) or (R, n, M)
            Those of all rows, or of each row.
        inputs : array, (R, …), optional
            The network's for the rows, by which these are recognised.
        on_progress : callable, optional
            Gets numbers of evaluations.
        """
        evaluate = Evaluator(game, on_progress=on_progress)
        tables = coalitions if coalitions.ndim == 3 else coalitions[None]

        def made(rows: IntArray) -> PaidValues:
            first = tables[: len(rows)]
            table = CoalitionTable(first, np.full(len(first), first.shape[1]))
            (values,) = evaluate([Request(rows, table)])
            return PaidValues(values)

        rows = np.arange(game.n_rows)
        if self.folder is None:  # then no name is needed, which each epoch would compute
            return made(rows).values
        name = "values", np.asarray(inputs), game.active_players(), coalitions
        return self.paid(PaidValues, name, made, rows).values


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
    ledger : Ledger
        What has been paid for; nothing is kept by default.
    """

    game: Game
    inputs: Any
    n_real: int | None = None
    progress: Progress = field(default_factory=Progress)
    n_jobs: int | None = 1
    ledger: Ledger = field(default_factory=Ledger)
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
        coalitions = end_points(self.game.n_players)
        with self.progress.bar("end points", 2 * self.game.n_rows, "evaluations") as bar:
            ends = self.ledger.values(self.game, coalitions, self.inputs, bar.update)
        self.empty, self.grand_minus_empty = ends[:, 0], ends[:, 1] - ends[:, 0]

    def batch(self, rows: IntArray) -> Tensor:
        """Return the network's inputs for some rows; all but whole numbers in single precision."""
        inputs = self.inputs[rows]
        tensor = inputs if isinstance(inputs, Tensor) else torch.as_tensor(np.asarray(inputs))
        are_measures = tensor.is_floating_point() or tensor.dtype == torch.bool
        return tensor.float() if are_measures else tensor


def estimated(
    rows: TrainingRows,
    indices: IntArray,
    estimator: Any,
    name: str,
    seed: int,
    budget: int,
    budget_name: str,
) -> PaidEstimates:
    """Estimate some rows, or read what their folder holds of them.

    Parameters
    ----------
    rows : TrainingRows
        All rows of the training.
    indices : array of int
        The rows to estimate.
    estimator : Estimator
        What estimates them.
    name : str
        What the estimates are, for the progress bar and the names of files.
    seed, budget : int
        Seed, and evaluations per row.
    budget_name : str
        The argument that sets the budget, for messages.

    Raises
    ------
    InvalidArgumentError
        If a file of the folder is damaged, or holds estimates of another model.
    """
    settings = Settings(
        seed=seed,
        budget=budget,
        budget_name=budget_name,
        name=rows.progress.description(name),
        n_jobs=rows.n_jobs,
        progress_delay=rows.progress.remaining_delay,
        is_for_training=True,
    )

    def made(part: IntArray) -> PaidEstimates:
        new = estimate(SomeRows(rows.game, part), estimator, settings)
        return PaidEstimates(new.values, new.standard_errors, new.evaluations)

    start = np.asarray(rows.inputs[indices]), rows.active[indices], repr(estimator), seed, budget
    n_rows = max(1, len(indices))
    size = max(_FEWEST_ROWS, -(-n_rows // _MOST_PARTS)) if rows.ledger.folder else n_rows
    parts = [
        rows.ledger.paid(
            PaidEstimates,
            (name.replace(" ", "-"), first, *start),
            made,
            indices[first : first + size],
            is_checked=first == 0,
        )
        for first in range(0, n_rows, size)
    ]
    arrays = zip(*(vars(part).values() for part in parts), strict=True)
    return PaidEstimates(*map(np.concatenate, arrays))

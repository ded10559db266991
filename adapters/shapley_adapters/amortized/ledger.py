"""What a training has paid for: values and estimates of its rows, kept in its folder as they come.

Estimates of rows do not depend on each other, so that they are made and kept in parts. A training
that was killed evaluates again only the part that it was in, and one row, to see that the model is
the same. Its epochs, which evaluate nothing twice, begin anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..array_types import AttributionArray, BoolArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable
from ..errors import InvalidArgumentError
from ..games.evaluation import Evaluator, Request
from ..games.game import Game, SomeRows
from ..pipeline.estimate import estimate
from ..pipeline.settings import Settings
from .storage import digest, read_file, write_file

if TYPE_CHECKING:
    from .efficiency_gaps import TrainingRows

_FEWEST_ROWS, _MOST_PARTS = 64, 100
"""A part has at least so many rows, and more where there would be more parts than this."""

_ROUNDING = 1e-3
"""Largest difference between two runs of the same model, relative to its largest output."""

_REMEDY = "It is in folder=. Delete it, to pay for its rows again, or pass another folder."

PartT = TypeVar("PartT")


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


@dataclass(frozen=True)
class Ledger:
    """Files in a folder; without a folder, nothing is kept."""

    folder: Path | str | None = None

    def read(self, name: str, kind: type[PartT]) -> PartT | None:
        """Return what the folder holds under a name; None if there is nothing.

        Raises
        ------
        InvalidArgumentError
            If the file is damaged.
        """
        path = self._path(name)
        return read_file(path, "paid", kind, _REMEDY) if path and path.is_file() else None

    def write(self, name: str, content: Any) -> None:
        """Keep a dataclass of arrays under a name."""
        if path := self._path(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, "paid", content)

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else Path(self.folder) / f"{name}.safetensors"

    def _check_model(self, name: str, kept: ValueArray, again: ValueArray) -> None:
        size = max(np.abs(kept).max(initial=0.0), np.abs(again).max(initial=0.0))
        if kept.shape != again.shape or np.abs(kept - again).max(initial=0.0) > _ROUNDING * size:
            raise InvalidArgumentError(
                f"folder={str(self.folder)!r} holds values of another model: {name} differs. Pass "
                "another folder, or empty this one."
            )

    def values(
        self,
        game: Game,
        coalitions: BoolArray,
        inputs: Any = None,
        on_progress: Callable[[int], object] = lambda _: None,
    ) -> ValueArray:
        """Evaluate coalitions, (n, M), of all rows, or read them; return (R, n, K).

        `inputs` are the network's for the rows, by which these are recognised; `on_progress` gets
        numbers of evaluations.

        Raises
        ------
        InvalidArgumentError
            If the file is damaged, or holds values of another model.
        """
        evaluate = Evaluator(game, on_progress=on_progress)
        table = CoalitionTable(coalitions[None], np.array([len(coalitions)]))

        def evaluated(n_rows: int) -> ValueArray:
            (values,) = evaluate([Request(np.arange(n_rows), table)])
            return values

        if self.folder is None:
            return evaluated(game.n_rows)
        name = f"values-{digest(np.asarray(inputs), game.active_players(), coalitions)}"
        kept = self.read(name, PaidValues)
        if kept is None:
            kept = PaidValues(evaluated(game.n_rows))
            self.write(name, kept)
        else:
            self._check_model(name, kept.values[:1], evaluated(1))
        return kept.values

    def estimated(
        self, name: str, rows: TrainingRows, indices: IntArray, estimator: Any, settings: Settings
    ) -> PaidEstimates:
        """Estimate some rows, or read what the folder holds of them.

        Raises
        ------
        InvalidArgumentError
            If a file of the folder is damaged, or holds estimates of another model.
        """

        def estimated(part: IntArray) -> PaidEstimates:
            made = estimate(SomeRows(rows.game, part), estimator, settings)
            return PaidEstimates(made.values, made.standard_errors, made.evaluations)

        if self.folder is None:
            return estimated(indices)
        of_rows = np.asarray(rows.inputs[indices]), rows.active[indices]
        name += f"-{digest(repr(estimator), settings.seed, settings.budget, *of_rows)}"
        parts: list[PaidEstimates] = []
        size = max(_FEWEST_ROWS, -(-len(indices) // _MOST_PARTS))
        for first in range(0, len(indices), size):
            part, name_of_part = indices[first : first + size], f"{name}-{first}"
            kept = self.read(name_of_part, PaidEstimates)
            if kept is None:
                kept = estimated(part)
                self.write(name_of_part, kept)
            elif first == 0:
                self._check_model(name_of_part, kept.values[:1], estimated(part[:1]).values)
            parts.append(kept)
        arrays = zip(*(vars(part).values() for part in parts), strict=True)
        return PaidEstimates(*map(np.concatenate, arrays))

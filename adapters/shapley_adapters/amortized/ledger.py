"""What a training has paid for: estimates of its rows, kept in its folder as they come.

Estimates of rows do not depend on each other, so that they are made and kept in parts. What was
begun and never finished is counted, too: a training that was killed pays nothing twice but the part
that it was in, and never reports less than it spent.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from ..array_types import AttributionArray, IntArray, ValueArray
from ..errors import InvalidArgumentError
from ..games.game import SomeRows
from ..pipeline.estimate import estimate
from ..pipeline.settings import Settings
from .network_files import read_file, write_file

if TYPE_CHECKING:
    from .efficiency_gaps import TrainingRows

_FEWEST_ROWS, _MOST_ROWS = 64, 4096
_SECONDS = 2.0
"""Parts grow until one takes this long."""

_ROUNDING = 1e-3
"""Largest difference between two runs of the same model, relative to its largest output."""

REMEDY = "It is in folder=. Delete it, to train or pay for its rows again, or pass another folder."


def digest(*parts: Any) -> str:
    """Return a short digest of arrays, tensors, and other objects by their `repr`."""
    hasher = hashlib.blake2b(digest_size=8)
    for part in parts:
        is_array = isinstance(part, (np.ndarray, Tensor))
        array = np.ascontiguousarray(part if is_array else repr(part))
        hasher.update(f"{array.dtype}{array.shape}".encode())
        content: Any = array.reshape(-1).view(np.uint8) if array.size else b""
        hasher.update(content)
    return hasher.hexdigest()


def check_model(path: Path, kept: ValueArray, again: ValueArray) -> None:
    """Refuse a file of the folder if the model now has other values, up to rounding."""
    size = max(np.abs(kept).max(initial=0.0), np.abs(again).max(initial=0.0))
    if kept.shape != again.shape or np.abs(kept - again).max(initial=0.0) > _ROUNDING * size:
        raise InvalidArgumentError(
            f"folder={str(path.parent)!r} holds values of another model: {path.name} differs. Pass "
            "another folder, or empty this one."
        )


@dataclass(frozen=True)
class PaidEstimates:
    """Estimates of some rows, (R, M, K), their standard errors, and each row's evaluations."""

    values: AttributionArray
    standard_errors: AttributionArray
    evaluations: IntArray


@dataclass(frozen=True)
class Ledger:
    """Estimates in a folder; without a folder, nothing is kept."""

    folder: Path | None = None

    @property
    def lost(self) -> int:
        """Evaluations beside those of one training without a stop, of all in this folder."""
        return sum(map(int, self._notes().split()))

    def begin(self, n_evaluations: int) -> None:
        """Note that a training begins; all but the first pay `n_evaluations` once more."""
        self._note(n_evaluations if self._notes() else 0)

    @contextmanager
    def begun(self, n_evaluations: int) -> Iterator[None]:
        """Count evaluations as lost until the block has ended without an error."""
        self._note(n_evaluations)
        yield
        self._note(-n_evaluations)

    def _notes(self) -> str:
        path = self.folder and self.folder / "begun"
        return path.read_text() if path and path.is_file() else ""

    def _note(self, n_evaluations: int) -> None:
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(self.folder / "begun", "a", encoding="ascii") as file:
                file.write(f"{n_evaluations}\n")

    def estimated(
        self, name: str, rows: TrainingRows, indices: IntArray, estimator: Any, settings: Settings
    ) -> PaidEstimates:
        """Estimate some rows, or read what the folder holds of them.

        If it holds some, the first row is estimated once more, to see that it is the same model.

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
        first, size = 0, _FEWEST_ROWS
        while first < len(indices):
            path = self.folder / f"{name}-{first}.safetensors"
            started, part = time.monotonic(), indices[first : first + size]
            if path.is_file():
                parts.append(read_file(path, "estimates", PaidEstimates, REMEDY))
                if first == 0:
                    again = estimated(indices[:1])
                    self._note(int(again.evaluations.sum()))
                    check_model(path, parts[0].values[:1], again.values)
            else:
                with self.begun(len(part) * int(settings.budget or 0)):
                    parts.append(estimated(part))
                    write_file(path, "estimates", parts[-1])
            first += len(parts[-1].values)
            if time.monotonic() - started < _SECONDS:
                size = min(_MOST_ROWS, 2 * size)
        arrays = zip(*(vars(part).values() for part in parts), strict=True)
        return PaidEstimates(*map(np.concatenate, arrays))

"""What a training has paid for: estimates of its rows, kept in its folder as they come.

Estimates of rows do not depend on each other, so that they are made and kept in parts. What was
begun and never finished is counted, too: a training that was killed pays nothing twice but the part
that it was in, and never reports less than it spent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..array_types import AttributionArray, IntArray
from ..errors import InvalidArgumentError
from ..pipeline.estimate import estimate
from ..pipeline.settings import Settings
from .checkpoints import are_close, digest
from .network_files import read_file, write_file
from .some_rows import SomeRows

if TYPE_CHECKING:
    from .efficiency_gaps import TrainingRows

_FEWEST_ROWS, _MOST_ROWS = 64, 4096
_SECONDS = 2.0
"""Parts grow until one takes this long."""

_BEGUN = "begun"


@dataclass(frozen=True)
class PaidEstimates:
    """Estimates of some rows, (R, M, K), their standard errors, and the evaluations for them."""

    values: AttributionArray
    standard_errors: AttributionArray
    evaluations: int


@dataclass(frozen=True)
class Ledger:
    """Estimates in a folder; without a folder, nothing is kept."""

    folder: Path | None = None

    @property
    def lost(self) -> int:
        """Evaluations beside those of one training without a stop, of all in this folder."""
        path = None if self.folder is None else self.folder / _BEGUN
        if path is None or not path.is_file():
            return 0
        return sum(int(line) for line in path.read_text().splitlines())

    def begin(self, n_evaluations: int) -> None:
        """Note that a training begins; all but the first pay `n_evaluations` once more."""
        is_first = self.folder is None or not (self.folder / _BEGUN).is_file()
        self._note(0 if is_first else n_evaluations)

    @contextmanager
    def begun(self, n_evaluations: int) -> Iterator[None]:
        """Count evaluations as lost until the block has ended without an error."""
        self._note(n_evaluations)
        yield
        self._note(-n_evaluations)

    def _note(self, n_evaluations: int) -> None:
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(self.folder / _BEGUN, "a", encoding="ascii") as file:
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
            return PaidEstimates(made.values, made.standard_errors, int(made.evaluations.sum()))

        if self.folder is None:
            return estimated(indices)
        ends = rows.empty[indices], rows.grand_minus_empty[indices]
        of_rows = np.asarray(rows.inputs[indices]), rows.active[indices], *ends
        key = digest(repr(estimator), settings.seed, settings.budget, *of_rows)
        parts = self._kept(f"{name}-{key}")
        first = sum(len(part.values) for part in parts)
        if parts:
            again = estimated(indices[:1])
            self._note(again.evaluations)
            self._check_model(parts[0].values[:1], again.values)
        size = _FEWEST_ROWS
        while first < len(indices):
            started = time.monotonic()
            part = indices[first : first + size]
            with self.begun(len(part) * int(settings.budget or 0)):
                parts.append(estimated(part))
                self._keep(f"{name}-{key}-{first}", parts[-1])
            first += len(part)
            is_short = time.monotonic() - started < _SECONDS
            size = min(_MOST_ROWS, 2 * size) if is_short else size
        return PaidEstimates(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.standard_errors for part in parts]),
            sum(part.evaluations for part in parts),
        )

    def _kept(self, name: str) -> list[PaidEstimates]:
        """Return the parts in the folder, in order, without a gap."""
        parts: list[PaidEstimates] = []
        first = 0
        while (path := self._path(f"{name}-{first}")).is_file():
            try:
                file = read_file(path, "estimates")
                evaluations = file.fields(["evaluations"]).whole_number("evaluations")
                tensors = file.tensors(may_be_missing=["standard_errors"])
            except InvalidArgumentError as error:
                raise InvalidArgumentError(
                    f"folder={str(self.folder)!r}: {error} Or delete it, to pay for its rows again."
                ) from error
            values, errors = (tensors[key].numpy() for key in ("values", "standard_errors"))
            parts.append(PaidEstimates(values, errors, evaluations))
            first += len(values)
        return parts

    def _keep(self, name: str, part: PaidEstimates) -> None:
        tensors = {
            "values": torch.as_tensor(part.values),
            "standard_errors": torch.as_tensor(part.standard_errors),
        }
        write_file(self._path(name), "estimates", tensors, {"evaluations": part.evaluations})

    def _path(self, name: str) -> Path:
        return Path(str(self.folder)) / f"{name}.safetensors"

    def _check_model(self, kept: AttributionArray, again: AttributionArray) -> None:
        if not are_close(kept, again):
            raise InvalidArgumentError(
                f"folder={str(self.folder)!r} holds estimates of another model: those of a row "
                f"differ by up to {np.abs(kept - again).max():.3g}. Pass another folder, or empty "
                "this one."
            )

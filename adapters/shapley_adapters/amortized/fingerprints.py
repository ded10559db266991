"""Rows that go with a trained network, by which another model is told from its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..array_types import ValueArray
from ..errors import InvalidArgumentError

PROBES = 8
"""How many rows are kept."""


@dataclass(frozen=True)
class Fingerprint:
    """Some rows, and what the model made of them, such as v(∅) and v(N), by which files know it."""

    inputs: Tensor
    values: ValueArray
    owner: str = "explainer"

    @classmethod
    def of(cls, inputs: Any, empty: ValueArray, rise: ValueArray) -> Fingerprint:
        """Take the first rows of those that were trained on."""
        kept = torch.as_tensor(np.asarray(inputs[:PROBES]).copy())
        values = np.stack([empty[:PROBES], empty[:PROBES] + rise[:PROBES]], axis=1)
        return cls(kept, values)

    def check(self, values: ValueArray) -> None:
        """Refuse a model that makes other values, (R, 2, K), of the same rows."""
        if values.shape != self.values.shape:
            raise InvalidArgumentError(
                f"The {self.owner} was trained on a model with {self.values.shape[2]} outputs; "
                f"this one has {values.shape[2]}."
            )
        size = np.abs(self.values).max()
        gap = np.abs(values - self.values).max()
        if not gap <= 1e-4 * size:
            raise InvalidArgumentError(
                f"The {self.owner} was trained on another model, or with another reference: on "
                f"{len(values)} rows that it keeps, values differ by up to {gap:.3g}, their size "
                f"being {size:.3g}. Load it with the model and the reference it was trained with, "
                "or train anew."
            )

"""Rows stored with a trained network, by which its model is recognised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..array_types import ValueArray
from ..errors import InvalidArgumentError

PROBES = 8
"""Number of stored rows."""


@dataclass(frozen=True)
class Fingerprint:
    """Some rows, and the model's values of them, such as v(∅) and v(N).

    Attributes
    ----------
    inputs : Tensor, (R, …)
        The network's inputs for the rows.
    values : array, (R, n, K)
        The model's values.
    owner : str
        "explainer" or "surrogate", for messages.
    """

    inputs: Tensor
    values: ValueArray
    owner: str = "explainer"

    @classmethod
    def from_rows(
        cls, inputs: Any, empty: ValueArray, grand_minus_empty: ValueArray
    ) -> Fingerprint:
        """Return the fingerprint of the first training rows."""
        inputs_of_probes = torch.as_tensor(np.asarray(inputs[:PROBES]).copy())
        values = np.stack([empty[:PROBES], empty[:PROBES] + grand_minus_empty[:PROBES]], axis=1)
        return cls(inputs_of_probes, values)

    def check(self, values: ValueArray) -> None:
        """Refuse a model with other values, (R, 2, K), of the same rows."""
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
                f"{len(values)} stored rows, values differ by up to {gap:.3g}; the largest value "
                f"is {size:.3g}. Load it with the model and the reference it was trained with, or "
                "train again."
            )

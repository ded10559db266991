"""Some training rows stored with a network, to measure how far a row is from the training data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..array_types import FloatArray, IntArray
from .explainer_network import ExplainerNetwork, tensor_of

MOST_ROWS, MOST_NUMBERS = 512, 2**20
"""Bounds on the number of stored rows, and on their numbers in total."""

_ROWS_AT_ONCE = 256

_LARGEST_DISTANCE = 1e15
"""Larger distances, which may be infinite in single precision, count as this distance."""


@dataclass(frozen=True)
class ReferenceRows:
    """Training rows, in units of the standard deviations of their columns.

    Attributes
    ----------
    rows : Tensor, (n, D)
        The rows, in single precision.
    """

    rows: Tensor

    @classmethod
    def draw(
        cls, network: ExplainerNetwork, inputs: Any, training_rows: IntArray, seed: int
    ) -> ReferenceRows:
        """Return random training rows."""
        size = max(1, int(np.prod(inputs.shape[1:])))
        n_rows = min(MOST_ROWS, max(1, MOST_NUMBERS // size), len(training_rows))
        order = np.random.default_rng([seed, 8]).permutation(len(training_rows))
        return cls(_standardised(network, inputs[np.sort(training_rows[order[:n_rows]])]))

    def distances(self, network: ExplainerNetwork, inputs: Any) -> FloatArray:
        """Return the distance of each row to the nearest of these rows, (R,).

        It is the root mean square difference in standard deviations; for whole numbers, which stand
        for tokens or categories, the root of the share of different numbers.
        """
        is_whole = not network.centre.numel()
        distances = np.empty(len(inputs))
        for start in range(0, len(inputs), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            rows = _standardised(network, inputs[part])
            squares = _different(rows, self.rows) if is_whole else _squares(rows, self.rows)
            distances[part] = np.sqrt(squares.numpy() / max(1, rows.shape[1]))
        return distances


def _standardised(network: ExplainerNetwork, inputs: Any) -> Tensor:
    rows = tensor_of(inputs)
    rows = rows.detach().cpu().float()
    if network.centre.numel():
        rows = (rows - network.centre.cpu()) / network.spread.cpu()
    return rows.flatten(1)


def _squares(rows: Tensor, references: Tensor) -> Tensor:
    """Return squared Euclidean distances to the nearest reference, (R,)."""
    # Without matrix products, whose rounding would depend on the number of rows.
    distances = torch.cdist(rows, references, compute_mode="donot_use_mm_for_euclid_dist")
    return distances.min(dim=1).values.double().clamp(max=_LARGEST_DISTANCE) ** 2


def _different(rows: Tensor, references: Tensor) -> Tensor:
    """Return the smallest number of different entries, (R,)."""
    counts = [(row != references).sum(dim=1).min() for row in rows]
    return torch.stack(counts).double() if counts else torch.zeros(0, dtype=torch.float64)

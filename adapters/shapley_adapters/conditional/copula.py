"""Absent features of any continuous margins that depend on each other like normal ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from ..array_types import BoolArray, FloatArray
from .columns import checked_numbers
from .gaussian import Gaussian


@dataclass
class Copula:
    """A Gaussian copula with the margins of the data.

    The ranks of each feature are made normal; there, conditional distributions are those of
    `Gaussian`, and their draws are brought back by the quantiles of the data (Aas, Jullum and
    Løland, 2021, section 3.2).

    Attributes
    ----------
    ordered : array, (N, D)
        The values of each feature, in ascending order.
    scores : Gaussian
        The distribution of the normal scores of ranks.
    """

    ordered: FloatArray
    scores: Gaussian

    @classmethod
    def fitted(cls, data: npt.NDArray[Any], names: Sequence[Any] | None = None) -> Copula:
        """Return the copula of rows, (N, D), of numbers; see `Gaussian.fitted`."""
        numbers = checked_numbers(data, names)
        ordered = np.sort(numbers, axis=0)
        return cls(ordered, Gaussian.fitted(_normal_scores(numbers, ordered)))

    def fill(self, row: FloatArray, masks: BoolArray, points: FloatArray) -> FloatArray:
        """Return rows whose absent values are drawn given the present ones, (P, K, D)."""
        scores = np.where(np.isnan(row), np.nan, _normal_scores(row[None], self.ordered)[0])
        filled = scipy.special.ndtr(self.scores.fill(scores, masks, points))
        n_rows = len(self.ordered)
        levels = np.arange(1, n_rows + 1) / (n_rows + 1)
        for column, values in enumerate(self.ordered.T):
            filled[..., column] = np.interp(filled[..., column], levels, values)
        return np.where(masks[:, None], row, filled)


def _normal_scores(values: FloatArray, ordered: FloatArray) -> FloatArray:
    """Return the normal quantiles of the ranks of values, (n, D), among ordered ones, (N, D).

    Equal values have the mean of their ranks. Values beyond all others have the first or last rank.
    """
    n_rows = len(ordered)
    ranks = np.empty(values.shape)
    for column, (own, others) in enumerate(zip(values.T, ordered.T, strict=True)):
        below = np.searchsorted(others, own, side="left")
        until = np.searchsorted(others, own, side="right")
        ranks[:, column] = (below + 1 + np.maximum(until, below + 1)) / 2
    scores: FloatArray = scipy.special.ndtri(np.clip(ranks, 1, n_rows) / (n_rows + 1))
    return scores

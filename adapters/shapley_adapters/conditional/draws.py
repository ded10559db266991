"""Rows whose absent features are drawn given the present ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..arguments import checked_count, checked_seed
from ..array_types import BoolArray, FloatArray
from .points import ShiftedPoints, Words

Row = npt.NDArray[Any]
"""(D,): the values of a row, of any type that the distribution takes."""


class ConditionalDistribution(Protocol):
    """The distribution of absent features given present ones, for all coalitions."""

    def fill(self, row: Row, masks: BoolArray, points: FloatArray) -> npt.NDArray[Any]:
        """Return rows, (P, K, D), with the present values of `row`, (D,), and absent ones drawn.

        A pure function: all randomness is in the points.

        Parameters
        ----------
        row : array, (D,)
            Present values.
        masks : array, (P, D)
            True where the feature is present; in each, some are absent.
        points : array, (P, K, D)
            Numbers between 0 and 1 whose coordinates are uniform and independent.
        """


@dataclass(frozen=True)
class ConditionalDraws:
    """The draws of absent features of any row.

    Attributes
    ----------
    distribution : ConditionalDistribution
        Their distribution.
    points : ShiftedPoints
        The random numbers.
    """

    distribution: ConditionalDistribution
    points: ShiftedPoints

    def of_row(self, row: Row) -> RowDraws:
        """Return the draws of a row, (D,)."""
        return RowDraws(self, row, self.points.row_shift(row))

    def drawn(self, row: Row, masks: BoolArray, repeat: int) -> npt.NDArray[Any]:
        """Return the draws, (P, K, D), of coalitions of a row, (P, D), in one repetition."""
        return self.of_row(row).repeated(repeat)(masks)


@dataclass(frozen=True)
class RowDraws:
    """The draws of absent features of one row.

    Attributes
    ----------
    draws : ConditionalDraws
    row : array, (D,)
        Present values.
    shift : array of words, (D,)
        The row's part of the shifts of its points.
    repeat : int
        The repetition: those of another one are independent.
    """

    draws: ConditionalDraws
    row: Row
    shift: Words
    repeat: int = 0

    def __call__(self, masks: BoolArray) -> npt.NDArray[Any]:
        """Return the draws of coalitions, (P, D), as rows, (P, K, D); whole rows are not drawn."""
        is_drawn = ~masks.all(axis=1)
        if not is_drawn.all():
            drawn = self(masks[is_drawn]) if is_drawn.any() else self.row[None, None]
            shape = len(masks), self.draws.points.n_draws, len(self.row)
            table = np.empty(shape, dtype=drawn.dtype)
            table[:], table[is_drawn] = self.row, drawn
            return table
        points = self.draws.points(masks, self.shift, self.repeat)
        return self.draws.distribution.fill(self.row, masks, points)

    def repeated(self, repeat: int) -> RowDraws:
        """Return the draws of another repetition."""
        return replace(self, repeat=repeat)


def checked_draws(
    distribution: ConditionalDistribution, n_features: int, draws: object, seed: object
) -> ConditionalDraws:
    """Return the draws of a distribution, with the arguments of a user."""
    return ConditionalDraws(
        distribution,
        ShiftedPoints(checked_count("draws", draws), n_features, checked_seed(seed)),
    )

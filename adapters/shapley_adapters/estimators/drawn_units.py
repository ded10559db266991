"""The values of draws as those of pairs of complements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray

POOLED = 10.0
"""A variance from few draws is shrunk to the mean variance, which counts as so many draws."""


@dataclass(frozen=True)
class DrawnUnits:
    """Coalitions with their complements, where these are in the table.

    Attributes
    ----------
    games : array, (G, C, D)
        The values of each game, one for each row and output.
    coalitions : array, (C, M)
    drawn_coalitions : array, (C, D)
    first, second : arrays, (U,)
        The coalition of each unit, and its complement or −1. That of all players comes first.
    """

    games: FloatArray
    coalitions: CoalitionArray
    drawn_coalitions: BoolArray
    first: IntArray
    second: IntArray

    @property
    def drawn(self) -> BoolArray:
        """The draws of each unit, (U, D)."""
        return self.drawn_coalitions[self.first]

    @property
    def signs(self) -> FloatArray:
        """1 for the members of the first coalition of each unit, −1 for others, (U, M)."""
        signs: FloatArray = np.where(self.coalitions[self.first], 1.0, -1.0)
        return signs

    def parts(self) -> tuple[FloatArray, FloatArray]:
        """Return the odd and the even part of each unit and draw, (G, U, D).

        Where the complement is missing, the even part is that of the ends.
        """
        one, other = self.games[:, self.first], self.games[:, self.second]
        even = np.where(
            (self.second < 0)[:, None], (one[:, :1] + other[:, :1]) / 2, (one + other) / 2
        )
        return one - even, even

    def arranged(
        self,
        odd: FloatArray,
        even: FloatArray,
        odd_errors: FloatArray,
        even_errors: FloatArray,
        covariances: FloatArray,
    ) -> tuple[FloatArray, ...]:
        """Return values and errors of the parts of units, (G, U), for coalitions, (G, C).

        Where the complement is missing, all of the error is in the odd part of the unit.
        """
        values, errors = np.zeros(self.games.shape[:2]), np.zeros((3, *self.games.shape[:2]))
        is_paired = self.second >= 0
        paired = self.second[is_paired]
        values[:, self.first] = even + odd
        values[:, paired] = (even - odd)[:, is_paired]
        alone = odd_errors / 2
        of_parts = np.array([odd_errors, even_errors, covariances])
        of_units = np.where(is_paired, of_parts, np.array([alone, alone, np.zeros_like(alone)]))
        errors[..., self.first] = of_units
        errors[..., paired] = of_units[..., is_paired]
        errors[2][:, paired] *= -1
        return values, *errors

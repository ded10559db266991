"""Games whose even part consists of interactions of two players, without remainder.

A posterior comes close to such games, but its noise keeps it about 1e-5 from them. Where there are
more values than pairs, least squares shows whether pairs leave any remainder.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.linalg

from ...array_types import FloatArray
from .sparse_pairs import differences_of_pairs

_ROUNDING = 1e-12
"""A remainder below this, relative to the values, is rounding."""

_SPARE_SHARE, _FEWEST_SPARE = 0.1, 4
"""Number of values that must remain to check the interactions: a share of all, and a minimum."""

_LEAST_SPREAD = 1e-8
"""Bound on the smallest entry on the diagonal of the triangular factor, over the largest."""


class PairRegression:
    """Least squares of the differences from the first value on the products of two signs.

    Parameters
    ----------
    signs : array, (n + 1, M)
        The coalitions, that of all players first.
    """

    def __init__(self, signs: FloatArray) -> None:
        self.signs = signs

    def interactions(
        self, differences: FloatArray, rounding: float
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return interactions and their variances, (P,) each; None if pairs leave a remainder.

        `rounding` is that of the values of the game, which may be much larger than the differences.
        """
        if self._factors is None:
            return None
        basis, triangle = self._factors
        along = basis.T @ differences
        remainder = differences - basis @ along
        size = np.sqrt((differences**2).mean())
        if np.sqrt((remainder**2).mean()) > max(_ROUNDING * size, rounding):
            return None
        values = 4 * scipy.linalg.solve_triangular(triangle, along, check_finite=False)
        of_values = np.finfo(float).eps * max(size, np.abs(values).max())
        return values, np.full(len(values), (4 * max(of_values, rounding)) ** 2)

    @cached_property
    def _factors(self) -> tuple[FloatArray, FloatArray] | None:
        """The factors of the regression; None if the values do not determine it with some spare."""
        n, n_players = len(self.signs) - 1, self.signs.shape[1]
        n_pairs = n_players * (n_players - 1) // 2
        if n - n_pairs < max(_FEWEST_SPARE, _SPARE_SHARE * n):
            return None
        features = differences_of_pairs(self.signs)
        basis, triangle = scipy.linalg.qr(features, mode="economic", check_finite=False)
        diagonal = np.abs(np.diag(triangle))
        is_determined = diagonal.min() > _LEAST_SPREAD * diagonal.max()
        return (basis, triangle) if is_determined else None

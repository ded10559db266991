"""The scale of posterior errors, by how far values are from their predictions by all others.

The prior expects residuals of the same size for all coalitions. Games that jump differ: the values
of a vote are known for small coalitions, and hard to predict for halves of the players. Pairs that
are not evaluated are mostly halves, so that their residuals are larger than those of the evaluated
pairs. So the residuals count by the size of their coalitions. With K the covariance of the values,
the error of a value that is predicted by all others is [K⁻¹ y]_i / [K⁻¹]_ii, and its variance is
1 / [K⁻¹]_ii (Sundararajan and Keerthi, Predictive Approaches for Choosing Hyperparameters, 2001).

The posterior variances are multiplied by the ratio of the observed to the expected squares, where
each size counts by the share of its pairs that are not evaluated, over the size. If this ratio is
larger than that of the sizes that are known, the prior is wrong about sizes. The errors then have
the same sign in many coalitions, and their variance grows further. Sizes of which all pairs are
evaluated say little about the others, and give no degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...array_types import FloatArray, IntArray
from ...coalitions.tables import ranks_within_sizes, smaller_sizes
from ..pair_folds import pair_counts
from .factors import inverses_of_lower
from .marginal_likelihood import TINY, column_by_column

_MOST_CHECKED = 240
"""At most so many values are predicted by all others. They are the last ones."""

_NEARNESS = 0.05
"""Sizes that differ by this share of the players count 1/e for each other."""

_EXPECTED_VALUES = 2.0
"""Weight of the prior in a ratio, as a number of values that are as far off as expected."""

_EXCESS = 0.5
"""Power of the ratio of unknown to known sizes in the variance. Measured with 10 and 13 players:
the squared errors of Shapley values grow with the powers .3 to .7 of it."""

_LEAST_SHARE = 1e-9
"""Bound on shares of pairs, so that weights have a sum if all pairs are known, or almost none."""

_REGULAR_VALUES = 4.0
"""Weight of the prior in the degrees of freedom, as a number of values with normal errors."""


@dataclass(frozen=True)
class SizeWeights:
    """How much the values at the end of a design count, by the sizes of their coalitions.

    Attributes
    ----------
    unknown, known : arrays, (m,)
        Weights of the pairs that are not evaluated and of those that are, with sum 1 each.
    open : array, (m,)
        The first weights of sizes that are not complete, with sum 1; 0 without such values.
    """

    unknown: FloatArray
    known: FloatArray
    open: FloatArray

    @classmethod
    def from_signs(cls, signs: FloatArray) -> SizeWeights:
        """Return the weights for coalitions, (n, M), that of all players first."""
        sizes, counts = smaller_sizes(signs > 0)[1:] - 1, pair_counts(signs.shape[1])
        checked = sizes[-_MOST_CHECKED:]
        known_shares = np.bincount(sizes, minlength=len(counts)) / counts
        present, n_present = np.unique(checked, return_counts=True)
        are_open = known_shares[present] < 1.0
        known_shares = np.clip(known_shares, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
        distances = np.abs(np.arange(len(counts))[:, None] - present)
        nearness = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / _width(signs))
        masses = (1.0 - known_shares) / np.arange(1, len(counts) + 1)
        of_sizes = masses / (nearness @ n_present) @ nearness
        of_known = known_shares[present] / n_present
        indices = np.searchsorted(present, checked)
        unknown, known = (of[indices] / of[indices].sum() for of in (of_sizes, of_known))
        of_open = unknown * are_open[indices]
        return cls(unknown, known, of_open / max(float(of_open.sum()), TINY))

    def scale_and_freedom(
        self, factors: FloatArray, whitened: FloatArray, spread: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return by how much the variances are larger than expected, and degrees of freedom.

        Parameters
        ----------
        factors : array, (..., m, m)
            The last rows and columns of the factor of the covariance of the values.
        whitened : array, (..., m, B)
            The last values, whitened by it.
        spread : array, (..., 1, B)
            The mean square of whitened values.

        Returns
        -------
        arrays, (..., 1, B)
        """
        inverses = inverses_of_lower(factors)
        precisions = (inverses**2).sum(axis=-2)[..., None]
        solved = _product(inverses.swapaxes(-1, -2), whitened)
        return self.scale_from_solved(precisions, solved, spread)

    def scale_from_solved(
        self, precisions: FloatArray, solved: FloatArray, spread: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the same, given the last entries of the diagonal of K⁻¹ and of K⁻¹ y.

        Parameters
        ----------
        precisions : array, (..., m, 1) or (..., m, B)
        solved : array, (..., m, B)
        spread : array, (..., 1, B)
        """
        squares = (solved / precisions) ** 2
        squares /= spread + TINY
        ratios = squares * precisions
        of_unknown = _product(self.unknown[None], squares)
        of_unknown /= _product(self.unknown[None], 1.0 / precisions)
        of_known = _product(self.known[None], ratios)
        unknown = _with_expected(of_unknown, self.unknown)
        excess = np.maximum(unknown / _with_expected(of_known, self.known), 1.0)
        return unknown * excess**_EXCESS, self._freedom(ratios)

    def _freedom(self, ratios: FloatArray) -> FloatArray:
        """Return twice the squared mean of squares over the variance of the mean.

        A mean of few large squares has few degrees of freedom.
        """
        number = self.open.sum() ** 2 / ((self.open**2).sum() + TINY)
        mean = _product(self.unknown[None], ratios) + TINY
        fourths = _product(self.open[None] ** 2, ratios**2) * number**2
        regular = 3.0 * _REGULAR_VALUES * mean**2
        freedom: FloatArray = 2.0 * ((number + _REGULAR_VALUES) * mean) ** 2 / (fourths + regular)
        return freedom


def checked_last(signs: FloatArray) -> IntArray:
    """Return an order of coalitions, (n, M), whose last ones have all sizes.

    The first coalition stays the first.
    """
    n = len(signs)
    if n - 1 <= _MOST_CHECKED:
        return np.arange(n)
    ranks = ranks_within_sizes(smaller_sizes(signs > 0)[::-1])[::-1].copy()
    ranks[0] = n
    order: IntArray = np.argsort(-ranks, kind="stable")
    return order


def last_rows(array: FloatArray) -> FloatArray:
    """Return the rows, (..., n, k), of the values that are predicted by all others."""
    n = array.shape[-2]
    return array[..., n - min(n - 1, _MOST_CHECKED) :, :]


def last_block(factors: FloatArray) -> FloatArray:
    """Return the rows and columns, (..., m, m), of these values, without the memory of others."""
    n = factors.shape[-1]
    start = n - min(n - 1, _MOST_CHECKED)
    block = factors[..., start:, start:]
    return block if start == 1 else block.copy()


def _width(signs: FloatArray) -> float:
    """Return the difference of sizes that count 1/e for each other."""
    return float(_NEARNESS * signs.shape[1])


def _product(matrices: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the product, column by column where all columns have the same matrix."""
    if columns.ndim > 2:
        product: FloatArray = matrices @ columns
        return product
    return column_by_column(lambda block: matrices @ block, columns)


def _with_expected(ratios: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ratios of weighted means, shrunk towards 1."""
    number = 1.0 / (weights**2).sum()
    shrunk: FloatArray = (number * ratios + _EXPECTED_VALUES) / (number + _EXPECTED_VALUES)
    return shrunk

"""Coefficients of pairs of players, as the even part of a game shows them.

The Shapley values need the odd part only. The even part comes from the same evaluations and shows
which players interact: its pairs have more variance than the triples of the odd part, and there are
fewer of them. The coefficients are posterior means under a prior of the even part, in which pairs
that stand out have a separate variance; see `even_kernel` and `sparse_triples`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ...array_types import FloatArray, IntArray
from .even_fitting import covariance_of_differences
from .even_kernel import even_kernel, even_log_norm
from .kernels import bounded_strengths
from .marginal_likelihood import whitened_by
from .variances_of_features import variances_of_their_own

_NOISE, _LEVEL = 0.03, 1.0
"""Variance of the noise, over that of the interactions, and the sum of the strengths: mostly pairs.
Fitted ones take a third more time, and lead to the same errors of Shapley values."""

_LEAST_STRENGTH = 0.2
"""Added to the strengths, in units of their root mean square."""

_LEARNED_FROM, _MOST_VALUES = 240, 720
"""Numbers of values that give the strengths, and at most the coefficients. With 1,024 values
instead of 720, errors of Shapley values are a few percent smaller, and take a tenth more time."""

_CANDIDATES = 300
"""Number of pairs that may get a separate variance: those with the most energy in the values."""


def even_differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the even part of games less its value at all players together, (R, n, K).

    It is multiplied by a power of two that brings it near 1. The games without an even part have 0,
    not rounding errors.

    Parameters
    ----------
    first, second : arrays, (R, n + 1, K)
        The values of coalitions and of their complements, those of all players together first.
    """
    values = (first + second) / 2
    differences: FloatArray = values[:, 1:] - values[:, :1]
    largest = np.maximum(np.abs(first), np.abs(second)).max(axis=1, keepdims=True)
    rounding = 4 * np.finfo(float).eps * largest
    most = np.abs(differences).max(axis=1, keepdims=True)
    # Products of six coefficients must be numbers. A power of two rounds nothing.
    return np.where(most > rounding, np.ldexp(differences, -np.frexp(most)[1]), 0.0)


def pair_coefficients(
    signs: FloatArray, differences: FloatArray, strengths: FloatArray
) -> FloatArray | None:
    """Return the coefficients of the products of two signs in a game, (M, M), or None.

    They are in the units of the differences. There are none if the game has no even part.

    Parameters
    ----------
    signs : array, (n + 1, M)
        The coalitions, that of all players first.
    differences : array, (n,)
        The `even_differences` of the game.
    strengths : array, (M,)
        The strengths of the odd part.
    """
    signs, differences = signs[: _MOST_VALUES + 1], differences[:_MOST_VALUES]
    if not differences[:_LEARNED_FROM].any():
        return None
    first = _EvenFit.from_strengths(
        signs[: _LEARNED_FROM + 1], differences[:_LEARNED_FROM], strengths
    )
    sizes = np.sqrt((first.coefficients(first.whitened) ** 2).sum(axis=1))
    learned = sizes + _LEAST_STRENGTH * np.sqrt((sizes**2).mean())
    return _EvenFit.from_strengths(signs, differences, learned).with_pairs_that_stand_out()


@dataclass(frozen=True)
class _EvenFit:
    """The values of an even part, whitened by their prior covariance L Lᵀ.

    Attributes
    ----------
    signs : array, (n + 1, M)
        The coalitions, that of all players first.
    factor : array, (n, n)
        L.
    whitened : array, (n,)
        L⁻¹ times the differences.
    variances : array, (M, M)
        Prior variances of the coefficients of pairs.
    """

    signs: FloatArray
    factor: FloatArray
    whitened: FloatArray
    variances: FloatArray

    @classmethod
    def from_strengths(
        cls, signs: FloatArray, differences: FloatArray, strengths: FloatArray
    ) -> _EvenFit:
        """Return the fit for strengths in these ratios."""
        t = bounded_strengths(_LEVEL * strengths / strengths.sum())
        kernel, _ = even_kernel(signs, signs, t)
        covariance = covariance_of_differences(kernel, _NOISE)
        factor = scipy.linalg.cholesky(covariance, lower=True, check_finite=False)
        whitened = whitened_by(factor, differences[:, None])[:, 0]
        return cls(signs, factor, whitened, np.exp(-even_log_norm(t)) * np.outer(t, t))

    def inner_products(self, whitened: FloatArray) -> FloatArray:
        """Return L⁻ᵀ times whitened values, times all differences of products of two signs."""
        solved = scipy.linalg.solve_triangular(
            self.factor, whitened, lower=True, trans="T", check_finite=False
        )
        signs = self.signs[1:]
        products: FloatArray = signs.T @ (signs * solved[:, None]) - solved.sum()
        return products

    def coefficients(self, whitened: FloatArray, own: FloatArray | float = 0.0) -> FloatArray:
        """Return the posterior means, (M, M), with further variances of pairs."""
        means: FloatArray = (self.variances + own) * self.inner_products(whitened)
        np.fill_diagonal(means, 0.0)
        return means

    def with_pairs_that_stand_out(self) -> FloatArray:
        """Return the coefficients, (M, M), where some pairs get a separate variance."""
        energies = self.variances * self.inner_products(self.whitened) ** 2
        first, second = _pairs_of_most_energy(energies)
        products = self.signs[:, first] * self.signs[:, second]
        features = whitened_by(self.factor, products[1:] - 1.0)
        n_pairs = len(energies) * (len(energies) - 1) // 2
        columns = np.ascontiguousarray(features.T)[None]
        of_pairs = variances_of_their_own(columns, self.whitened[None], n_pairs)[0]
        is_own = of_pairs > 0
        features = features[:, is_own] * np.sqrt(of_pairs[is_own])
        own = np.zeros_like(energies)
        own[first, second] = own[second, first] = of_pairs
        return self.coefficients(_without(self.whitened, features), own)


def _pairs_of_most_energy(energies: FloatArray) -> tuple[IntArray, IntArray]:
    """Return both players of the pairs of the largest energies, (M, M), in their order."""
    first, second = np.triu_indices(len(energies), 1)
    n_candidates = min(_CANDIDATES, len(first))
    largest = np.argpartition(-energies[first, second], n_candidates - 1)[:n_candidates]
    kept = np.sort(largest)
    return first[kept], second[kept]


def _without(values: FloatArray, features: FloatArray) -> FloatArray:
    """Return (I + F Fᵀ)⁻¹ times the values, for few features F."""
    inner = np.eye(features.shape[1]) + features.T @ features
    remaining: FloatArray = values - features @ np.linalg.solve(inner, features.T @ values)
    return remaining

"""Whether a game is smooth: mostly single players and pairs count, and larger sets hardly.

Coalitions of one and two players nearly determine the Shapley values of smooth games, those of
halves of the players say more about all others. Which a game is shows in its even part, a sum of
products of signs over sets of even size; see `kernels`. If only pairs interact, the values of
single players say how far halves of the players deviate on average. So few values tell the priors
of two players from those of larger sets.

The deviations of coalitions of the same size have the same sign in many models. So each prior has
an effect that all sets of the same size share, which is a function of the size of the coalition.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.polynomial.polynomial import polymul, polypow
from scipy.special import logsumexp

from ...array_types import BoolArray, FloatArray
from .factors import FactorCache, coalitions_key, inverses_of_lower, sorted_players
from .kernels import CONSTANT, Kernel, bounded_strengths
from .marginal_likelihood import column_by_column, half_log_determinants, log_evidence

_PAIRS_ONLY, _LARGER_SETS = (0.1, 0.3), (0.7, 1.2, 2.0, 3.5, 6.0)
"""Levels of the strengths, times the number of players, of priors of pairs, and of larger sets."""

_SHARED = (0.0, 0.03, 0.3)
"""Variances of the effect that all sets of a size share, over that of the effect of each alone."""

_NOISE = 1e-6
"""Variance of the noise, where that of the interactions is 1."""

_LEAST_LOG_RATIO = 1.0
"""Logarithm of how much better pairs explain the values of smooth games than larger sets do.
Measured with 10 and 13 players: Gaussian processes, support vector machines, forests and boosted
trees have more in 7 to 10 of 10 rows, networks in 1 to 4, and games that jump in none."""


def are_smooth(signs: FloatArray, evens: FloatArray) -> BoolArray:
    """Return which games are smooth, (R,).

    Parameters
    ----------
    signs : array, (n + 1, M)
        The coalitions, that of all players first.
    evens : array, (R, n, K)
        The even part of the games at the others; see `even_differences`. Outputs without an even
        part say nothing. The others count alike; with none, a game is not smooth.
    """
    n_rows, n, n_outputs = evens.shape
    tests = _tests(signs[:, sorted_players(signs)])
    of_all = np.zeros((n_rows, 1, n_outputs))  # differences from the value of all players
    values = np.concatenate([of_all, evens], axis=1).transpose(1, 0, 2)
    targets = np.ascontiguousarray(values).reshape(n + 1, -1)
    ratios = column_by_column(tests.log_ratios, targets).reshape(n_rows, n_outputs)
    says_something = evens.any(axis=1)
    total = np.where(says_something, ratios, 0.0).sum(axis=1)
    are: BoolArray = total > _LEAST_LOG_RATIO * np.maximum(says_something.sum(axis=1), 1)
    return are


@dataclass(frozen=True)
class _Tests:
    """Priors of the even part of a game, each as a map that makes its values independent.

    Attributes
    ----------
    maps : array, (P, n + 1, n + 1)
        The inverse factors of the covariances of the values.
    half_log_determinants : array, (P,)
        Of the covariances.
    are_of_pairs : array, (P,)
        Whether the priors expect interactions of two players only.
    """

    maps: FloatArray
    half_log_determinants: FloatArray
    are_of_pairs: BoolArray

    @classmethod
    def from_signs(cls, signs: FloatArray) -> _Tests:
        """Return those for coalitions, (n + 1, M), that of all players first."""
        levels = _PAIRS_ONLY + _LARGER_SETS
        noise = _NOISE * np.eye(len(signs))
        covariances = [
            kernel + CONSTANT + noise for level in levels for kernel in _kernels(signs, level)
        ]
        factors: FloatArray = np.linalg.cholesky(np.array(covariances))
        maps, halves = inverses_of_lower(factors), half_log_determinants(factors)
        of_levels = np.arange(len(levels)) < len(_PAIRS_ONLY)
        return cls(maps, halves, np.repeat(of_levels, len(_SHARED)))

    def log_ratios(self, targets: FloatArray) -> FloatArray:
        """Return by how much pairs explain values, (n, B), better than larger sets, (1, B)."""
        evidence = log_evidence(self.half_log_determinants, self.maps @ targets)
        of_pairs, of_larger = (
            logsumexp(evidence[are], axis=0) - np.log(np.count_nonzero(are))
            for are in (self.are_of_pairs, ~self.are_of_pairs)
        )
        ratios: FloatArray = (of_pairs - of_larger)[None]
        return ratios


def _kernels(signs: FloatArray, level: float) -> list[FloatArray]:
    """Return the kernels of even sets of one level, (n + 1, n + 1), for each shared variance."""
    n_players = signs.shape[1]
    strengths = bounded_strengths(np.full(n_players, level / n_players))
    kernel = Kernel.at(signs, strengths, is_even=True).interactions
    counts = np.array([comb(n_players, size) for size in range(n_players + 1)])
    variances = counts * strengths[0] ** np.arange(n_players + 1)
    is_even = np.arange(n_players + 1) % 2 == 0
    variances[~is_even | (np.arange(n_players + 1) == 0)] = 0.0
    features = _sums_over_sets(signs) * np.sqrt(variances / variances.sum() / counts)
    return [kernel + shared * (features @ features.T) for shared in _SHARED]


def _sums_over_sets(signs: FloatArray) -> FloatArray:
    """Return the sums over all sets of each size of the products of their signs, (n, M + 1).

    Those of m members and l others are the coefficients of (1 + x)^m (1 − x)^l.
    """
    n_players = signs.shape[1]
    of_sizes = [
        polymul(polypow([1, 1], n_players - others), polypow([1, -1], others))
        for others in range(n_players + 1)
    ]
    sums: FloatArray = np.array(of_sizes)[(signs < 0).sum(axis=1)]
    return sums


def _tests(signs: FloatArray) -> _Tests:
    """Return the priors for coalitions whose players are sorted; they are kept for later calls."""
    return _cache.get(coalitions_key(signs), lambda: _Tests.from_signs(signs))


_cache: FactorCache[_Tests] = FactorCache()

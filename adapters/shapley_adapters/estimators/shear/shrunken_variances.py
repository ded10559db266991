"""Variances that are estimated from few draws, shrunk towards those of the other players.

Smyth, Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
Experiments, 2004: the players' variances are draws of one scaled inverse χ² distribution. Its scale
and degrees of freedom are estimated from the variances of all players.
"""

from __future__ import annotations

import numpy as np
import scipy.special

from ...array_types import FloatArray

_MIN_PLAYERS = 3
"""Without this many players with known variances, no variance is shrunk."""

_MIN_EXCESS = 1e-6
"""Smallest variance of the logarithms beyond that of chance; below it, all players are alike."""

_STEPS = 8
"""Steps of Newton's method. Each doubles the digits, and seven reach all of them."""


def shrink_variances(
    variances: FloatArray, freedom: FloatArray, rounding: FloatArray | float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return the posterior means of the variances, and their degrees of freedom.

    Variances that consist of rounding errors, such as those of null players and of players without
    interactions, are returned unchanged, and the others do not depend on them.

    Parameters
    ----------
    variances : array, (R, M, K)
        Estimate for each player; NaN if there is none.
    freedom : array, (R, M, 1)
        Their degrees of freedom.
    rounding : array, (R, M, K), or float
        Upper bound of variances that consist of rounding errors.

    Returns
    -------
    arrays, (R, M, K) each
    """
    freedom = np.broadcast_to(freedom, variances.shape)
    is_known = variances > rounding
    n = is_known.sum(axis=1, keepdims=True)
    is_known &= n >= _MIN_PLAYERS
    n = np.maximum(n, _MIN_PLAYERS)
    half = np.where(is_known, freedom, 1.0) / 2
    logs = np.log(np.where(is_known, variances, 1.0)) - scipy.special.digamma(half) + np.log(half)

    def mean(numbers: FloatArray) -> FloatArray:
        average: FloatArray = np.where(is_known, numbers, 0.0).sum(axis=1, keepdims=True) / n
        return average

    centre = mean(logs)
    scatter = mean((logs - centre) ** 2) * n / (n - 1)
    excess = scatter - mean(_trigamma(half))
    half_prior = _inverse_trigamma(np.maximum(excess, _MIN_EXCESS))
    prior_scale = np.exp(centre + scipy.special.digamma(half_prior) - np.log(half_prior))
    posterior_freedom = freedom + 2 * half_prior
    posterior = (2 * half_prior * prior_scale + freedom * variances) / posterior_freedom
    return np.where(is_known, posterior, variances), np.where(is_known, posterior_freedom, freedom)


def _trigamma(values: FloatArray) -> FloatArray:
    """Return the trigamma function; it is computed once for each distinct value."""
    distinct, indices = np.unique(values, return_inverse=True)
    of_distinct: FloatArray = scipy.special.polygamma(1, distinct)
    return of_distinct[indices].reshape(values.shape)


def _inverse_trigamma(values: FloatArray) -> FloatArray:
    """Return the arguments at which the trigamma function has `values` > 0: Newton's method."""
    x: FloatArray = 0.5 + 1 / values  # below the solution
    for _ in range(_STEPS):
        trigamma = scipy.special.polygamma(1, x)
        x = x + trigamma * (1 - trigamma / values) / scipy.special.polygamma(2, x)
    return x

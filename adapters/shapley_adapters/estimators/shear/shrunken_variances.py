"""Variances told from few draws, made steadier by those of the other players.

Smyth, Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
Experiments, 2004: the players' variances are taken for draws of one scaled inverse χ² distribution,
whose scale and degrees of freedom are told from all of them.
"""

from __future__ import annotations

import numpy as np
import scipy.special

from ...array_types import FloatArray

_FEWEST = 3
"""Players with known variances without which nothing is told from the others."""

_LEAST_EXCESS = 1e-6
"""Of the logarithms' variance over what chance explains: below, all players are taken for alike."""

_STEPS = 8
"""Of Newton's method, which doubles the digits: seven reach all of them from where it starts."""


def moderated(
    variances: FloatArray, freedom: FloatArray, rounding: FloatArray | float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return the means of the variances given all of them, and their degrees of freedom.

    Players without any variance but that of rounding, such as null players and those that interact
    with nobody, keep theirs and tell nothing of the others.

    Parameters
    ----------
    variances : array, (R, M, K)
        Estimates for each player; NaN where there are none.
    freedom : array, (R, M, 1)
        Their degrees of freedom.
    rounding : array, (R, M, K), or float
        Up to where variances may be nothing but rounding.

    Returns
    -------
    arrays, (R, M, K) each
    """
    freedom = np.broadcast_to(freedom, variances.shape)
    is_known = variances > rounding
    n = is_known.sum(axis=1, keepdims=True)
    is_known &= n >= _FEWEST
    n = np.maximum(n, _FEWEST)
    half = np.where(is_known, freedom, 1.0) / 2
    logs = np.log(np.where(is_known, variances, 1.0)) - scipy.special.digamma(half) + np.log(half)

    def mean(numbers: FloatArray) -> FloatArray:
        found: FloatArray = np.where(is_known, numbers, 0.0).sum(axis=1, keepdims=True) / n
        return found

    centre = mean(logs)
    scatter = mean((logs - centre) ** 2) * n / (n - 1)
    excess = scatter - mean(scipy.special.polygamma(1, half))
    half_shared = _inverse_trigamma(np.maximum(excess, _LEAST_EXCESS))
    shared = np.exp(centre + scipy.special.digamma(half_shared) - np.log(half_shared))
    together = freedom + 2 * half_shared
    steadier = (2 * half_shared * shared + freedom * variances) / together
    return np.where(is_known, steadier, variances), np.where(is_known, together, freedom)


def _inverse_trigamma(values: FloatArray) -> FloatArray:
    """Return where the trigamma function takes positive values: Newton's method from below."""
    places: FloatArray = 0.5 + 1 / values
    for _ in range(_STEPS):
        reached = scipy.special.polygamma(1, places)
        places = places + reached * (1 - reached / values) / scipy.special.polygamma(2, places)
    return places

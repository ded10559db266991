"""Sums of the means of strata, and their standard errors if a draw serves all players."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..array_types import AttributionArray, FloatArray, ValueArray
from ..errors_of_means import pooled_variances
from .protocol import Solution


def solution_by_strata(
    certain: AttributionArray, strata: Sequence[FloatArray], values: ValueArray, efficient: bool
) -> Solution:
    """Return the certain part plus the mean of the draws of each stratum.

    A draw adds a number to every player, and these numbers depend on each other. Therefore the
    efficiency residual is shared within each draw, before variances are estimated. The standard
    errors then need no assumption on the correlation of the players' errors.

    Parameters
    ----------
    certain : array, (R, M, K)
        The part of the attributions that does not depend on the draws.
    strata : sequence of arrays, (R, n, M, K)
        The n independent draws of each stratum, which are added to the players. n is at least 1.
    values : array, (R, C, K)
        Coalition values; the first is that of the empty coalition, the second of all players.
    efficient : bool
        Whether all players get an equal share of v(N) − v(∅) − Σφ.
    """
    if efficient:
        share = (values[:, 1] - values[:, 0])[:, None] / certain.shape[1]
        certain = certain - certain.mean(axis=1, keepdims=True) + share
        strata = [draws - draws.mean(axis=2, keepdims=True) for draws in strata]
    attributions = sum((draws.mean(axis=1) for draws in strata), start=certain)
    variances = np.array([_variance_of_mean(draws) for draws in strata])
    free = np.array([draws.shape[1] - 1 for draws in strata])
    pooled, freedom = pooled_variances(variances.sum(axis=0), _freedom(variances, free))
    return Solution(attributions, np.sqrt(pooled), freedom)


def _variance_of_mean(draws: FloatArray) -> FloatArray:
    """Return the variance of the mean over axis 1; NaN if there is only one draw."""
    n = draws.shape[1]
    if n < 2:
        return np.full_like(draws[:, 0], np.nan)
    variance: FloatArray = draws.var(axis=1, ddof=1) / n
    return variance


def _freedom(variances: FloatArray, free: FloatArray) -> FloatArray:
    """Return the degrees of freedom of sums of variances over axis 0 (Welch and Satterthwaite).

    The square of an estimated variance is too large by the factor 1 + 2 / f on average, which the
    number 2 takes back: many strata of two draws each have about as many degrees of freedom.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = variances**2 / (free[:, None, None, None] + 2)
        freedom: FloatArray = variances.sum(axis=0) ** 2 / squares.sum(axis=0) - 2
    # All draws of a player may be equal.
    return np.where(np.isnan(freedom), float(free.sum()), freedom)

"""Standard errors of means over draws, and of sums and differences of estimates."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array_types import FloatArray


def mean_and_error(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean over axis 1 and its standard error; NaN if there are too few draws."""
    n = draws.shape[1]
    unknown = np.full((len(draws), *draws.shape[2:]), np.nan)
    mean = draws.mean(axis=1) if n else unknown
    return mean, draws.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else unknown


_PRIOR_DRAWS = 4.0
"""The mean variance of all players counts as that of so many draws, as measured on votes, maxima,
bankruptcies, airports, paths, networks and trees with 11 players."""


def pooled_variances(
    variances: FloatArray, freedom: FloatArray | float
) -> tuple[FloatArray, FloatArray | float]:
    """Return variances, (R, M, K), that few draws do not make 0, and their degrees of freedom.

    A player whose contribution was the same in all of a few draws may still have another one, as in
    votes. The variance of each player is therefore averaged with the mean over all players, which
    is that of some draws more. Where all players have none, as in additive games, it stays 0.

    Parameters
    ----------
    variances : array, (R, M, K)
        The variance of a draw of each player.
    freedom : array or float
        Their degrees of freedom.
    """
    mean = variances.mean(axis=1, keepdims=True)
    pooled = (freedom * variances + _PRIOR_DRAWS * mean) / (freedom + _PRIOR_DRAWS)
    return pooled, freedom + 1


def pooled_mean_and_error(draws: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return means over axis 1, standard errors of pooled variances, and degrees of freedom.

    The errors are NaN if there are too few draws.
    """
    mean, error = mean_and_error(draws)
    n = draws.shape[1]
    if n < 2:
        return mean, error, n - 1
    variances, freedom = pooled_variances(n * error**2, n - 1)
    return mean, np.sqrt(variances / n), float(freedom)


def errors_of_sums(first: Any, second: Any, are_independent: bool) -> Any:
    """Return the standard error of a sum or difference of two estimates.

    The root of the sum of squares if the errors are independent. Otherwise the sum of the errors,
    which is the largest that any correlation allows. The same rule holds for half widths of
    intervals.
    """
    return np.hypot(first, second) if are_independent else first + second

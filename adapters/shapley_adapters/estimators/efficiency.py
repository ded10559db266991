"""Efficiency for estimates that are not efficient."""

from __future__ import annotations

import numpy as np

from ..array_types import AttributionArray, FloatArray, ValueArray
from .protocol import Solution


def share_residual(
    attributions: AttributionArray,
    variances: FloatArray,
    values: ValueArray,
    shares: FloatArray,
    freedom: FloatArray | float = np.inf,
) -> Solution:
    """Add the efficiency residual v(N) − v(∅) − Σφ to the players, in proportion to `shares`.

    The expected residual of an unbiased estimate is 0. The result is therefore unbiased if the
    shares do not depend on the draws.

    Parameters
    ----------
    attributions, variances : array, (R, M, K)
        The estimates and their variances, independent of each other.
    values : array, (R, C, K)
        Coalition values; the first is that of the empty coalition, the second of all players.
    shares : array, (R, M) or (1, M)
        The share of each player; all 0 for no change.
    freedom : array or float
        Degrees of freedom of the variances. They are returned unchanged, because by far the
        largest part of a player's variance is its variance before the residual is added.
    """
    total = values[:, 1] - values[:, 0]
    residuals = total[:, None] - attributions.sum(axis=1, keepdims=True)  # (R, 1, K)
    shares = shares[:, :, None]
    # φ_i includes its share of the error of every player, also of player i.
    variances = (1 - 2 * shares) * variances + shares**2 * variances.sum(axis=1, keepdims=True)
    errors = np.sqrt(np.maximum(variances, 0.0))
    return Solution(attributions + shares * residuals, errors, freedom)

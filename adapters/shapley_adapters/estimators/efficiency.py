"""Efficiency for estimates that do not have it by themselves."""

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
    """Add the efficiency residual v(N) − v(∅) − Σφ to the players by given shares.

    The residual of an unbiased estimate is nothing on average, so that no bias enters where the
    shares do not depend on the draws.

    Parameters
    ----------
    attributions, variances : array, (R, M, K)
        The estimates and their variances, independent of each other.
    values : array, (R, C, K)
        Values of which the first is that of nobody, the second that of all players.
    shares : array, (R, M) or (1, M)
        Which part each player takes; all 0 where the residual is left alone.
    freedom : array or float
        Degrees of freedom of the variances. Each player's own counts, by far the largest part.
    """
    total = values[:, 1] - values[:, 0]
    residuals = total[:, None] - attributions.sum(axis=1, keepdims=True)  # (R, 1, K)
    shares = shares[:, :, None]
    # φ_i takes its share of every player's error, its own included.
    variances = (1 - 2 * shares) * variances + shares**2 * variances.sum(axis=1, keepdims=True)
    errors = np.sqrt(np.maximum(variances, 0.0))
    return Solution(attributions + shares * residuals, errors, freedom)

"""The share of the prior in the attributions, which the evaluated values do not determine."""

from __future__ import annotations

import numpy as np

from ...array_types import AttributionArray, FloatArray


def prior_shares(means: AttributionArray, standard_errors: AttributionArray) -> FloatArray:
    """Return the share of the prior in the variance of the attributions over the players, (R,).

    The prior expects equal attributions, which sum to the known total. Given the values, the sum of
    the squared distances of the attributions from their average is expected to be that of the
    posterior means plus the posterior variances. The values determine the first part; the second
    part comes from the prior. The share is that of the second part, over all players and outputs
    of a row: 1 before any value is known, 0 if the attributions are exact. Its square
    root is the expected error of the means, relative to the differences between attributions.

    Parameters
    ----------
    means, standard_errors : arrays, (R, M, K)
        Posterior means and standard deviations of the attributions.
    """
    determined = ((means - means.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2))
    undetermined = (standard_errors**2).sum(axis=(1, 2))
    expected = determined + undetermined
    shares: FloatArray = undetermined / np.where(expected > 0, expected, 1.0)
    return shares

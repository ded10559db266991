"""How many features an explanation uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from ..array_types import FloatArray
from .attribution_arrays import checked_attributions


def complexity(attributions: Any) -> FloatArray:
    """Return the entropy of the features' shares in an explanation; less is simpler.

    μ_C of Bhatt, Weller and Moura (Evaluating and aggregating feature-based model explanations):
    −Σ p_i ln p_i with ``p_i = |φ_i| / Σ|φ|``. From 0, for a single feature, to ln M, for M features
    of equal size. It does not depend on the scale. An explanation of zeros has complexity 0.

    Parameters
    ----------
    attributions : array, tensor or Explanation, (…, M)
        Features last.

    Returns
    -------
    array, (…)
        In nats. No evaluations of the model.

    Raises
    ------
    InvalidArgumentError
        If an attribution is not finite.

    Examples
    --------
    >>> from shapley_adapters.criteria import complexity
    >>> complexity([[1.0, -1.0], [3.0, 0.0]]).round(3)
    array([0.693, 0.   ])
    """
    return entropy_of_shares(checked_attributions("attributions", attributions))


def entropy_of_shares(values: FloatArray) -> FloatArray:
    """Return the complexity of finite attributions, (…, M)."""
    sizes = np.abs(values)
    largest = sizes.max(axis=-1, keepdims=True)
    sizes = sizes / np.where(largest > 0, largest, 1.0)  # so that no sum overflows
    total = sizes.sum(axis=-1, keepdims=True)
    entropies: FloatArray = scipy.special.entr(sizes / np.where(total > 0, total, 1.0)).sum(axis=-1)
    return entropies

"""What the value of a connected set is worth to its members, and to the nodes next to it."""

from __future__ import annotations

import numpy as np
import scipy.special

from ..array_types import FloatArray, IntArray


def set_weights(sizes: IntArray, n_next: IntArray) -> FloatArray:
    """Return (u − 1)! b! / (u + b)! for sets of u nodes with b nodes next to them.

    It is the chance that in a random order a given member is the last of the set to arrive, and
    all of the boundary comes after it: that the member completes the set as a component.
    """
    weights: FloatArray = 1.0 / (sizes * scipy.special.comb(sizes + n_next, n_next))
    return weights


def boundary_weights(sizes: IntArray, n_next: IntArray) -> FloatArray:
    """Return u! (b − 1)! / (u + b)!, the chance that a given node of the boundary ends it again.

    It is 0 where there is no boundary.
    """
    with np.errstate(divide="ignore"):
        weights = 1.0 / (n_next * scipy.special.comb(sizes + n_next, n_next))
    return np.where(n_next > 0, weights, 0.0)

"""Weights of a connected set's value in the Shapley values of its members and its boundary."""

from __future__ import annotations

import numpy as np
import scipy.special

from ..array_types import FloatArray, IntArray


def set_weights(sizes: IntArray, n_next: IntArray) -> FloatArray:
    """Return (u − 1)! b! / (u + b)! for sets of u nodes with b nodes in their boundaries.

    It is the probability that in a random order a given member is the last one of the set, and the
    whole boundary comes after it, so that the member completes the set as a component.
    """
    weights: FloatArray = 1.0 / (sizes * scipy.special.comb(sizes + n_next, n_next))
    return weights


def boundary_weights(sizes: IntArray, n_next: IntArray) -> FloatArray:
    """Return u! (b − 1)! / (u + b)!, the probability that a given boundary node extends the set.

    That is: all members come first, then this node before the rest of the boundary. It is 0 if
    there is no boundary.
    """
    with np.errstate(divide="ignore"):
        weights = 1.0 / (n_next * scipy.special.comb(sizes + n_next, n_next))
    return np.where(n_next > 0, weights, 0.0)

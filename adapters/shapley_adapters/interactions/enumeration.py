"""Interactions from the values of all coalitions."""

from __future__ import annotations

import numpy as np

from ..array_types import CoalitionArray, FloatArray, ValueArray
from .indices import pairs_of, weights_of_members
from .result import PairSolution

_COALITIONS_AT_ONCE = 2**14


def enumerated_pairs(index: str, coalitions: CoalitionArray, values: ValueArray) -> PairSolution:
    """Return the interactions of all pairs, exact up to rounding.

    Parameters
    ----------
    index : str
        The name of the index.
    coalitions : array, (2^M, M)
        All coalitions.
    values : array, (R, 2^M, K)
        Their values.
    """
    n_rows, n_coalitions, n_outputs = values.shape
    n_players = coalitions.shape[1]
    if n_players < 2:
        return PairSolution.exact(np.zeros((n_rows, 0, n_outputs)), n_players)
    sums = np.zeros((n_rows, n_outputs, n_players, n_players))
    for start in range(0, n_coalitions, _COALITIONS_AT_ONCE):
        part = slice(start, start + _COALITIONS_AT_ONCE)
        sums += _sums(index, coalitions[part], values[:, part])
    first, second = pairs_of(n_players)
    return PairSolution.exact(sums[:, :, first, second].swapaxes(1, 2), n_players)


def _sums(index: str, coalitions: CoalitionArray, values: ValueArray) -> FloatArray:
    """Return the weighted sums of the values of some coalitions, (R, K, M, M).

    With z = 1 for members and 0 for others, the weight of v(S) is quadratic in z. With the weights
    a, b and c for none, one and both of the players in S, it is
    a + (b − a)(z_i + z_j) + (a − 2b + c) z_i z_j.
    """
    members = coalitions.astype(np.float64)
    weights = weights_of_members(index, coalitions.shape[1])
    absent, single, joint = weights[:, coalitions.sum(axis=1)]
    by_output = values.swapaxes(1, 2)  # (R, K, C)
    of_pairs = (members.T * (by_output * (absent - 2 * single + joint))[:, :, None]) @ members
    of_players = (by_output * (single - absent)) @ members
    constant = by_output @ absent
    sums: FloatArray = of_pairs + of_players[..., None] + of_players[..., None, :]
    sums += constant[..., None, None]
    return sums

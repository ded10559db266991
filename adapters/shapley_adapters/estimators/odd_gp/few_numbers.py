"""Uncertainty of games whose values are few numbers, such as labels and votes.

Labels are the same for most coalitions, and jump for a few. If the evaluated coalitions show no
jump, few interactions explain them without remainder, and the posterior is sure that there is none.
But after n values without an event, the event has a chance of 1 / (n + 1) or so in the next one
(Laplace's rule of succession). So each pair of complements that is not evaluated may deviate from
its posterior mean with this chance, by as much as the values of the game differ from 0.

Games of other values need no such term: a rule or an interaction that is missing would change the
values of many coalitions.
"""

from __future__ import annotations

import numpy as np

from ...array_types import BoolArray, FloatArray
from .attribution_covariances import left_of_other_pairs, shapley_weights, squared_weights

_ROUNDING = 1e-9
"""Values that differ by less, relative to the largest, are the same number."""


def variances_of_jumps(signs: FloatArray, targets: FloatArray) -> FloatArray:
    """Return the variances of the Shapley values, (M, B), by jumps at pairs not evaluated.

    They are 0 for targets of many numbers.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    targets : array, (n, B)
        Their values.
    """
    n, n_players = signs.shape
    variances = np.zeros((n_players, targets.shape[1]))
    are_few = _take_few_numbers(targets)
    if are_few.any():
        of_all = squared_weights(n_players)
        of_others = left_of_other_pairs(of_all, shapley_weights(signs), np.ones(n))
        # Contiguous values: the order of a sum does not depend on the other targets.
        squares = (np.ascontiguousarray(targets.T) ** 2).mean(axis=1)
        variances[:] = of_others[:, None] * (squares / (n + 1)) * are_few
    return variances


def _take_few_numbers(targets: FloatArray) -> BoolArray:
    """Return whether the sizes of the values, (n, B), are at most √n different numbers."""
    sizes = np.sort(np.abs(targets), axis=0)
    are_different = np.diff(sizes, axis=0) > _ROUNDING * sizes[-1]
    few: BoolArray = (are_different.sum(axis=0) + 1) ** 2 <= len(targets)
    return few

"""Uncertainty of effects that fade with the size of coalitions, where few sizes are evaluated.

In a maximum, a large number counts much in small coalitions and hardly in halves of the players.
With many players and few evaluations, single players and halves are most of what is evaluated, and
a posterior interpolates between them. Left-out values are predicted well, and do not show that the
effects at the other sizes are too small or too large. But then all attributions are off by about
the same factor from their mean.

Attributions are means of effects over all sizes. So where effects do not depend on the size, the
slope of the values on the sums of attributions is 1 at each size. The difference between the slopes
at single players and at halves, over the number of sizes, is the share of the attributions that
single players add. Its square says how uncertain the factor is, times the share of the sizes that
are hardly evaluated.

Games whose effects grow with the size, such as votes, have noise for that in the prior.
"""

from __future__ import annotations

import numpy as np

from ...array_types import FloatArray, IntArray
from ...coalitions.sizes import smaller_sizes
from .marginal_likelihood import column_by_column

_FEWEST_PLAYERS = 14
"""With fewer players, the design has coalitions of all sizes."""

_NEAR_HALVES = 2
"""Sizes that differ by at most this from half of the players are halves."""

HALF_KNOWN = 10.0
"""So many pairs of a size make its effects half as uncertain as none."""

_OF_FADING = 18.0
"""Standard deviation of the factor, in units of the relative posterior error, where single players
alone would make the attributions. Measured on maxima and sums of unanimity games with 16 to 100
players."""


def variances_of_fading(
    signs: FloatArray, targets: FloatArray, means: FloatArray, variances: FloatArray
) -> FloatArray:
    """Return what effects that fade with the size add to the variances, (M, B).

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    targets : array, (n, B)
        Their values.
    means, variances : arrays, (M, B)
        The posterior of the Shapley values.
    """
    n_players = signs.shape[1]
    sizes = smaller_sizes(signs > 0)
    singles, halves = (
        np.flatnonzero(sizes == 1),
        np.flatnonzero(sizes >= n_players // 2 - _NEAR_HALVES),
    )
    if n_players < _FEWEST_PLAYERS or len(singles) < 2 or not len(halves):
        return np.zeros_like(means)
    # Each sum runs over contiguous memory: its order is the same as for one game alone.
    of_games, all_variances = (np.ascontiguousarray(array.T) for array in (means, variances))
    equal = of_games.mean(axis=1)
    own = of_games - equal[:, None]  # (B, M)
    effects = column_by_column(lambda block: signs @ block, own.T) / 2
    others = targets - signs.sum(axis=1)[:, None] * equal / 2
    fading = _slopes(effects, others, singles) - _slopes(effects, others, halves)
    of_singles = np.maximum(fading, 0.0) / (n_players // 2)
    factors = _OF_FADING * _unknown_share(sizes[1:], n_players) * of_singles**2
    squares = (own**2).sum(axis=1)
    relative = _ratios(all_variances.sum(axis=1), squares, 0.0)
    added: FloatArray = (own**2 * (factors**2 * relative)[:, None]).T
    return added


def _slopes(effects: FloatArray, values: FloatArray, indices: IntArray) -> FloatArray:
    """Return the slopes of the values on the effects, (n, B), at some coalitions; 1 if unknown."""
    x, y = (np.ascontiguousarray(array[indices].T) for array in (effects, values))
    return _ratios((x * y).sum(axis=1), (x**2).sum(axis=1), 1.0)


def _ratios(numbers: FloatArray, others: FloatArray, otherwise: float) -> FloatArray:
    """Return the ratios, and a number where they are not defined."""
    return np.divide(numbers, others, out=np.full_like(numbers, otherwise), where=others > 0)


def _unknown_share(sizes: IntArray, n_players: int) -> float:
    """Return the share of the sizes that are not evaluated; each counts less by its pairs, (n,)."""
    counts = np.bincount(sizes, minlength=n_players // 2 + 1)[1:]
    return float((HALF_KNOWN / (HALF_KNOWN + counts)).mean())

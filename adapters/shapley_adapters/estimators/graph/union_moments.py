"""What random orders say about unions, and what is unknown about the players of those not split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...array_types import FloatArray, IntArray, ValueArray
from .nested_orders import NestedOrders

_PRIOR_DRAWS = 4.0
"""The variance that a union has by its share of all counts as that of so many pairs of orders."""


@dataclass(frozen=True)
class UnionMoments:
    """Means and variances of the contributions of the unions that are not split.

    Attributes
    ----------
    unsplit : array, (w,)
        These unions, as places among those that the design has seen.
    n_seen : int
        The number of those.
    sizes : array, (w,)
        The number of players of each.
    means : array, (R, w, K)
        The mean contribution of each.
    variances : array, (R, w, K)
        The variance of this mean.
    freedom : float
        The degrees of freedom of the variances.
    unknown : array, (R, w, K)
        The expected square of the distance of a player's value from the equal share of its union.
    n_splits : int
        The number of splits that say what is unknown.
    """

    unsplit: IntArray
    n_seen: int
    sizes: IntArray
    means: FloatArray
    variances: FloatArray
    freedom: float
    unknown: FloatArray
    n_splits: int

    @classmethod
    def from_values(cls, design: NestedOrders, values: ValueArray) -> UnionMoments:
        """Return those of a design with the values of its coalitions, (R, C, K)."""
        contributions = design.contributions(values)  # (R, n, U, 2, K)
        squares = (contributions**2).mean(axis=(2, 3))
        sizes = design.unions.sizes[design.seen]
        wholes, parts = design.splits
        exponents = _decay(squares, sizes, wholes, parts)
        unsplit = np.flatnonzero(~design.is_split)
        draws = contributions[:, unsplit].mean(axis=3)  # (R, w, U, K)
        squares, sizes, n_pairs = squares[:, unsplit], sizes[unsplit], draws.shape[2]
        means = draws.mean(axis=2)
        own = draws.var(axis=2, ddof=1) / n_pairs
        # Few draws may be equal by chance. Larger contributions have larger variances.
        weights = squares + squares.mean(axis=1, keepdims=True)
        shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        expected = own.sum(axis=1, keepdims=True) * shares
        free = n_pairs - 1
        variances = (free * own + _PRIOR_DRAWS * expected) / (free + _PRIOR_DRAWS)
        unknown = _squares_within(squares, means, sizes, exponents)
        return cls(
            unsplit, len(design.seen), sizes, means, variances, free + 1.0, unknown, len(wholes)
        )

    def unknown_sums(self) -> FloatArray:
        """Return the sum of what is unknown over the players of each union seen, (R, n)."""
        sums = np.zeros((len(self.unknown), self.n_seen))
        sums[:, self.unsplit] = (self.unknown * self.sizes[:, None]).sum(axis=2)
        return sums


def _squares_within(
    squares: FloatArray, means: FloatArray, sizes: IntArray, exponents: FloatArray
) -> FloatArray:
    """Return the expected squared distance of players from the equal share of their union.

    The squares of the s players of a union sum to s^-α times the mean square of its contributions;
    the square of the equal share is taken off. The mean over all players whose union is not split
    counts as much as this number: a union may have small contributions, and large ones in it that
    cancel. Without that, 95 % intervals of texts hold .8 of the values.
    """
    n_players = np.where(sizes > 1, sizes, 0)[:, None]
    of_players = squares * sizes[:, None] ** -(1.0 + exponents)
    own = np.maximum(of_players - (means / sizes[:, None]) ** 2, 0.0)
    mean = (own * n_players).sum(axis=1, keepdims=True) / max(1, n_players.sum())
    expected: FloatArray = np.where(n_players > 0, (own + mean) / 2, 0.0)
    return expected


def _decay(
    squares: FloatArray, sizes: IntArray, wholes: IntArray, parts: list[IntArray]
) -> FloatArray:
    """Return how fast squares of contributions fall from unions to their parts, (R, 1, K).

    The α for which the squares of all parts sum to those of the unions times (number of parts)^-α.
    It is 1 where the parts of all unions have equal values, 0 where one part has all of it, and
    negative where parts cancel.

    Parameters
    ----------
    squares : array, (R, n, K)
        The mean square of the contributions of each union.
    sizes : array, (n,)
        Its number of players.
    wholes : array, (w,)
        The unions that are split, as places.
    parts : list of arrays
        The parts of each of them.
    """
    before = squares[:, wholes]
    after = np.stack([squares[:, of_union].sum(axis=1) for of_union in parts], axis=1)
    # Equally large parts have this logarithm of their number; others have less.
    shares = [sizes[of_union] / sizes[of_union].sum() for of_union in parts]
    logs = np.array([-(share * np.log(share)).sum() for share in shares])
    total = before.sum(axis=1, keepdims=True)
    steps = (logs[:, None] * before).sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = -np.log(after.sum(axis=1, keepdims=True) / total) * total / steps
    clipped: FloatArray = np.clip(np.nan_to_num(exponents, nan=0.0), -1.0, 1.0)
    return clipped

"""Covariances of many values, without the memory of their parts.

`OddKernel` keeps the kernels of degree 1 and of interactions, because a fit needs them apart. With
many values, a posterior needs one covariance only, and its factor needs only the part above the
diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...array_types import FloatArray, IntArray
from .kernels import Prior, log_norm

_SLAB_NUMBERS = 16_000
"""Numbers that are computed together; they fit into the processor's cache."""


@dataclass(frozen=True)
class UpperKernel:
    """The kernel of a stack of games between many coalitions, computed where it is needed.

    Attributes
    ----------
    signs : array, (n, M)
        1 where the player is in the coalition, −1 elsewhere.
    strengths : array, (R, M)
        Those of the players.
    """

    signs: FloatArray
    strengths: FloatArray

    def subset_games(self, games: IntArray) -> UpperKernel:
        """Return the kernels of some games of a stack."""
        return UpperKernel(self.signs, self.strengths[games])

    def combined(
        self,
        prior: Prior,
        out: FloatArray | None = None,
        features: list[FloatArray] | None = None,
    ) -> FloatArray:
        """Return the covariances of the values, (R, n, n), without noise; written to `out`.

        They include that of features, (n, k) of each game, whose coefficients have variance 1.
        Numbers below the diagonals have no meaning.
        """
        n = len(self.signs)
        if features is None:
            features = [np.empty((n, 0))] * len(self.strengths)
        matrices = np.zeros((len(self.strengths), n, n)) if out is None else out
        variances = np.broadcast_to(prior.interactions, len(matrices))
        of_games = zip(matrices, self.strengths, variances, features, strict=True)
        for matrix, strengths, variance, own in of_games:
            _fill(matrix, self.signs, strengths, float(variance), own)
        return matrices


def _fill(
    matrix: FloatArray,
    signs: FloatArray,
    strengths: FloatArray,
    variance: float,
    features: FloatArray,
) -> None:
    """Write the covariance of one game, (n, n), on the diagonal and above it.

    With sinh(x) = ½ [exp(x) − exp(−x)], as in `kernels`; the kernel of degree 1, and the part of
    sinh that is of degree 1, are one matrix product with that of the features.
    """
    n, n_players = signs.shape
    scale = log_norm(strengths)
    half = 0.5 * variance * np.exp(0.5 * np.log1p(-(strengths**2)).sum() - scale)
    of_sinh = signs * np.arctanh(strengths)
    of_degree_one = signs * (1 / n_players - variance * np.exp(-scale) * strengths)
    columns = np.ascontiguousarray(signs.T)
    linear = np.concatenate([of_degree_one, features], axis=1)
    linear_columns = np.concatenate([columns, features.T])
    n_rows = max(1, _SLAB_NUMBERS // n)
    memory = np.empty((2, n_rows * n))
    for start in range(0, n, n_rows):
        rows = slice(start, start + n_rows)
        shape = min(n_rows, n - start), n - start
        raised, other = (numbers[: shape[0] * shape[1]].reshape(shape) for numbers in memory)
        np.matmul(of_sinh[rows], columns[:, start:], out=raised)
        np.exp(raised, out=raised)
        np.divide(half, raised, out=other)
        raised *= half
        raised -= other
        np.matmul(linear[rows], linear_columns[:, start:], out=other)
        np.add(raised, other, out=matrix[rows, start:])

"""Gaussian-process priors of odd games.

Shapley values depend on the odd part of a game only, y(S) = (v(S) − v(N∖S)) / 2, a sum of products
of z_j = ±1 over sets T of odd size. Give the products of degree k independent coefficients of
variance proportional to Π_{j∈T} w_j, and the covariance of y at z and z′ is an elementary symmetric
polynomial of the numbers w_j z_j z′_j. Kernels are scaled to a variance of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .array_types import FloatArray

DEGREES = (1, 3, 5)


def symmetric_polynomials(power_sums: Sequence[Any]) -> list[Any]:
    """Return the elementary symmetric polynomials e_0, …, e_k from power sums p_1, …, p_k.

    Newton's identities, for numbers or arrays.
    """
    polynomials: list[Any] = [np.ones_like(power_sums[0])]
    for k in range(1, len(power_sums) + 1):
        terms = [(-1) ** (j - 1) * polynomials[k - j] * power_sums[j - 1] for j in range(1, k + 1)]
        polynomials.append(sum(terms) / k)
    return polynomials


def of_weights(weights: FloatArray) -> list[Any]:
    """Return e_0, …, e_5 of the players' weights."""
    return symmetric_polynomials([(weights**k).sum() for k in range(1, DEGREES[-1] + 1)])


def norm(degree: int, scales: Sequence[Any], n_players: int) -> float:
    """Return what brings a kernel to variance 1; nothing is left of more degrees than players."""
    return 1.0 / float(scales[degree]) if degree <= n_players else 0.0


@dataclass(frozen=True)
class OddKernels:
    """The kernels of degrees 1, 3 and 5 between pairs of coalitions, at given weights.

    Attributes
    ----------
    signs : array, (n, M)
        1 where the player is in the coalition, −1 elsewhere.
    weights : array, (M,)
        How strongly each player takes part in interactions; only ratios matter.
    polynomials : list of arrays, (n, n) each
        e_0, …, e_5 of w_j z_j z′_j.
    scales : list of floats
        e_0, …, e_5 of w_j.
    """

    signs: FloatArray
    weights: FloatArray
    polynomials: list[FloatArray]
    scales: list[Any]

    @classmethod
    def at(cls, signs: FloatArray, weights: FloatArray) -> OddKernels:
        """Compute the polynomials. Even powers of ±1 are 1, so that three products suffice."""
        shape = (len(signs), len(signs))
        sums = [
            (signs * weights**k) @ signs.T if k % 2 else np.broadcast_to((weights**k).sum(), shape)
            for k in range(1, DEGREES[-1] + 1)
        ]
        return cls(signs, weights, symmetric_polynomials(sums), of_weights(weights))

    def matrices(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the kernels of degrees 1, 3 and 5, (n, n) each; the first knows no weights."""
        first: FloatArray = self.signs @ self.signs.T / self.signs.shape[1]
        third: FloatArray = self.polynomials[3] * self._norm(3)
        fifth: FloatArray = self.polynomials[5] * self._norm(5)
        return first, third, fifth

    def _norm(self, degree: int) -> float:
        return norm(degree, self.scales, self.signs.shape[1])

    def weight_gradients(self, sensitivity: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how Σ G ∘ K changes with log w, (M,) each, for degrees 3 and 5.

        The derivative of e_k by w_i needs e_{k−1} of all others but i, which unrolls into the
        polynomials of all, so that all players are done by three matrix products.

        Parameters
        ----------
        sensitivity : array, (n, n)
            G, symmetric.
        """
        w, e = self.weights, self.polynomials

        def quadratic(matrix: FloatArray) -> FloatArray:
            forms: FloatArray = (self.signs * (matrix @ self.signs)).sum(axis=0)
            return forms

        plain, second, fourth = (
            quadratic(sensitivity),
            quadratic(sensitivity * e[2]),
            quadratic(sensitivity * e[4]),
        )
        on_first, on_third = (sensitivity * e[1]).sum(), (sensitivity * e[3]).sum()
        on_fifth = (sensitivity * e[5]).sum()
        third = w * second + w**3 * plain - w**2 * on_first
        fifth = w * fourth + w**3 * second + w**5 * plain - w**2 * on_third - w**4 * on_first
        without = _without_one(self.scales, w)
        of_third, of_fifth = self._norm(3), self._norm(5)
        return (
            of_third * (third - on_third * w * without[2] * of_third),
            of_fifth * (fifth - on_fifth * w * without[4] * of_fifth),
        )


def attribution_covariances(
    signs: FloatArray, weights: FloatArray
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return the prior covariances of the Shapley values, for each degree.

    φ_i is the sum of 2 c_T / |T| over the sets T that hold i.

    Returns
    -------
    list of arrays, (M, n) each
        Covariances with the values at `signs`.
    list of arrays, (M,) each
        Variances.
    """
    n_players = signs.shape[1]
    scales = of_weights(weights)
    factors = signs * weights  # (n, M)
    sums = [(factors**k).sum(axis=1) for k in range(1, DEGREES[-1] + 1)]
    others = _without_one([e[:, None] for e in symmetric_polynomials(sums)], factors)
    of_weights_only = _without_one(scales, weights)
    covariances, variances = [2 * signs.T / n_players], [np.full(n_players, 4 / n_players)]
    for k in DEGREES[1:]:
        scale = norm(k, scales, n_players)
        covariances.append((2 / k * factors * others[k - 1]).T * scale)
        variances.append(4 / k**2 * weights * of_weights_only[k - 1] * scale)
    return covariances, variances


def _without_one(polynomials: Sequence[Any], factors: FloatArray) -> list[FloatArray]:
    """Return e_0, …, e_4 of all factors but one, for each one."""
    found = [np.ones_like(factors)]
    for k in range(1, DEGREES[-1]):
        found.append(polynomials[k] - factors * found[-1])
    return found

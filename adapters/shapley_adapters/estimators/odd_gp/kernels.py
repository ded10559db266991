"""Gaussian-process priors of odd games.

Shapley values depend on the odd part of a game only, y(S) = (v(S) − v(N∖S)) / 2, a sum of products
of z_j = ±1 over sets T of odd size. Give the products of degree k independent coefficients of
variance proportional to Π_{j∈T} w_j, and the covariance of y at z and z′ is an elementary symmetric
polynomial of the numbers w_j z_j z′_j. Kernels are scaled to a variance of 1.

Weights are those of one game, (M,), or of a stack of games, (R, M). Each NumPy operation then works
on the matrices of all R games, one matrix after the other, so that rounding is that of each alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...array_types import BoolArray, FloatArray, IntArray

DEGREES = (1, 3, 5)


@dataclass(frozen=True)
class Ratios:
    """What the variances of the parts of an odd game are, relative to that of degree 1.

    Attributes
    ----------
    third : float or array, (R,)
        Variance of degree 3 over that of degree 1.
    fifth : float or array, (R,)
        Variance of degree 5 over that of degree 3.
    noise : float or array, (R,)
        Variance of what no degree explains over that of degree 3.
    """

    third: Any
    fifth: Any
    noise: Any

    @classmethod
    def stack(cls, ratios: Sequence[Ratios]) -> Ratios:
        """Return the ratios of several games as arrays, (R,)."""
        return cls(*np.array([(one.third, one.fifth, one.noise) for one in ratios]).T)

    def of_games(self, games: int | IntArray | BoolArray) -> Ratios:
        """Return the ratios of some games of a stack."""
        return Ratios(self.third[games], self.fifth[games], self.noise[games])

    def with_games(self, games: IntArray, others: Ratios) -> Ratios:
        """Return the ratios of a stack, with others for some of its games."""
        replaced = Ratios(self.third.copy(), self.fifth.copy(), self.noise.copy())
        replaced.third[games], replaced.fifth[games] = others.third, others.fifth
        replaced.noise[games] = others.noise
        return replaced

    def combine(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Add up what belongs to the degrees 1, 3 and 5; parts of a stack have R first."""
        first, third, fifth = parts
        axes = (...,) + (None,) * (np.ndim(third) - np.ndim(self.third))
        of_third, of_fifth = np.asarray(self.third)[axes], np.asarray(self.fifth)[axes]
        combined: FloatArray = first + of_third * (third + of_fifth * fifth)
        return combined

    @property
    def noise_variance(self) -> Any:
        """Variance of what no degree explains, where that of degree 1 is 1."""
        return self.third * self.noise

    def logarithms(self) -> FloatArray:
        """Return the logarithms of the three."""
        return np.log([self.third, self.fifth, self.noise])


def symmetric_polynomials(power_sums: Sequence[Any]) -> list[Any]:
    """Return the elementary symmetric polynomials e_0, …, e_k from power sums p_1, …, p_k.

    Newton's identities, for numbers or arrays.
    """
    polynomials: list[Any] = [power_sums[0] ** 0]
    for k in range(1, len(power_sums) + 1):
        terms = [(-1) ** (j - 1) * polynomials[k - j] * power_sums[j - 1] for j in range(1, k + 1)]
        polynomials.append(sum(terms) / k)
    return polynomials


def of_weights(weights: FloatArray) -> list[Any]:
    """Return e_0, …, e_5 of the players' weights, (..., M)."""
    powers = weights[..., None] ** np.arange(1, DEGREES[-1] + 1)
    return symmetric_polynomials(list(np.moveaxis(powers.sum(axis=-2), -1, 0)))


def norm(degree: int, scales: Sequence[Any], n_players: int) -> Any:
    """Return what brings a kernel to variance 1; nothing is left of more degrees than players."""
    return 1.0 / scales[degree] if degree <= n_players else np.zeros_like(scales[1])


@dataclass(frozen=True)
class OddKernels:
    """The kernels of degrees 1, 3 and 5 between coalitions, at given weights.

    Attributes
    ----------
    signs : array, (n, M)
        1 where the player is in the coalition, −1 elsewhere.
    weights : array, (..., M)
        How strongly each player takes part in interactions; only ratios matter.
    products : array, (n, m)
        z · z′: the kernel of degree 1, which knows no weights, times M.
    polynomials : list of arrays, (..., n, m) each
        e_1, …, e_5 of w_j z_j z′_j, at their own places; 1 stands at place 0.
    scales : list of floats or arrays, (...)
        e_0, …, e_5 of w_j.
    """

    signs: FloatArray
    weights: FloatArray
    products: FloatArray
    polynomials: list[Any]
    scales: list[Any]

    @classmethod
    def at(
        cls, signs: FloatArray, weights: FloatArray, others: FloatArray | None = None
    ) -> OddKernels:
        """Compute the polynomials between `signs` and `others`, or `signs` themselves."""
        transposed = (signs if others is None else others).T
        sums = [(signs * (weights**k)[..., None, :]) @ transposed for k in DEGREES]
        second, fourth = ((weights**k).sum(axis=-1)[..., None, None] for k in (2, 4))
        polynomials = _polynomials(sums, second, fourth)
        return cls(signs, weights, signs @ transposed, polynomials, of_weights(weights))

    def of_games(self, games: int | IntArray | BoolArray) -> OddKernels:
        """Return the kernels of some games of a stack."""
        polynomials = [1.0, *(part[games] for part in self.polynomials[1:])]
        scales = [part[games] for part in self.scales]
        return OddKernels(self.signs, self.weights[games], self.products, polynomials, scales)

    def matrices(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the kernels of degrees 1, 3 and 5, (n, m) each."""
        n_players = self.signs.shape[1]
        first: FloatArray = self.products / n_players
        third: FloatArray = self.polynomials[3] * _of_matrices(norm(3, self.scales, n_players))
        fifth: FloatArray = self.polynomials[5] * _of_matrices(norm(5, self.scales, n_players))
        return first, third, fifth

    def coefficients(self, ratios: Ratios) -> tuple[Any, Any]:
        """Return the factors of e_3 and e_5 in the kernel that `ratios` make."""
        n_players = self.signs.shape[1]
        third = ratios.third * norm(3, self.scales, n_players)
        return third, ratios.third * ratios.fifth * norm(5, self.scales, n_players)

    def combined(self, ratios: Ratios) -> FloatArray:
        """Return the kernel that `ratios` make, (..., n, m), without noise."""
        of_third, of_fifth = map(_of_matrices, self.coefficients(ratios))
        kernel: FloatArray = self.polynomials[5] * of_fifth
        scratch = np.multiply(self.polynomials[3], of_third)
        kernel += scratch
        kernel += self.products / self.signs.shape[1]
        return kernel

    def variance(self, ratios: Ratios) -> Any:
        """Return the value of that kernel where both coalitions are the same."""
        n_players = self.signs.shape[1]
        return 1.0 + ratios.third * (float(n_players >= 3) + ratios.fifth * float(n_players >= 5))


def _of_matrices(numbers: Any) -> FloatArray:
    """Return numbers, (...), as factors of matrices, (..., n, m)."""
    factors: FloatArray = np.asarray(numbers)[..., None, None]
    return factors


def _polynomials(sums: list[FloatArray], second: FloatArray, fourth: FloatArray) -> list[Any]:
    """Return 1, e_1, …, e_5 of w z z′, from the power sums of degrees 1, 3 and 5.

    Newton's identities again; even powers of ±1 are 1, so that p_2 and p_4 are numbers. Written
    out, to work in place: these passes over memory are what learning spends its time on.
    """
    first, third, fifth = sums
    e2 = first * first
    e2 -= second
    e2 *= 0.5
    e3 = e2 - second
    e3 *= first
    e3 += third
    e3 *= 1 / 3
    scratch = np.multiply(third, first)
    e4 = e3 * first
    e4 += scratch
    e4 -= np.multiply(e2, second, out=scratch)
    e4 -= fourth
    e4 *= 0.25
    e5 = e4 * first
    e5 -= np.multiply(e3, second, out=scratch)
    e5 += np.multiply(third, e2, out=scratch)
    e5 -= np.multiply(first, fourth, out=scratch)
    e5 += fifth
    e5 *= 0.2
    return [1.0, first, e2, e3, e4, e5]


def attribution_covariances(
    signs: FloatArray, weights: FloatArray
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return the prior covariances of the Shapley values, for each degree.

    φ_i is the sum of 2 c_T / |T| over the sets T that hold i.

    Returns
    -------
    list of arrays, (..., M, n) each
        Covariances with the values at `signs`.
    list of arrays, (..., M) each
        Variances.
    """
    n_players = signs.shape[1]
    scales = of_weights(weights)
    factors = signs * weights[..., None, :]  # (..., n, M)
    of_even, powers = np.ones_like(signs), range(1, DEGREES[-1] + 1)
    sums = [(signs if k % 2 else of_even) @ (weights**k)[..., None] for k in powers]  # (..., n, 1)
    others = _without_one(symmetric_polynomials(sums), factors)
    of_weights_only = _without_one([np.asarray(e)[..., None] for e in scales], weights)
    covariances, variances = [2 * signs.T / n_players], [np.full(n_players, 4 / n_players)]
    for k in DEGREES[1:]:
        scale = norm(k, scales, n_players)
        products = 2 / k * factors * others[k - 1]
        covariances.append(products.swapaxes(-1, -2) * _of_matrices(scale))
        scale = np.asarray(scale)[..., None]
        variances.append(4 / k**2 * weights * of_weights_only[k - 1] * scale)
    return covariances, variances


def _without_one(polynomials: Sequence[Any], factors: FloatArray) -> list[FloatArray]:
    """Return e_0, …, e_4 of all factors but one, for each one."""
    found = [np.ones_like(factors)]
    for k in range(1, DEGREES[-1]):
        found.append(polynomials[k] - factors * found[-1])
    return found

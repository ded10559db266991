"""Gaussian-process prior of the odd or the even part of a game, with interactions of all sizes.

Shapley values depend on the odd part of a game only, y(S) = (v(S) − v(N∖S)) / 2, a sum of products
of z_j = ±1 over sets T of odd size. The prior gives independent coefficients to these products:
with variance 1/M to single players, and with variance a Π_{j∈T} t_j / norm to all larger odd sets,
0 < t_j < 1. The covariance of y at z and z′ is a sum over all odd sets, but has a closed form:

    Σ_T Π_{j∈T} t_j z_j z′_j = ½ [Π_j (1 + t_j z_j z′_j) − Π_j (1 − t_j z_j z′_j)]
                             = Π_j √(1 − t_j²) · sinh(Σ_j artanh(t_j) z_j z′_j),

from which the degree 1, Σ_j t_j z_j z′_j, is subtracted. Computing it takes one matrix product and
one exponential. The norm is its value at z = z′, so that the interactions have variance a.

Interactions of pairs depend on the even part only, e(S) = (v(S) + v(N∖S)) / 2, a sum over sets of
even size. Its prior is the same with + between the products, and with the constant of the game, of
which little is known, in place of single players.

Strengths t are those of one game, (M,), or of a stack of games, (R, M). For a stack, each NumPy
operation works on the matrices of all R games, one matrix after the other. So the rounding of a
game is the same as for this game alone.

`Kernel` keeps the kernel of interactions and that of the rest apart, because a fit needs both. With
many values, a posterior needs one covariance only, and its factor needs only the part above the
diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...array_types import BoolArray, FloatArray, IntArray

FEWEST_PLAYERS = 3
"""The number of players of the smallest interaction of odd size. Games of fewer players have no
odd interactions; those of even size need two players."""

CONSTANT = 100.0
"""Variance of the constant of an even part, where that of its interactions is 1."""

_MOST_STRENGTH, _MOST_EXPONENT = 0.95, 300.0
"""Bounds on a strength, and on Σ artanh(t), whose exponential must be a number."""

_LEAST_SHARE, _LEAST_TOTAL = 1e-3, 0.03
"""Lower bounds on a strength, as a share of the game's largest, and on Σ t. Below them, the norm
would be mostly rounding. At these bounds, interactions of five players are already negligible
beside those of three."""

_UNEVENNESS, _COMMON = 3.0, 0.2
"""Of games that jump: the power of the evenness of sizes in the variance of the noise, and the
variance of the effect that all players share, over that of each player."""

_SLAB_NUMBERS = 16_000
"""Numbers of kernels that are computed together."""


@dataclass(frozen=True)
class Prior:
    """Hyperparameters of the odd or the even part of one game, or of each game of a stack.

    Attributes
    ----------
    strengths : array, (..., M)
        How strongly each player takes part in interactions, t. Their level says which sizes matter:
        the mean size of the interactions grows with it.
    interactions : float or array, (...)
        Variance of all interactions together, a, where that of degree 1 is 1. It is 1 for an even
        part, whose values have no other scale.
    noise : float or array, (...)
        Variance of the noise, over that of the interactions. The noise is the residual of each
        value that no interaction explains; it is independent from pair to pair.
    jumps : bool
        Whether the game jumps where about half of the players are present, as votes do. The noise
        then depends on the size; see `evenness_of_sizes`. And all players share an effect, so that
        a jump is not taken for large effects of single players; see `base_features`.
    is_even : bool
        Whether it is that of the even part.
    errors : array, (..., n), optional
        Variances of the errors of the values, where that of degree 1 is 1: means over draws. Unlike
        the noise, they are no part of the game. None for exact values.
    singles : array, (..., M), optional
        Variances of the effects of single players; None where each is 1 / M.
    """

    strengths: FloatArray
    interactions: Any
    noise: Any
    jumps: bool = False
    is_even: bool = False
    errors: FloatArray | None = None
    singles: FloatArray | None = None

    @classmethod
    def stack(cls, priors: Sequence[Prior]) -> Prior:
        """Return the priors of several games as one of arrays."""
        strengths = np.array([prior.strengths for prior in priors])
        interactions, noise = np.array([(prior.interactions, prior.noise) for prior in priors]).T
        return cls(strengths, interactions, noise, is_even=priors[0].is_even)

    def subset_games(self, games: int | list[int] | IntArray | BoolArray) -> Prior:
        """Return the prior of some games of a stack."""
        errors = None if self.errors is None else self.errors[games]
        singles = None if self.singles is None else self.singles[games]
        numbers = self.strengths[games], self.interactions[games], self.noise[games]
        return replace(self.with_numbers(*numbers), errors=errors, singles=singles)

    def with_games(self, games: IntArray, replacements: Prior) -> Prior:
        """Return the prior of a stack, with others for some of its games."""
        arrays = self.strengths.copy(), self.interactions.copy(), self.noise.copy()
        of_games = replacements.strengths, replacements.interactions, replacements.noise
        for array, replacement in zip(arrays, of_games, strict=True):
            array[games] = replacement
        return self.with_numbers(*arrays)

    def with_numbers(self, strengths: FloatArray, interactions: Any, noise: Any) -> Prior:
        """Return the prior of the same parity with other hyperparameters."""
        return replace(self, strengths=strengths, interactions=interactions, noise=noise)

    @property
    def noise_variance(self) -> Any:
        """Variance of the noise, where that of degree 1 is 1."""
        return self.interactions * self.noise


def evenness_of_sizes(sizes: Any, n_players: int) -> Any:
    """Return the variance of the noise of games that jump, over that of halves of the players."""
    return (4 * sizes * (n_players - sizes) / n_players**2) ** _UNEVENNESS


def root_of_singles(prior: Prior, n_players: int) -> FloatArray:
    """Return R, (M, M): the signs times R are the features of single players, of variance 1 / M.

    Where the game jumps, R² M = I + c 1 1ᵀ: all players share an effect, of variance c / M.
    """
    shared = (np.sqrt(1.0 + _COMMON * prior.jumps * n_players) - 1.0) / n_players
    root: FloatArray = (np.eye(n_players) + shared) / np.sqrt(n_players)
    return root


def base_features(prior: Prior, signs: FloatArray) -> FloatArray:
    """Return features, (n, k), of variance 1: single players, or the constant of an even part."""
    if prior.is_even:
        return np.full((len(signs), 1), np.sqrt(CONSTANT))
    features: FloatArray = signs @ root_of_singles(prior, signs.shape[1])
    return features


def bounded_strengths(strengths: FloatArray) -> FloatArray:
    """Return strengths, (..., M), for which kernels can be computed without loss."""
    upper = min(_MOST_STRENGTH, np.tanh(_MOST_EXPONENT / strengths.shape[-1]))
    least = _LEAST_SHARE * strengths.max(axis=-1, keepdims=True)
    at_least: FloatArray = np.maximum(strengths, least)
    raised = np.maximum(1.0, _LEAST_TOTAL / at_least.sum(axis=-1, keepdims=True))
    bounded: FloatArray = np.minimum(at_least * raised, upper)
    return bounded


def log_norm(strengths: FloatArray, is_even: bool = False) -> FloatArray:
    """Return the logarithm of Σ Π_{j∈T} t_j over the sets T of a parity that interact, (...).

    Odd sets have three players or more, even sets two.
    """
    if strengths.shape[-1] < FEWEST_PLAYERS - is_even:
        return np.full(strengths.shape[:-1], np.inf)  # a division by an infinite norm gives 0
    raised, lowered = (np.log1p(sign * strengths).sum(axis=-1) for sign in (1, -1))
    if is_even:
        shares = 0.5 * (1 + np.exp(lowered - raised)) - np.exp(-raised)
    else:
        shares = 0.5 * -np.expm1(lowered - raised) - strengths.sum(axis=-1) * np.exp(-raised)
    logarithm: FloatArray = raised + np.log(shares)
    return logarithm


def sizes_of_interactions(
    strengths: FloatArray, is_even: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the variance of |T| over the sets T that interact, (...).

    Each set is weighted by Π_{j∈T} t_j; with N(u) the norm at strengths u t, the mean is N′(1) / N,
    and that of |T| (|T| − 1) is N″(1) / N.
    """
    scale = log_norm(strengths, is_even)
    first = np.zeros_like(scale) if is_even else -np.exp(-scale) * strengths.sum(axis=-1)
    second = np.zeros_like(first)
    for sign in (1, -1):
        counted = 0.5 if is_even else 0.5 * sign
        product = counted * np.exp(np.log1p(sign * strengths).sum(axis=-1) - scale)
        rates = sign * strengths / (1 + sign * strengths)
        total = rates.sum(axis=-1)
        first = first + product * total
        second = second + product * (total**2 - (rates**2).sum(axis=-1))
    return first, np.maximum(second + first - first**2, 0.0)


@dataclass(frozen=True)
class Kernel:
    """The kernel of interactions and that of the rest, between coalitions.

    Attributes
    ----------
    signs : array, (n, M)
        1 where the player is in the coalition, −1 elsewhere.
    strengths : array, (..., M)
        Those of the players.
    base : array, (n, m)
        z · z′ / M; of an even part, the variance of its constant.
    interactions : array, (..., n, m)
        The kernel of all larger sets of the parity, of variance 1.
    is_even : bool
        The parity.
    """

    signs: FloatArray
    strengths: FloatArray
    base: FloatArray
    interactions: FloatArray
    is_even: bool = False

    @classmethod
    def at(
        cls,
        signs: FloatArray,
        strengths: FloatArray,
        other_signs: FloatArray | None = None,
        is_even: bool = False,
    ) -> Kernel:
        """Compute the kernels between `signs` and `other_signs`, or `signs` themselves."""
        return cls._from_halves(signs, strengths, other_signs, is_even)[0]

    @classmethod
    def with_other_parity(
        cls,
        signs: FloatArray,
        strengths: FloatArray,
        memory: FloatArray | None = None,
        is_even: bool = False,
    ) -> tuple[Kernel, FloatArray]:
        """Return the kernels, and the sum over all sets of the other parity, which gradients need.

        Both are divided by the norm. With `memory`, (2, R, n, n), both are written there.
        """
        if memory is None:
            memory = np.empty((2, math.prod(strengths.shape[:-1]), len(signs), len(signs)))
        return cls._from_halves(signs, strengths, None, is_even, memory)

    @classmethod
    def _from_halves(
        cls,
        signs: FloatArray,
        strengths: FloatArray,
        other_signs: FloatArray | None,
        is_even: bool,
        memory_of_both: FloatArray | None = None,
    ) -> tuple[Kernel, FloatArray]:
        """Compute ½ Π (1 ± t z z′) by the norm: their difference is odd, their sum even.

        That of the other parity is computed only with memory for both. Slabs of some rows, or of
        some games, fit into the processor's cache.
        """
        others = signs if other_signs is None else other_signs
        n, n_columns = len(signs), len(others)
        shape = strengths.shape[:-1]
        if memory_of_both is None:
            own = other = np.empty((math.prod(shape), n, n_columns))
        else:
            own, other = memory_of_both
        to_other = np.subtract if is_even else np.add
        of_all = _Factors.from_strengths(strengths.reshape(-1, strengths.shape[-1]), is_even)
        n_rows = min(n, max(1, _SLAB_NUMBERS // max(1, n_columns)))
        n_games = max(1, _SLAB_NUMBERS // max(1, n * n_columns))
        memory, columns = np.empty((n_games, n_rows, n_columns)), np.ascontiguousarray(others.T)
        for game in range(0, len(own), n_games):
            games = slice(game, game + n_games)
            for start in range(0, n, n_rows):
                slab = games, slice(start, start + n_rows)
                factors, of_rows = of_all.subset_games(games), signs[start : start + n_rows]
                lowered = memory[: len(own[games]), : len(of_rows)]
                factors.compute(of_rows, columns, own[slab], lowered)
                if memory_of_both is not None:
                    to_other(own[slab], lowered, out=other[slab])
                factors.combine(of_rows, columns, own[slab], lowered)
        own, other = (kernel.reshape(*shape, n, n_columns) for kernel in (own, other))
        base = np.full((n, n_columns), CONSTANT) if is_even else signs @ others.T / signs.shape[1]
        return cls(signs, strengths, base, own, is_even), other

    def subset_games(self, games: list[int] | IntArray | BoolArray) -> Kernel:
        """Return the kernels of some games of a stack."""
        return replace(self, strengths=self.strengths[games], interactions=self.interactions[games])

    def within(self, n_values: int) -> Kernel:
        """Return the kernels between the first coalitions."""
        first = slice(0, n_values)
        return replace(
            self,
            signs=self.signs[first],
            base=self.base[first, first],
            interactions=self.interactions[..., first, first],
        )

    def combined(self, prior: Prior, out: FloatArray | None = None) -> FloatArray:
        """Return the covariance of the values, (..., n, m), without noise; written to `out`."""
        variances = np.asarray(prior.interactions)[..., None, None]
        kernel: FloatArray = np.multiply(self.interactions, variances, out=out)
        if prior.singles is None:
            kernel += self.base
        else:
            kernel += (self.signs * prior.singles[..., None, :]) @ self.signs.T
        return kernel


@dataclass(frozen=True)
class _Factors:
    """What the kernels of a stack of games are made of, (R, 1, 1) or (R, 1, M)."""

    half: FloatArray
    exponents: FloatArray
    shares: FloatArray
    is_even: bool

    @classmethod
    def from_strengths(cls, strengths: FloatArray, is_even: bool) -> _Factors:
        """Return those for strengths, (R, M)."""
        scale = log_norm(strengths, is_even)
        half = 0.5 * np.exp(0.5 * np.log1p(-(strengths**2)).sum(axis=-1) - scale)
        shares = np.exp(-scale)[:, None] * (1.0 if is_even else strengths)
        return cls(half[:, None, None], np.arctanh(strengths)[:, None], shares[:, None], is_even)

    def subset_games(self, games: slice) -> _Factors:
        """Return those of some games."""
        arrays = self.half[games], self.exponents[games], self.shares[games]
        return _Factors(*arrays, self.is_even)

    def compute(
        self, signs: FloatArray, columns: FloatArray, raised: FloatArray, lowered: FloatArray
    ) -> None:
        """Write ½ Π (1 + t z z′) and ½ Π (1 − t z z′), by the norm, into two arrays, (r, n, m)."""
        np.matmul(signs * self.exponents, columns, out=raised)
        np.exp(raised, out=raised)
        np.divide(self.half, raised, out=lowered)
        raised *= self.half

    def combine(
        self, signs: FloatArray, columns: FloatArray, raised: FloatArray, lowered: FloatArray
    ) -> None:
        """Write the kernel of interactions to the first array. The second one is overwritten.

        Degree 1 is subtracted from the difference, and the empty set from the sum.
        """
        if self.is_even:
            raised += lowered
            raised -= self.shares
        else:
            raised -= lowered
            raised -= np.matmul(signs * self.shares, columns, out=lowered)


@dataclass(frozen=True)
class UpperKernel:
    """The kernel of a stack of games between many coalitions, computed where it is needed.

    Attributes
    ----------
    signs : array, (n, M)
        1 where the player is in the coalition, −1 elsewhere.
    strengths : array, (R, M)
        Those of the players.
    is_even : bool
        The parity.
    """

    signs: FloatArray
    strengths: FloatArray
    is_even: bool = False

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
        singles = 1 / self.signs.shape[1] if prior.singles is None else prior.singles
        of_players = np.broadcast_to(singles, self.strengths.shape)
        of_games = zip(matrices, self.strengths, of_players, variances, features, strict=True)
        for matrix, strengths, of_game, variance, own in of_games:
            _fill(matrix, self.signs, strengths, of_game, float(variance), own, self.is_even)
        return matrices


def _fill(
    matrix: FloatArray,
    signs: FloatArray,
    strengths: FloatArray,
    singles: FloatArray,
    variance: float,
    features: FloatArray,
    is_even: bool,
) -> None:
    """Write the covariance of one game, (n, n), on the diagonal and above it.

    With sinh(x) = ½ [exp(x) − exp(−x)], or cosh(x) of an even part; the kernel of degree 1, and the
    part of sinh that is of degree 1, are one matrix product with that of the features. So are the
    constants of an even part.
    """
    n = len(signs)
    scale = log_norm(strengths, is_even)
    half = 0.5 * variance * np.exp(0.5 * np.log1p(-(strengths**2)).sum() - scale)
    exponents, columns = signs * np.arctanh(strengths), np.ascontiguousarray(signs.T)
    if is_even:
        lowest, lowest_columns = (
            np.full((n, 1), CONSTANT - variance * np.exp(-scale)),
            np.ones((1, n)),
        )
    else:
        lowest = signs * (singles - variance * np.exp(-scale) * strengths)
        lowest_columns = columns
    linear = np.concatenate([lowest, features], axis=1)
    linear_columns = np.concatenate([lowest_columns, features.T])
    n_rows = max(1, _SLAB_NUMBERS // n)
    memory = np.empty((2, n_rows * n))
    for start in range(0, n, n_rows):
        rows = slice(start, start + n_rows)
        shape = min(n_rows, n - start), n - start
        raised, other = (numbers[: shape[0] * shape[1]].reshape(shape) for numbers in memory)
        np.matmul(exponents[rows], columns[:, start:], out=raised)
        np.exp(raised, out=raised)
        np.divide(half, raised, out=other)
        raised *= half
        (np.add if is_even else np.subtract)(raised, other, out=raised)
        np.matmul(linear[rows], linear_columns[:, start:], out=other)
        np.add(raised, other, out=matrix[rows, start:])

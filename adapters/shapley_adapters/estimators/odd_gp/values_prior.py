"""The prior of games as sums over sets of players, for values without their complements.

With z = ±1 for the members of a coalition and all other players,

    v(z) = c₀ + Σ_j c_j z_j + Σ over larger sets T of c_T Π_{j∈T} z_j,

where all coefficients are independent. Those of single players have variances w_j. Those of sets of
d players share a variance, by the products of the players' strengths: players with large effects
interact, and others hardly do. The sum of the products of d players over all sets is a polynomial
of the sums of their powers. Sets of more than three players are noise to the eye where all players
are alike: two coalitions have hardly any of it in common. But they are a part of the game, and
count in the variances of

    φ_i = Σ over sets T with i and an odd number of players of 2 c_T / |T|.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ...array_types import CoalitionArray, FloatArray, IntArray
from ...coalitions.tables import complements
from ..value_errors import ValueErrors

CONSTANT = 100.0
"""Variance of the constant, where that of all values is 1: large, because it is of no interest."""

_PAIRS, _TRIPLES, _LARGER, _SIZES = (
    (0.03, 0.15, 0.6, 2.0),
    (0.03, 0.3),
    (0.03, 0.2, 1.0),
    (0.0, 0.3),
)
"""Variances of interactions of two, three and more players, and of a function of the size of the
coalition, over that of single players. The marginal likelihood chooses one of each."""

_LARGER_SIZES = (4, 5, 6, 7)
"""Numbers of players of larger interactions, which have equal shares."""

_MOST = max(_LARGER_SIZES)
_ODD = tuple(range(1, _MOST + 1, 2))

_LEAST_STRENGTH, _LARGEST_SHARE = 0.05, 1 / 8
"""The least strength, over the mean, and the largest share that a player has of all strengths: sets
of seven players need more than that. Errors are equal for least strengths of .02 to .2."""

_BLOCK_NUMBERS = 64_000
"""Numbers of a kernel that are computed together, so that they stay in the cache."""

_ROUNDING = 1e-8
"""Share of the variance that is added to the diagonal of a kernel, against rounding."""


@dataclass(frozen=True)
class Variances:
    """Variances of the parts of a game, where that of all single players together is 1."""

    pairs: float
    triples: float
    larger: float
    sizes: float

    @property
    def by_size(self) -> FloatArray:
        """Return those of sets of 0, 1, ... players, (8,), without single players."""
        share = self.larger / len(_LARGER_SIZES)
        return np.array([0.0, 0.0, self.pairs, self.triples, *[share] * len(_LARGER_SIZES)])

    @classmethod
    def candidates(cls) -> Iterator[Variances]:
        """Yield those that the marginal likelihood chooses from."""
        for numbers in product(_PAIRS, _TRIPLES, _LARGER, _SIZES):
            yield cls(*numbers)


@dataclass(frozen=True)
class Products:
    """Sums over sets of products of signs, which are ±1, for coalitions.

    Attributes
    ----------
    members : array of bool, (n, M)
        The coalitions.
    strengths : array, (M,)
        How much each player takes part in interactions, 1 in the mean.
    """

    members: CoalitionArray
    strengths: FloatArray

    @cached_property
    def signs(self) -> FloatArray:
        """Return 1 for members, −1 for other players, (n, M); columns are contiguous."""
        signs: FloatArray = np.where(self.members.T, 1.0, -1.0).T
        return signs

    def subset_values(self, values: slice | IntArray) -> Products:
        """Return those of some of the coalitions."""
        return replace(self, members=self.members[values])

    def with_strengths(self, variances: FloatArray) -> Products:
        """Return those where players interact by the variances of their main effects, (M,).

        Strengths are rounded to powers of two: players of the same strength take one product.
        """
        n_players = len(variances)
        strengths = limited_strengths(variances, _LEAST_STRENGTH, _LARGEST_SHARE)
        strengths = np.exp2(np.round(np.log2(strengths)))
        return replace(self, strengths=strengths * (n_players / strengths.sum()))

    @cached_property
    def _levels(self) -> tuple[FloatArray, IntArray]:
        """Return the different strengths, (L,), and which of them each player has, (M,)."""
        levels, level = np.unique(self.strengths, return_inverse=True)
        return levels, level

    @cached_property
    def _norms(self) -> FloatArray:
        """Return the sums over sets of 0, 1, ... players of the products of their strengths."""
        return np.array(sums_over_sets([(self.strengths**k).sum() for k in range(1, _MOST + 1)]))

    def shares(self) -> FloatArray:
        """Return the kernels of interactions of 2, 3 and more players, (3, n, n)."""
        return self._combined(np.array([Variances(*unit).by_size for unit in np.eye(4)[:3]]))

    def _combined(self, variances: FloatArray) -> FloatArray:
        """Return kernels, (k, n, n), for variances (k, 8) of sets of 0, 1, ... players."""
        levels, level = self._levels
        # Sums of signs and their products are integers, which single precision holds.
        signs, n = self.signs.astype(np.float32), len(self.signs)
        if len(levels) == 1:
            n_players = signs.shape[1]
            common = np.arange(n_players, -n_players - 1.0, -2.0)
            table = self._polynomials(variances, [levels[0] ** k * common for k in _ODD])
            differences = ((n_players - signs @ signs.T) / 2).astype(np.int32)
            of_one: FloatArray = table[:, differences]
            return of_one
        kernels = np.empty((len(variances), n, n))
        rows = max(1, _BLOCK_NUMBERS // n)
        of_levels = [np.ascontiguousarray(signs[:, level == at].T) for at in range(len(levels))]
        odd_powers = levels ** np.array(_ODD)[:, None]
        for start in range(0, n, rows):
            stop = min(n, start + rows)
            common = np.array([own[:, start:stop].T @ own[:, :stop] for own in of_levels])
            sums = np.tensordot(odd_powers, common, axes=1)
            kernels[:, start:stop, :stop] = self._polynomials(variances, list(sums))
            kernels[:, :start, start:stop] = kernels[:, start:stop, :start].swapaxes(1, 2)
        return kernels

    def _polynomials(self, variances: FloatArray, odd_sums: list[FloatArray]) -> FloatArray:
        """Return Σ_d V_d e_d over the norms, (k, ...), given the sums of odd powers, (...) each.

        Even powers do not depend on signs. A sum over sets e_d is one of products of sums with the
        odd powers alone and with the even ones alone.
        """
        no_odd = [(self.strengths**k).sum() * (k % 2 == 0) for k in range(1, _MOST + 1)]
        of_even, shares = sums_over_sets(no_odd), variances / self._norms
        powers: list[Any] = [0.0] * _MOST
        powers[::2] = odd_sums
        found = np.zeros((len(variances), *odd_sums[0].shape))
        for size, of_odd in enumerate(sums_over_sets(powers)):
            weights = shares[:, size:] @ of_even[: _MOST + 1 - size]
            for index in np.flatnonzero(weights):
                found[index] += weights[index] * of_odd
        return found

    def kernel(self, prior: Variances, shares: FloatArray | None = None) -> FloatArray:
        """Return the covariances of the values without single players, (n, n)."""
        if shares is None:
            kernel: FloatArray = self._combined(np.array([prior.by_size]))[0]
        else:
            kernel = prior.pairs * shares[0]
            kernel += prior.triples * shares[1]
            kernel += prior.larger * shares[2]
        kernel += CONSTANT
        functions = self.functions_of_size()
        if prior.sizes:
            kernel += prior.sizes * functions @ functions.T
        kernel[np.diag_indices(len(kernel))] += _ROUNDING * (1 + prior.pairs + prior.sizes)
        return kernel

    def functions_of_size(self) -> FloatArray:
        """Return a sum of the signs and its square, (n, 2), of mean 0 and variance about 1.

        The signs are weighted by the roots of the strengths.
        """
        n_players = self.signs.shape[1]
        sums = self.signs @ np.sqrt(self.strengths / n_players)
        return np.stack([sums, (sums**2 - 1) / np.sqrt(2)], axis=1)

    def features(self, factors: SizeFactors) -> FloatArray:
        """Return the values of games in which one player counts, (n, M)."""
        features: FloatArray = self.size_factors(factors)[:, None] * self.signs
        return features

    def size_factors(self, factors: SizeFactors) -> FloatArray:
        """Return the factors of the effects of single players, (n,)."""
        return factors.at(self.signs.sum(axis=1), self.signs.shape[1])

    def covariances(self, prior: Variances) -> FloatArray:
        """Return those of values and attributions, without single players, (n, M)."""
        roots = np.sqrt(self._levels[0] / self.signs.shape[1])
        of_sizes = 2 * prior.sizes * np.outer(roots, self.functions_of_size()[:, 0])
        return self._of_odd_sets(self.signs, prior, 1, of_sizes)

    def variances(self, prior: Variances) -> FloatArray:
        """Return those of the attributions without their single players, (M,)."""
        all_players = np.ones((1, len(self.strengths)))
        of_sizes = 4 * prior.sizes * self._levels[0][:, None] / len(self.strengths)
        variances: FloatArray = self._of_odd_sets(all_players, prior, 2, of_sizes)[0]
        return variances

    def _of_odd_sets(
        self, signs: FloatArray, prior: Variances, power: int, of_sizes: FloatArray
    ) -> FloatArray:
        """Return sums over odd sets with a player of (2 / d)^power V_d times products, (n, M).

        V_d is the variance of sets of d players, and the products are those of strengths times
        signs t z. Sums over sets of others are a + b z, where a and b are the same for players of a
        strength. `of_sizes`, (L, n), is added for each of the strengths.
        """
        levels, level = self._levels
        t = levels[:, None]
        powers: list[Any] = [(self.strengths**k).sum() for k in range(1, _MOST + 1)]
        powers[::2] = [signs @ self.strengths**k for k in _ODD]
        sums, variances = sums_over_sets(powers), prior.by_size / self._norms
        slopes, constants = np.zeros((len(levels), len(signs))), of_sizes
        a, b = np.ones_like(slopes), np.zeros_like(slopes)
        for size in range(1, _MOST):
            a, b = sums[size] - t * b, -t * a
            if size % 2 == 0:
                share = (2 / (size + 1)) ** power * variances[size + 1]
                slopes, constants = slopes + share * t * a, constants + share * t * b
        found = slopes[level].T * signs
        found += constants[level].T
        return found


@dataclass(frozen=True)
class SizeFactors:
    """How the effects of all single players change with the size of the coalition.

    In a text, a word counts less among many; where a sum saturates, all words count less if many or
    few are there. With t from −1 for no player to 1 for all, effects are multiplied by
    g(t) = exp(−tilt t) / (1 + curvature t²).
    """

    tilt: float = 0.0
    curvature: float = 0.0

    def at(self, sums: FloatArray, n_players: int) -> FloatArray:
        """Return the factors for coalitions whose signs have these sums."""
        shares = sums / n_players
        factors: FloatArray = np.exp(-self.tilt * shares) / (1 + self.curvature * shares**2)
        return factors

    def attributions(self, n_players: int) -> tuple[float, float]:
        """Return φ_i of the game g(t) z_i, and that of each other player.

        The marginal contribution of i to k others is g at k + 1 players plus g at k. The others
        share what is left of the value of all players less that of none.
        """
        factors = self.at(np.arange(-n_players, n_players + 1.0, 2.0), n_players)
        own = float((factors[1:] + factors[:-1]).mean())
        total = float(factors[-1] + factors[0])
        return own, (total - own) / max(1, n_players - 1)


def limited_strengths(variances: FloatArray, least: float, largest_share: float) -> FloatArray:
    """Return strengths of mean 1 in proportion to variances, (M,), between bounds."""
    n_players = len(variances)
    strengths: FloatArray = variances / variances.mean()
    strengths += least * (1 - strengths)
    for _ in range(20):  # what is above the largest share goes to the others
        strengths = np.minimum(strengths, largest_share * n_players)
        strengths *= n_players / strengths.sum()
    return strengths


def sums_over_sets(powers: list[Any]) -> list[Any]:
    """Return the sums over all sets of 0, 1, ... numbers of their products.

    By the sums of the numbers' first, second, ... powers (Newton's identities).
    """
    sums: list[Any] = [1.0]
    given = [(k, power) for k, power in enumerate(powers, 1) if np.ndim(power) or power]
    for size in range(1, len(powers) + 1):
        terms = [(-1) ** (k - 1) / size * power * sums[size - k] for k, power in given if k <= size]
        sums.append(sum(terms))
    return sums


@dataclass(frozen=True)
class ErrorCovariances:
    """Covariances of the errors of values, which are no part of the game.

    The odd parts of a coalition and its complement have opposite errors, the even parts have the
    same. Other errors are independent. Those of none and of all players are 0.

    Attributes
    ----------
    variances : array, (B, n)
        Of the values of each game.
    first, second : arrays, (P,)
        The coalitions that have their complement among them, and these.
    of_pairs : array, (B, P)
        Their covariances.
    """

    variances: FloatArray
    first: IntArray
    second: IntArray
    of_pairs: FloatArray

    @classmethod
    def from_value_errors(
        cls, members: CoalitionArray, errors: ValueErrors, indices: IntArray
    ) -> ErrorCovariances:
        """Return those of coalitions, (n, M), whose indices into a table are given, (n,)."""
        odd, even = (
            of_part.transpose(0, 2, 1)[:, :, indices].reshape(-1, len(indices))
            for of_part in (errors.odd, errors.even)
        )
        variances = odd + even
        variances[:, :2] = 0.0
        first, second = complements(members)
        first, second = first[second > 1], second[second > 1]
        return cls(variances, first, second, (even - odd)[:, first])

    def subset_games(self, games: IntArray) -> ErrorCovariances:
        """Return those of some games."""
        of_games = self.variances[games], self.of_pairs[games]
        return replace(self, variances=of_games[0], of_pairs=of_games[1])

    def divided_by(self, squares: FloatArray) -> ErrorCovariances:
        """Return those of values over the roots of numbers, (B, 1)."""
        return replace(self, variances=self.variances / squares, of_pairs=self.of_pairs / squares)

    def matrix(self, rows: slice) -> FloatArray:
        """Return the mean over the games, (m, m), for values from a start to a stop."""
        matrix: FloatArray = np.diag(self.variances[:, rows].mean(axis=0))
        first, second = self.first - rows.start, self.second - rows.start
        is_in = (np.minimum(first, second) >= 0) & (np.maximum(first, second) < len(matrix))
        first, second = first[is_in], second[is_in]
        matrix[first, second] = matrix[second, first] = self.of_pairs[:, is_in].mean(axis=0)
        return matrix

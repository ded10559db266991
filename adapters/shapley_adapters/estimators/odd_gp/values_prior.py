"""The prior of games as sums over sets of players, for values without their complements.

With z = ±1 for the members of a coalition and all other players,

    v(z) = c₀ + Σ_j c_j z_j + Σ over larger sets T of c_T Π_{j∈T} z_j,

where all coefficients are independent. Those of single players have variances w_j, those of sets of
d players share a variance. The sum of the products of d players over all sets is a Krawtchouk
polynomial of the number of players in which two coalitions differ. So the kernel of all but the
single players takes one look-up for each pair of coalitions. Sets of more than three players are
noise to the eye: two coalitions have hardly any of it in common. But they are a part of the game,
and count in the variances of

    φ_i = Σ over sets T with i and an odd number of players of 2 c_T / |T|.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from ...array_types import CoalitionArray, FloatArray, IntArray
from ...coalitions.complements import complements
from ..value_errors import ValueErrors
from .marginal_likelihood import TINY, column_by_column, whitened_by

_CONSTANT = 100.0
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

_TILTS, _CURVATURES = (-1.0, -0.5, 0.5, 1.0), (-0.3, 1.0, 4.0)
"""How effects of single players may change with the size of the coalition; see `SizeFactors`."""

_CHOSEN_FROM, _FACTORS_FROM = 256, 1024
"""The variances are chosen by the first values, at most so many, and the factors of the sizes, of
which there are fewer, by more."""

_ROUNDING = 1e-8
"""Share of the variance that is added to the diagonal of a kernel, against rounding."""


@dataclass(frozen=True)
class Variances:
    """Variances of the parts of a game, where that of all single players together is 1."""

    pairs: float
    triples: float
    larger: float
    sizes: float

    @classmethod
    def candidates(cls) -> Iterator[Variances]:
        """Yield those that the marginal likelihood chooses from."""
        for numbers in product(_PAIRS, _TRIPLES, _LARGER, _SIZES):
            yield cls(*numbers)


@dataclass(frozen=True)
class Products:
    """Sums over sets of products of signs, for coalitions, of which only the signs are kept.

    Attributes
    ----------
    signs : array, (n, M)
        1 for members, −1 for other players.
    of_all, of_others : arrays, (D + 1, M + 1) and (D + 1, M)
        The mean product of d out of M players, or out of the M − 1 others, of whom h have −1.
    """

    signs: FloatArray
    of_all: FloatArray
    of_others: FloatArray

    @classmethod
    def from_signs(cls, signs: FloatArray) -> Products:
        """Return those of coalitions, (n, M)."""
        n_players, most = signs.shape[1], max(_LARGER_SIZES)
        return cls(signs, mean_products(n_players, most), mean_products(n_players - 1, most))

    def subset_values(self, values: slice) -> Products:
        """Return those of some of the coalitions."""
        return Products(self.signs[values], self.of_all, self.of_others)

    def distances(self) -> IntArray:
        """Return the numbers of players in which coalitions differ, (n, n)."""
        n_players = self.signs.shape[1]
        distances: IntArray = np.rint((n_players - self.signs @ self.signs.T) / 2).astype(np.intp)
        return distances

    def kernel(self, prior: Variances, distances: IntArray | None = None) -> FloatArray:
        """Return the covariances of the values without single players, (n, n)."""
        by_distance = _CONSTANT + prior.pairs * self.of_all[2] + prior.triples * self.of_all[3]
        by_distance += prior.larger * self.of_all[list(_LARGER_SIZES)].mean(axis=0)
        kernel: FloatArray = by_distance[self.distances() if distances is None else distances]
        functions = self.functions_of_size()
        if prior.sizes:
            kernel += prior.sizes * functions @ functions.T
        kernel[np.diag_indices(len(kernel))] += _ROUNDING * (1 + prior.pairs + prior.sizes)
        return kernel

    def functions_of_size(self) -> FloatArray:
        """Return the sum of the signs and its square, (n, 2), of mean 0 and variance 1."""
        n_players = self.signs.shape[1]
        sums = self.signs.sum(axis=1) / np.sqrt(n_players)
        return np.stack([sums, (sums**2 - 1) / np.sqrt(2)], axis=1)

    def features(self, factors: SizeFactors) -> FloatArray:
        """Return the values of games in which one player counts, (n, M)."""
        signs = self.signs
        of_size: FloatArray = factors.at(signs.sum(axis=1), signs.shape[1])[:, None]
        return of_size * signs

    def covariances(self, prior: Variances) -> FloatArray:
        """Return those of values and attributions, without single players, (n, M)."""
        signs, n_players = self.signs, self.signs.shape[1]
        absent = (signs < 0).sum(axis=1)[:, None] - (signs < 0)
        by_absent = np.zeros(n_players)
        for size, variance in _odd_sizes(prior):
            by_absent += 2 / n_players * variance * self.of_others[size - 1]
        covariances: FloatArray = signs * by_absent[absent]
        of_sums = 2 / np.sqrt(n_players) * prior.sizes
        covariances += of_sums * self.functions_of_size()[:, :1]
        return covariances

    def variance(self, prior: Variances) -> float:
        """Return the variance of an attribution without its single player."""
        n_players = self.signs.shape[1]
        of_sets = sum(4 * variance / size / n_players for size, variance in _odd_sizes(prior))
        return float(of_sets + 4 * prior.sizes / n_players)


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


def _odd_sizes(prior: Variances) -> list[tuple[int, float]]:
    """Return the numbers of players of odd interactions, with their variances."""
    share = prior.larger / len(_LARGER_SIZES)
    return [(3, prior.triples), *((size, share) for size in _LARGER_SIZES if size % 2)]


def mean_products(n_players: int, most: int) -> FloatArray:
    """Return the mean over all sets of d players of the product of their signs, (D + 1, M + 1).

    It depends on the number h of players with −1. The recurrence is that of Krawtchouk polynomials
    over their values at 0. It is 0 for more players than there are.
    """
    absent = np.arange(n_players + 1.0)
    means = np.zeros((most + 1, n_players + 1))
    means[0] = 1.0
    for size in range(min(most, n_players)):
        before = means[size - 1] if size else 0.0
        means[size + 1] = (n_players - 2 * absent) * means[size] - size * before
        means[size + 1] /= n_players - size
    return means


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


def games_by_prior(
    products: Products, targets: FloatArray, errors: ErrorCovariances | None
) -> dict[tuple[Variances, SizeFactors], IntArray]:
    """Return the games, by the prior that explains their first values best.

    The variances are chosen first, then the tilt, then the curvature.
    """

    def best_of(
        candidates: list[tuple[Variances, SizeFactors]], games: IntArray, most_values: int
    ) -> Iterator[tuple[Variances, SizeFactors, IntArray]]:
        first, scores = slice(0, min(most_values, len(targets))), []
        part, values = products.subset_values(first), targets[first][:, games]
        n, distances = len(values), part.distances()
        for prior, factors in candidates:
            features = part.features(factors)
            kernel = part.kernel(prior, distances) + features @ features.T / features.shape[1]
            if errors is not None:
                kernel += errors.matrix(first)
            factor: FloatArray = np.linalg.cholesky(kernel).astype(np.float64, copy=False)
            whitened = column_by_column(partial(whitened_by, factor), values)
            squares = (np.ascontiguousarray(whitened.T) ** 2).sum(axis=1)
            scores.append(
                -n / 2 * np.log(np.maximum(squares, TINY)) - np.log(np.diagonal(factor)).sum()
            )
        best = np.argmax(scores, axis=0)
        for index in np.unique(best).tolist():
            yield *candidates[index], games[best == index]

    found, most = {}, _FACTORS_FROM
    all_variances = [(prior, SizeFactors()) for prior in Variances.candidates()]
    for prior, flat, games in best_of(all_variances, np.arange(targets.shape[1]), _CHOSEN_FROM):
        tilted = [(prior, SizeFactors(tilt)) for tilt in _TILTS]
        for _, tilt, of_tilt in best_of([(prior, flat), *tilted], games, most):
            curved = [(prior, SizeFactors(tilt.tilt, curvature)) for curvature in _CURVATURES]
            for _, factors, of_factors in best_of([(prior, tilt), *curved], of_tilt, most):
                found[prior, factors] = of_factors
    return found

"""One Gaussian process for the games of all background rows, from a part of their values.

The value v_b(S) is the output for a row that takes the features of S from the explained row and
the others from background row b. So feature j is at one of B + 1 levels: that of the explained row,
or that of a background row. Background rows with nearly the same level of a feature have nearly the
same main effect of it, and a value of one tells something about the others. With κ_j a kernel on
the levels of feature j, the values are a Gaussian process with covariances

    a₁ e₁ + a₂ e₂ + a₃ e₃,   e_k the elementary symmetric polynomials of the κ_j:

main effects and interactions of two and three features. κ_j falls with the distance of two levels
and is centred, so that its functions have mean 0 over the levels; as that of an energy distance, it
has no length scale. It has a weight w_j for each feature, because few features matter. Weights, a_k
and the variance of larger interactions, which is noise here, maximise the marginal likelihood.

Shapley values need the odd part of each game, (v_b(S) − v_b(N∖S)) / 2. All covariances are those of
odd parts. The Shapley values of the mean game are linear in the process, so that their posterior
has a closed form; see `docs/mathematics.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ...array_types import BoolArray, FloatArray, IntArray

MOST_INDUCING = 1_500
"""Odd parts whose span holds the posterior mean. With more values, the process is projected on that
span. 3,000 change the errors by less than a tenth, and take five times as long."""

FIT_PARTS, _FIT_ENDS = 320, 80
"""Odd parts, and of these at most so many of all players, that the hyperparameters are fitted to.
Three times as many change errors by a few percent."""

FIT_STEPS = 12
"""Fixed-point steps of the fit at most."""

_LEAST_GAIN = 0.5
"""Gain of the log likelihood in a step below which the fit ends."""

_FIRST_SHARES = (0.7, 0.2, 0.05, 0.05)
"""Shares of the degrees and of noise in the variance, from which the fit starts."""

_LEAST_WEIGHT = 0.02
"""Least weight over the largest."""

_NUGGET = 1e-5
"""Variance over that of the values that keeps covariance matrices positive definite, and the least
of a degree."""

_NUMBERS = 2**17
"""Numbers of the kernels of several background rows in memory at a time."""

_EXPECTED_PARTS = 20.0
"""Weight of the process in the misfit, as a number of parts that are as far off as expected. The
misfit is that of the latest half of the parts: with 1,500 parts of five fitted models, it was .7 to
1.7 where squared errors were .9 to 1.7 of their variances."""

_LARGEST_STEP = 10.0
"""Factor by which a step changes a hyperparameter at most."""


@dataclass(frozen=True)
class Levels:
    """The levels of the players of one row: that of the row itself, and those of background rows.

    Attributes
    ----------
    coordinates : array, (Q, B + 1)
        Numbers whose distances are those of levels, of the explained row first. A player has one or
        several, and the distance of two of its levels is the sum of theirs.
    owners : array, (Q,)
        The player of each, in order.
    weights : array, (B,)
        Weights of the background rows, 1 in all.
    """

    coordinates: FloatArray
    owners: IntArray
    weights: FloatArray

    @classmethod
    def from_columns(
        cls, columns: npt.NDArray[Any], players: IntArray, weights: FloatArray
    ) -> Levels:
        """Return the levels of columns, (B + 1, D), each of which belongs to a player.

        Numbers are compared by their values and by their ranks, because models of both kinds are
        common: networks, and trees, for which only the order counts. Missing values are a category
        of their own. Columns of anything but numbers are compared by equality.
        """
        coordinates, owners = [], []
        for player in np.unique(players):
            for column in columns[:, players == player].T:
                of_column = _coordinates(column)
                coordinates += of_column
                owners += [player] * len(of_column)
        return cls(np.array(coordinates), np.array(owners), weights)

    @property
    def n_players(self) -> int:
        """M."""
        return int(self.owners[-1]) + 1

    @cached_property
    def _layers(self) -> list[IntArray]:
        """The first coordinate of each player, the second of those who have one, and so on."""
        ranks = np.arange(len(self.owners)) - np.searchsorted(self.owners, self.owners)
        return [np.flatnonzero(ranks == rank) for rank in range(ranks.max() + 1)]

    @cached_property
    def _centring(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean distances, (M, B + 1), their means, (M, 1), and the scale, (M, 1), of kernels.

        Kernels are centred over the levels, half of whose weight is that of the explained row,
        because a player is present in half of the values, and have mean variance 1.
        """
        of_levels = np.concatenate([[0.5], 0.5 * self.weights])
        means = np.array([self._distances(level) @ of_levels for level in range(len(of_levels))]).T
        centre = (means @ of_levels)[:, None]
        variances = ((2 * means - centre) @ of_levels)[:, None]
        return means, centre, np.where(variances > 0, variances, 1.0)

    def _distances(self, level: int) -> FloatArray:
        """Return the distances of a level and all levels, (M, B + 1)."""
        differences = np.abs(self.coordinates - self.coordinates[:, level : level + 1])
        found = differences[self._layers[0]]
        for layer in self._layers[1:]:
            found[self.owners[layer]] += differences[layer]
        return found

    def kernel(self, level: int) -> FloatArray:
        """Return the kernels of a level and all levels, (M, B + 1)."""
        means, centre, scale = self._centring
        return (means + means[:, level : level + 1] - centre - self._distances(level)) / scale

    def kernels(self, levels: IntArray, weights: FloatArray) -> Callable[[int], FloatArray]:
        """Return a function of a level, with its weighted kernels with others, (M, n), as value."""
        places = levels + self.coordinates.shape[1] * np.arange(self.n_players)[:, None]
        return lambda level: np.take(self.kernel(level), places) * weights[:, None]


@dataclass(frozen=True)
class Parts:
    """Odd parts of the games of background rows.

    Attributes
    ----------
    present : array, (n, M)
        The coalition of each part.
    backgrounds : array, (n,)
        Its background row.
    are_exact : array, (n,)
        Whether its value has no noise: interactions of all degrees are known for all players.
    """

    present: BoolArray
    backgrounds: IntArray
    are_exact: BoolArray

    def levels(self) -> IntArray:
        """Return the level of each player in each coalition, (M, n)."""
        return np.where(self.present, 0, self.backgrounds[:, None] + 1).T

    def signs(self) -> FloatArray:
        """Return 1 for present players, and −1 for absent ones, (n, M)."""
        return np.where(self.present, 1.0, -1.0)

    def complement(self) -> Parts:
        """Return the parts of the complements."""
        return replace(self, present=~self.present)

    def subset(self, indices: IntArray) -> Parts:
        """Return some of the parts."""
        return Parts(self.present[indices], self.backgrounds[indices], self.are_exact[indices])


@dataclass
class BackgroundProcess:
    """The process, with its hyperparameters.

    Attributes
    ----------
    levels : Levels
        The levels of the players.
    variances : array, (3,)
        a₁, a₂ and a₃.
    noise : float
        Variance of what is left of an odd part.
    weights : array, (M,)
        w, with mean 1.
    """

    levels: Levels
    variances: FloatArray = field(default_factory=lambda: np.ones(3))
    noise: float = 0.0
    weights: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        """Begin with equal weights."""
        self.weights = np.ones(self.levels.n_players)

    def fit(self, parts: Parts, targets: FloatArray) -> None:
        """Choose the hyperparameters with the largest likelihood, for targets, (n,), of variance 1.

        Each step multiplies a variance by its share in the values over its share in the degrees of
        freedom, which is 1 at a maximum, and the weight of a player by the root of that.
        """
        of_players = self._main_effects(parts)  # (M, n, n)
        identity = np.eye(len(targets))
        best = np.inf
        chosen = self.variances, self.noise, self.weights
        for step in range(FIT_STEPS):
            degrees = self._degrees(parts, parts)
            sizes = np.diagonal(degrees, axis1=1, axis2=2).mean(axis=1)
            if not step:
                self.variances = np.array(_FIRST_SHARES[:3]) / sizes
                self.noise = _FIRST_SHARES[3]
            covariances = np.tensordot(self.variances, degrees, 1)
            factor = cho_factor(covariances + np.diag(self._noise_of(parts)), lower=True)
            inverse = cho_solve(factor, identity)
            solved = inverse @ targets
            loss = solved @ targets / 2 + np.log(np.diag(factor[0])).sum()
            gain, best = best - loss, min(best, loss)
            if gain > 0:
                chosen = self.variances, self.noise, self.weights
            if gain < _LEAST_GAIN or step == FIT_STEPS - 1:
                break

            explained, expected = np.outer(solved, solved), inverse
            grown = _growth(degrees, explained, expected)
            is_free = ~parts.are_exact
            noise = (
                self.noise * _growth(np.diag(is_free.astype(float))[None], explained, expected)[0]
            )
            weights = self.weights
            if step:
                weights = weights * np.sqrt(_growth(of_players, explained, expected))
                weights = np.maximum(weights, _LEAST_WEIGHT * weights.max())
            mean = weights.mean()
            variances = np.maximum(self.variances * grown, _NUGGET / sizes)
            self.variances = variances * mean ** np.arange(1, 4)
            self.noise = max(noise, _NUGGET)
            self.weights = weights / mean
        self.variances, self.noise, self.weights = chosen

    def attributions(
        self, parts: Parts, targets: FloatArray, n_fitted: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the posterior means and variances, (M,), for targets, (n,), of variance 1.

        Variances grow by the misfit of the parts after the first `n_fitted`, to which the
        hyperparameters are not fitted.
        """
        n = len(targets)
        inducing = parts.subset(np.arange(min(n, MOST_INDUCING)))
        n_inducing = len(inducing.backgrounds)
        own = np.tensordot(self.variances, self._degrees(inducing, inducing), 1)
        factor = np.linalg.cholesky(own + np.diag(self._noise_of(inducing)))
        solved = solve_triangular(factor, targets[:n_inducing], lower=True)
        misfit = _misfit(solved[max(n_fitted, n_inducing // 2) :])
        if n == n_inducing:
            known = solve_triangular(factor, self._with_attributions(inducing).T, lower=True)
            variances = self._attribution_variances() - (known**2).sum(axis=0)
            return known.T @ solved, misfit * np.maximum(variances, 0)
        factor = np.linalg.cholesky(own + _NUGGET * np.eye(n_inducing))
        precision, sums = np.eye(len(factor)), np.zeros(len(factor))
        for start in range(0, n, MOST_INDUCING):
            block = np.arange(start, min(start + MOST_INDUCING, n))
            some = parts.subset(block)
            across = own
            if start:
                across = np.tensordot(self.variances, self._degrees(some, inducing), 1)
            scaled = solve_triangular(factor, across.T, lower=True) / np.sqrt(self._noise_of(some))
            precision += scaled @ scaled.T
            sums += scaled @ (targets[block] / np.sqrt(self._noise_of(some)))
        known = solve_triangular(factor, self._with_attributions(inducing).T, lower=True)
        of_precision = np.linalg.cholesky(precision)
        left = solve_triangular(of_precision, known, lower=True)
        means = left.T @ solve_triangular(of_precision, sums, lower=True)
        variances = self._attribution_variances() + (left**2 - known**2).sum(axis=0)
        return means, misfit * np.maximum(variances, 0)

    def _noise_of(self, parts: Parts) -> FloatArray:
        """Return the variance of the noise of each part, (n,)."""
        return np.where(parts.are_exact, 0.0, self.noise) + _NUGGET

    def _degrees(self, parts: Parts, others: Parts) -> FloatArray:
        """Return the covariances of odd parts by degree, for variances 1: (3, n, m)."""
        found = np.empty((3, len(parts.backgrounds), len(others.backgrounds)))
        used, of_others = np.unique(others.backgrounds, return_inverse=True)
        signs, other_signs = parts.signs(), others.signs().T
        order = np.argsort(parts.backgrounds, kind="stable")
        backgrounds, starts = np.unique(parts.backgrounds[order], return_index=True)
        groups = np.split(order, starts[1:])
        n_blocks = min(-(-len(groups) * other_signs.size // _NUMBERS), len(groups))
        for block in np.array_split(np.arange(len(groups)), n_blocks):
            sizes = np.array([len(groups[index]) for index in block])
            is_part = np.arange(sizes.max()) < sizes[:, None]
            rows = np.concatenate([groups[index] for index in block])
            own = np.zeros((*is_part.shape, len(other_signs)))
            own[is_part] = signs[rows]
            sums = []
            for power in _powers(self._corners(backgrounds[block], used)):
                even, of_one, of_other, odd = _parities(power)
                sums.append(
                    (
                        even.sum(axis=1)[:, None, of_others],
                        (own @ of_one)[:, :, of_others],
                        (of_other[:, :, of_others] * other_signs).sum(axis=1)[:, None],
                        own @ (odd[:, :, of_others] * other_signs),
                    )
                )
            for degree, polynomial in enumerate(_odd_polynomials(*sums)):
                found[degree, rows] = polynomial[is_part]
        return found

    def _with_attributions(self, parts: Parts) -> FloatArray:
        """Return the covariances of attributions and odd parts, (M, n).

        A product of three kernels is, as a game of S, a product of three numbers: α of players in
        S, β of others. Its Shapley value is (α_i − β_i) times the mean of the products of the other
        two over the orders: both present or both absent 1/3 each, one of them 1/6 each.
        """
        first, second, third = self.variances
        total = np.zeros((self.levels.n_players, len(parts.backgrounds)))
        for sign, half in ((0.5, parts), (-0.5, parts.complement())):
            kernels = self.levels.kernels(half.levels(), self.weights)
            alpha = kernels(0)  # (M, n)
            alphas, both_present = _others(alpha, alpha)
            for b, share in enumerate(self.levels.weights):
                beta = kernels(b + 1)
                betas, both_absent = _others(beta, beta)
                mixed = _others(alpha, beta)[1]
                pairs = (both_present + both_absent + mixed) / 6
                effects = first + second * (alphas + betas) / 2 + third * pairs
                total += sign * share * (alpha - beta) * effects
        return total

    def _attribution_variances(self) -> FloatArray:
        """Return the prior variances of the attributions, (M,).

        An attribution is twice the coefficient of its sign, and two thirds of those of triples.
        """
        first, second, third = self.variances
        total, everyone = np.zeros(self.levels.n_players), np.arange(len(self.levels.weights))
        for background, share in enumerate(self.levels.weights):
            corners = self._corners(everyone[background : background + 1], everyone)
            even, of_one, of_other, odd = (part[0] for part in _parities(corners))
            twos = [_others(part, part)[1] / 2 for part in (even, odd, of_one, of_other)]
            triples = twos[0] + twos[1] / 9 + (twos[2] + twos[3]) / 3
            pairs = even.sum(axis=0) - even
            effects = 4 * odd * (first + second * pairs + third * triples)
            total += share * (effects @ self.levels.weights)
        return total

    def _main_effects(self, parts: Parts) -> FloatArray:
        """Return the covariances by the main effect of each player, for weights 1, (M, n, n)."""
        used, of_parts = np.unique(parts.backgrounds, return_inverse=True)
        odd = _parities(self._corners(used, used, is_weighted=False))[3]
        signs = parts.signs()
        of_pairs = odd[of_parts][:, :, of_parts].transpose(1, 0, 2)  # (n, M, n) to (M, n, n)
        return of_pairs * signs.T[:, :, None] * signs.T[:, None]

    def _corners(
        self, backgrounds: IntArray, others: IntArray, is_weighted: bool = True
    ) -> FloatArray:
        """Return the kernels of players who are present or absent in the one, and in the other.

        The players are absent at levels of background rows: (2, 2, n, M, m) for n and m of these.
        """
        levels = np.concatenate([[0], others + 1])
        weights = self.weights[:, None] if is_weighted else 1.0
        corners = np.empty((2, 2, len(backgrounds), self.levels.n_players, len(others)))
        for own, of_own in enumerate((np.zeros_like(backgrounds), backgrounds + 1)):
            for place, level in enumerate(of_own.tolist()):
                found = self.levels.kernel(level)[:, levels] * weights
                corners[own, 0, place], corners[own, 1, place] = found[:, :1], found[:, 1:]
        return corners


def _parities(corners: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the parts of functions of two signs: even, odd in the one, in the other, in both.

    Given their values at 1 and −1 along the first two axes.
    """
    even, odd = (corners[0] + corners[1]) / 2, (corners[0] - corners[1]) / 2
    of_ones = (even[0] + even[1]) / 2, (odd[0] + odd[1]) / 2
    return *of_ones, (even[0] - even[1]) / 2, (odd[0] - odd[1]) / 2


def _misfit(whitened: FloatArray) -> float:
    """Return the mean square, at least 1, of errors over those that earlier values let expect."""
    squares = float(whitened @ whitened)
    return max(1.0, (squares + _EXPECTED_PARTS) / (len(whitened) + _EXPECTED_PARTS))


def parts_to_fit(n_parts: int, n_backgrounds: int) -> IntArray:
    """Return the indices of the parts that hyperparameters are fitted to.

    The first `n_backgrounds` parts are those of all players.
    """
    n_ends = min(n_backgrounds, _FIT_ENDS)
    n_others = min(n_parts - n_backgrounds, FIT_PARTS - n_ends)
    return np.concatenate([np.arange(n_ends), n_backgrounds + np.arange(n_others)])


def _coordinates(column: npt.NDArray[Any]) -> list[FloatArray]:
    """Return numbers whose distances are those of the entries, with mean distance 1 each."""
    try:
        numbers = column.astype(float)
    except (TypeError, ValueError):
        categories, of_entries = np.unique(column.astype(str), return_inverse=True)
        return [(of_entries == index) / 2.0 for index in range(len(categories))]
    missing = ~np.isfinite(numbers)
    numbers = np.where(missing, np.median(numbers[~missing]) if not missing.all() else 0.0, numbers)
    ranks = np.unique(numbers, return_inverse=True)[1].astype(float)
    found = []
    for values in (numbers, ranks, *([missing.astype(float)] if missing.any() else [])):
        scale = _mean_distance(values)
        found.append(values / scale if scale > 0 else np.zeros(len(values)))
    return found


def _mean_distance(values: FloatArray) -> float:
    """Return the mean distance of two of some numbers."""
    n = len(values)
    ordered = np.sort(values)
    return float(2 * (ordered @ (2 * np.arange(n) - n + 1)) / n**2)


def _powers(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the first three powers."""
    squares = values * values
    return values, squares, squares * values


def _odd_polynomials(
    first: Sequence[FloatArray], second: Sequence[FloatArray], third: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the parts that are odd in both signs of the elementary symmetric polynomials.

    Given the sums of first, second and third powers, each in its parts by `_parities`. With these
    sums s, t and u, the polynomials are s, (s² − t) / 2 and (s³ − 3 s t + 2 u) / 6.
    """
    (a, b, c, d), (a2, b2, c2, d2), d3 = first, second, third[3]
    cubes = d * (d * d + 3 * (a * a + b * b + c * c)) + 6 * a * b * c
    mixed = a * d2 + d * a2 + b * c2 + c * b2
    return d, a * d + b * c - d2 / 2, (cubes - 3 * mixed + 2 * d3) / 6


def _others(one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sum of `one` over all other players, and of products over ordered pairs of them.

    The players are along the first axis.
    """
    left, right = one.sum(axis=0) - one, other.sum(axis=0) - other
    products = one * other
    return left, left * right - (products.sum(axis=0) - products)


def _growth(derivatives: FloatArray, explained: FloatArray, expected: FloatArray) -> FloatArray:
    """Return the factors, within bounds, of variances with these derivatives, (H, n, n)."""
    flat = derivatives.reshape(len(derivatives), -1)
    ratios = (flat @ explained.ravel()) / np.maximum(flat @ expected.ravel(), np.finfo(float).tiny)
    return np.clip(ratios, 1 / _LARGEST_STEP, _LARGEST_STEP)

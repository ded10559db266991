"""Fitting the prior of a part of a game to its values: how strongly each player interacts.

Where the marginal likelihood is stationary, each component of the variance has as much energy in
the values as the prior expects (MacKay, Bayesian Interpolation, 1992). Each step closes the gap
between observed and expected energies, for all players at once. Priors on the logarithms of the
hyperparameters limit the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy.special

from ...array_types import FloatArray, IntArray, ScoreArray
from .factors import FactorCache, LowerFactors, coalitions_key
from .kernels import Kernel, Prior, bounded_strengths, log_norm, sizes_of_interactions
from .marginal_likelihood import (
    CENTRES,
    LEVEL_SPREAD,
    SPREADS,
    STRENGTH_SPREAD,
    TINY,
    Features,
    covariance_of,
    log_level_centre,
    n_known,
    whiten,
)

_SPREAD_WHERE_KNOWN = 0.7
"""Prior standard deviation of the logarithm of a player's strength around a known centre."""

_LEAST_SHARE = 0.01
"""Added to each player's share in the interactions, relative to the largest share."""

_OVERRELAXATION = (3.0, 2.0, 1.5, 1.5, 1.0)
"""Each step goes so many times as far as the fixed point of its component. The first steps go
farther, because all components move together, and later steps less."""

_OVERRELAXATION_WHERE_KNOWN = (2.0, 1.5, 1.0, 1.0, 1.0, 1.0)
"""The same for strengths with known centres. The rest of the strengths may be noise only."""

_MATRICES_OF_STEP = 4
"""Number of matrices of each game that a step needs."""

_LIMIT, _LEVEL_LIMIT = 6.0, 1.0
"""Bounds on the step of the logarithm of a strength, and on the step of the common level."""


@dataclass(frozen=True)
class StrengthPrior:
    """Prior means (R, M) and deviation of the logarithms of the strengths, less their level."""

    centres: FloatArray
    spread: float


def log_weights_from_scores(scores: ScoreArray) -> FloatArray:
    """Return prior means of the logarithms of the strengths, (R, M), from scores of the pairs.

    They are the logarithms of the players' shares in the scores, (R, M, M). No share is 0.
    """
    shares = scores.sum(axis=2)
    largest = shares.max(axis=1, keepdims=True)
    logarithms = np.log(shares / np.where(largest > 0, largest, 1.0) + _LEAST_SHARE)
    centred: FloatArray = logarithms - logarithms.mean(axis=1, keepdims=True)
    return centred


def strength_prior(centres: FloatArray | None, shape: tuple[int, ...]) -> StrengthPrior:
    """Return the prior of strengths, (R, M), around centres, or around equal strengths."""
    if centres is None:
        return StrengthPrior(np.zeros(shape), STRENGTH_SPREAD)
    return StrengthPrior(centres, _SPREAD_WHERE_KNOWN)


def fit_priors(
    signs: FloatArray,
    targets: FloatArray,
    start: Prior,
    expectation: StrengthPrior,
    errors: FloatArray | None = None,
) -> Prior:
    """Return the prior that explains each of the targets best, as a stack.

    Games that start from the same prior share the matrices of the first step. They are kept for
    later games of the same coalitions.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    targets : array, (R, n)
        Their values, of mean square about 1.
    start : Prior
        The start of the fit, for each target.
    expectation : StrengthPrior
        The prior of the strengths.
    errors : array, (R, n), optional
        Variances of the errors of the values. The first step does without them: they are relative
        to the scale of the values, which a step finds.
    """
    is_known = expectation.centres.any()
    first, *others = _OVERRELAXATION_WHERE_KNOWN if is_known else _OVERRELAXATION
    prior = start
    for games in _games_by_prior(start):
        of_first = start.subset_games(games[:1])
        shared = (
            FixedPoint.from_prior(signs, of_first)
            if is_known
            else _kept_or_computed(signs, of_first)
        )
        shared = shared.for_games(len(games))
        of_games = StrengthPrior(expectation.centres[games], expectation.spread)
        prior = prior.with_games(games, shared.improved(targets[games], of_games, first))
    if errors is not None:
        prior = with_errors(signs, targets, prior, errors)
    # New memory takes the system longer to provide than the processor to fill.
    memory = np.empty((_MATRICES_OF_STEP, len(targets), len(signs), len(signs)))
    for step in others:
        prior = FixedPoint.from_prior(signs, prior, memory).improved(targets, expectation, step)
        if errors is not None:
            prior = with_errors(signs, targets, prior, errors)
    return prior


def fit_common_prior(
    signs: FloatArray, targets: FloatArray, start: Prior, expectation: StrengthPrior
) -> Prior:
    """Return the prior, as a stack of one, that explains several targets, (k, n), best."""
    prior = start
    for step in _OVERRELAXATION:
        prior = FixedPoint.from_prior(signs, prior).improved(targets, expectation, step)
    return prior


def with_errors(
    signs: FloatArray,
    targets: FloatArray,
    prior: Prior,
    errors: FloatArray,
    features: Features | None = None,
) -> Prior:
    """Return the prior with the errors of values, which are relative to the scale of the values."""
    kernel = Kernel.at(signs, prior.strengths, is_even=prior.is_even)
    covariances = covariance_of(kernel, prior, features)
    _, whitened = whiten(covariances, targets[:, :, None])
    scale = (whitened[:, 1:] ** 2).mean(axis=1) + TINY
    return replace(prior, errors=errors / scale)


def _games_by_prior(prior: Prior) -> list[IntArray]:
    """Return the games of a stack that have the same prior, for each prior that occurs."""
    games_by_numbers: dict[tuple[float, ...], list[int]] = {}
    for game, numbers in enumerate(_numbers(prior)):
        games_by_numbers.setdefault(numbers, []).append(game)
    return [np.array(games) for games in games_by_numbers.values()]


def _numbers(prior: Prior) -> list[tuple[float, ...]]:
    """Return the hyperparameters of each game of a stack."""
    numbers = np.column_stack([prior.strengths, prior.interactions, prior.noise])
    return [tuple(of_game) for of_game in numbers.tolist()]


def around_centres(start: Prior, expectation: StrengthPrior) -> Prior:
    """Return a prior whose strengths are moved from equal ones to their prior means."""
    moved = bounded_strengths(start.strengths * np.exp(expectation.centres))
    return replace(start, strengths=moved, jumps=False)


@dataclass(frozen=True)
class FixedPoint:
    """The expected energy of each component of the variance, under a prior.

    The components are the interactions that each player takes part in, all interactions, and noise.
    The expected energy of a component with covariance A is tr(K⁻¹A). The observed energy is
    (n/E) yᵀK⁻¹AK⁻¹y, with E = yᵀK⁻¹y.

    `half_inverse` is the part of K⁻¹ above the diagonal, and half of the diagonal. K⁻¹ is the sum
    of it and its transpose.
    """

    prior: Prior
    kernel: Kernel
    other_parity: FloatArray
    half_inverse: FloatArray
    expected: FloatArray

    @classmethod
    def from_prior(
        cls, signs: FloatArray, prior: Prior, memory: FloatArray | None = None
    ) -> FixedPoint:
        """Compute the expected energies under a prior.

        The matrices are written to `memory`, (4, R, n, n), if it is given.
        """
        if memory is None:
            memory = np.empty((_MATRICES_OF_STEP, len(prior.strengths), len(signs), len(signs)))
        kernel, other = Kernel.with_other_parity(signs, prior.strengths, memory[:2], prior.is_even)
        covariances = covariance_of(kernel, prior, out=memory[2])
        half_inverse = LowerFactors.from_covariances(covariances).upper_inverses()
        half_inverse *= _above_and_half_the_diagonal(len(signs))
        of_other = 2 * _quadratic(np.multiply(half_inverse, other, out=memory[3]), signs)
        of_all = 2 * _inner(half_inverse, kernel.interactions)
        diagonals = np.diagonal(half_inverse, axis1=1, axis2=2)
        trace = 2 * diagonals[:, n_known(prior) :].sum(axis=1)
        of_lowest = 2 * _quadratic(half_inverse, _lowest(prior, signs))
        expected = _energies(prior, of_lowest, of_other, of_all, trace)
        return cls(prior, kernel, other, half_inverse, expected)

    def for_games(self, n_games: int) -> FixedPoint:
        """Return the fixed point of one game for several games, without copies of its matrices."""
        return replace(self, prior=self.prior.subset_games(np.zeros(n_games, dtype=np.intp)))

    def improved(
        self, targets: FloatArray, expectation: StrengthPrior, overrelaxation: float
    ) -> Prior:
        """Return the prior after one step, given the targets, (R, n), or several of one prior."""
        energies = self.energies(targets)
        if len(energies) > len(self.prior.strengths):
            energies = energies.mean(axis=0, keepdims=True)
        logarithms, n_players = np.log(self.prior.strengths), self.prior.strengths.shape[1]
        level = logarithms.mean(axis=1)
        log_ratios = np.log([self.prior.interactions, self.prior.noise]).T - CENTRES
        of_strengths = logarithms - level[:, None] - expectation.centres
        offsets = np.concatenate([of_strengths, log_ratios], axis=1)
        spreads = np.concatenate([np.full(n_players, expectation.spread), SPREADS])
        steps = np.array([overrelaxation] * n_players + [1.0, 1.0])
        moves = log_moves(self.expected, energies, offsets, spreads, steps)
        of_players, of_interactions, of_noise = np.split(moves, [-2, -1], axis=1)
        of_interactions = of_interactions * (not self.prior.is_even)
        of_players -= of_players.mean(axis=1, keepdims=True)
        of_players += self._level_step(energies, level - log_level_centre(n_players))[:, None]
        interactions = self.prior.interactions * np.exp(of_interactions[:, 0])
        noise = self.prior.noise * np.exp((of_noise - of_interactions)[:, 0])
        return self.prior.with_numbers(
            bounded_strengths(np.exp(logarithms + of_players)),
            np.clip(interactions, 1e-11, 30.0),
            np.clip(noise, 1e-7, 4e2),
        )

    def energies(self, targets: FloatArray) -> FloatArray:
        """Return the observed energies of the components in the targets, (R, n)."""
        signs, kernel = self.kernel.signs, self.kernel
        solved = (self.half_inverse @ targets[:, :, None])[:, :, 0]
        solved += (targets[:, None] @ self.half_inverse)[:, 0]
        scale = targets.shape[1] / ((targets * solved).sum(axis=1) + TINY)
        of_other = _quadratic(self.other_parity, signs * solved[:, :, None])
        column = solved[:, :, None]
        of_all = _inner(column, kernel.interactions @ column)
        of_lowest = (solved[:, None, :] @ _lowest(self.prior, signs))[:, 0] ** 2
        trace = (solved[:, n_known(self.prior) :] ** 2).sum(axis=1)
        energies = _energies(self.prior, of_lowest, of_other, of_all, trace)
        energies *= scale[:, None]
        return energies

    def level_slopes(self, energies: FloatArray) -> FloatArray:
        """Return the derivatives of the log evidence by the logarithm of all strengths, (R,).

        A common factor of the strengths moves variance from sets below the mean size to those
        above it. The sum of the energies of all players is the sum over sets of size times energy.
        """
        mean_size, _ = sizes_of_interactions(self.prior.strengths, self.prior.is_even)
        beyond = energies - self.expected
        slopes: FloatArray = 0.5 * (beyond[:, :-2].sum(axis=1) - mean_size * beyond[:, -2])
        return slopes

    def _level_step(self, energies: FloatArray, offset: FloatArray) -> FloatArray:
        """Return Newton's step of the level, (R,), with the expected information."""
        _, variance = sizes_of_interactions(self.prior.strengths, self.prior.is_even)
        information = 0.5 * self.expected[:, -2] * variance + 1 / LEVEL_SPREAD**2
        step = (self.level_slopes(energies) - offset / LEVEL_SPREAD**2) / information
        limited: FloatArray = np.clip(step, -_LEVEL_LIMIT, _LEVEL_LIMIT)
        return limited


_cache: FactorCache[FixedPoint] = FactorCache()


def _kept_or_computed(signs: FloatArray, start: Prior) -> FixedPoint:
    """Return the fixed point under a prior of one game, from which other games may start."""
    key = coalitions_key(signs), *_numbers(start)[0]
    return _cache.get(key, lambda: FixedPoint.from_prior(signs, start))


def _lowest(prior: Prior, signs: FloatArray) -> FloatArray:
    """Return the products of signs of the sets of a parity that do not interact, (n, k)."""
    return np.ones((len(signs), 1)) if prior.is_even else signs


def _energies(
    prior: Prior, of_lowest: FloatArray, of_other: FloatArray, of_all: FloatArray, trace: FloatArray
) -> FloatArray:
    """Return Σ G ∘ A for each component A, (R, M + 2), for a matrix G of each game.

    The sets that hold player i sum to α S + β z_i z′_i C, where S is the sum over all sets of the
    parity, C that over all sets of the other one, α = −t_i² / (1 − t_i²) and β = t_i / (1 − t_i²).
    The lowest sets are a part of it: single players, or the empty set, which holds no player.

    Parameters
    ----------
    of_lowest : array, (R, M) or (R, 1)
        zᵀ G z for the products of signs of each of the lowest sets.
    of_other : array, (R, M)
        z_iᵀ (G ∘ C) z_i by the norm.
    of_all : array, (R,)
        Σ G ∘ the kernel of interactions.
    trace : array, (R,)
        Trace of G over the values that have noise.
    """
    t, variance = prior.strengths, np.asarray(prior.interactions)[:, None]
    scale = np.exp(-log_norm(t, prior.is_even))[:, None]
    lowest = scale * of_lowest if prior.is_even else t * of_lowest * scale
    with_lowest = of_all[:, None] + lowest.sum(axis=1, keepdims=True)
    players = (t * of_other - t**2 * with_lowest) / (1 - t**2)
    if not prior.is_even:
        players -= lowest
    remainder = [variance * of_all[:, None], (prior.noise_variance * trace)[:, None]]
    # An energy of 0 may be negative by rounding.
    energies: FloatArray = np.maximum(
        np.concatenate([variance * players, *remainder], axis=1), TINY
    )
    return energies


def log_moves(
    expected: FloatArray,
    energies: FloatArray,
    offset: FloatArray,
    spread: FloatArray,
    overrelaxation: FloatArray,
) -> FloatArray:
    """Return the δ at which expected − observed · exp(−δ / ω) + 2 (offset + δ) / spread² is 0.

    ω is the overrelaxation. Lambert's function W gives the solution. Its argument may be huge, so
    that Wright's function computes it from the logarithm of the argument.
    """
    slope = 2 / spread**2
    level = (expected + slope * offset) / (slope * overrelaxation)
    inner = scipy.special.wrightomega(np.log(energies / (slope * overrelaxation)) + level)
    moves: FloatArray = np.clip(overrelaxation * (inner - level), -_LIMIT, _LIMIT)
    return moves


@lru_cache(maxsize=8)
def _above_and_half_the_diagonal(n: int) -> FloatArray:
    """Return 1 above the diagonal of a matrix, 1/2 on it and 0 below, (n, n)."""
    shares: FloatArray = np.tri(n).T - 0.5 * np.eye(n)
    return shares


def _quadratic(matrices: FloatArray, columns: FloatArray) -> FloatArray:
    """Return z_iᵀ G z_i for each game and each column z_i, (R, M)."""
    forms: FloatArray = (columns * (matrices @ columns)).sum(axis=1)
    return forms


def _inner(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the sums of the products of the entries of two matrices, for each game, (R,)."""
    n_games = len(first)
    products = first.reshape(n_games, 1, -1) @ second.reshape(n_games, -1, 1)
    sums: FloatArray = products[:, 0, 0]
    return sums

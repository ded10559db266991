"""Gaussian-process prior of the even part of a game, and its fit to the values of one row.

The even part of a game, e(S) = (v(S) + v(N∖S)) / 2, is a sum of products of z_j = ±1 over sets T of
even size. Its coefficients have independent priors, of variance Π_{j∈T} t_j / norm for all even
sets but the empty one. The covariance of e at z and z′ has a closed form,

    Σ_T Π_{j∈T} t_j z_j z′_j = ½ [Π_j (1 + t_j z_j z′_j) + Π_j (1 − t_j z_j z′_j)] − 1.

The norm is its value at z = z′, so that the interactions have variance 1. The constant of the game
cancels, because only differences from the value of all players together are used.

The Shapley interaction index of a pair is the sum of 4 c_T / (|T| − 1) over the even sets that hold
it, and 1/(k + 1) = ∫₀¹ u^k du. So its covariances are integrals of polynomials in u, which Gauss's
rules integrate exactly.

As for the odd part, each step closes the gap between the observed and the expected energy of the
interactions of each player, and of the noise; see `prior_fitting`. The constant of the game is
unknown: the values are differences from the value of all players together, with the covariance
D (K + σ² I) Dᵀ for the matrix D of these differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ...array_types import FloatArray
from ...interactions.indices import pairs_of, weights_of_members
from .attribution_covariances import integration_rule, log_integration_rule
from .kernels import bounded_strengths
from .marginal_likelihood import (
    JITTER,
    LEVEL_SPREAD,
    STRENGTH_SPREAD,
    TINY,
    log_evidence,
    log_level_centre,
    whitened_by,
)
from .prior_fitting import log_moves

_MOST_NODES = 64
"""Bound on the nodes of a rule. Beyond 128 players, the rest of the sum is left out."""


def even_log_norm(strengths: FloatArray) -> float:
    """Return the logarithm of Σ Π_{j∈T} t_j over even sets T of two players or more."""
    raised, lowered = (np.log1p(sign * strengths).sum() for sign in (1, -1))
    return float(raised + np.log(0.5 * (1 + np.exp(lowered - raised)) - np.exp(-raised)))


def even_kernel(
    signs: FloatArray, other_signs: FloatArray, strengths: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the kernel of even sets between coalitions, (n, m), and the sum over odd sets.

    Both are divided by the norm.
    """
    scale = even_log_norm(strengths)
    half = 0.5 * np.exp(0.5 * np.log1p(-(strengths**2)).sum() - scale)
    raised = np.exp((signs * np.arctanh(strengths)) @ other_signs.T)
    lowered = half / raised
    raised *= half
    return raised + lowered - np.exp(-scale), raised - lowered


def sizes_of_even_sets(strengths: FloatArray) -> tuple[float, float]:
    """Return the mean and the variance of |T| over even sets, each weighted by Π_{j∈T} t_j."""
    scale, first, second = even_log_norm(strengths), 0.0, 0.0
    for sign in (1, -1):
        product = 0.5 * np.exp(np.log1p(sign * strengths).sum() - scale)
        rates = sign * strengths / (1 + sign * strengths)
        first += product * rates.sum()
        second += product * (rates.sum() ** 2 - (rates**2).sum())
    return float(first), float(max(second + first - first**2, 0.0))


def pair_covariances(index: str, signs: FloatArray, strengths: FloatArray) -> FloatArray:
    """Return the prior covariances of interactions with the values at coalitions, (n, P)."""
    n_players = signs.shape[1]
    if index == "banzhaf":
        first, second = pairs_of(n_players)
        of_pairs = 4 * np.exp(-even_log_norm(strengths)) * strengths[first] * strengths[second]
        covariances: FloatArray = of_pairs * signs[:, first] * signs[:, second]
        return covariances
    rule = integration_rule(n_nodes(n_players))
    return 4 * pair_integrals(signs, strengths, even_log_norm(strengths), rule)


def pair_variances(index: str, strengths: FloatArray) -> FloatArray:
    """Return the prior variances of the interactions, (P,)."""
    n_players = len(strengths)
    ones, rule = np.ones((1, n_players)), log_integration_rule(n_nodes(n_players))
    if index == "banzhaf":
        variances = 4 * pair_covariances(index, ones, strengths)
    else:
        variances = 16 * pair_integrals(ones, strengths, even_log_norm(strengths), rule)
    of_pairs: FloatArray = variances[0]
    return of_pairs


def row_sum_variances(index: str, strengths: FloatArray) -> FloatArray:
    """Return the prior variances of the sums of each player's interactions, (M,)."""
    if index == "banzhaf":
        sums_of_others = strengths.sum() - strengths
        of_pairs: FloatArray = 16 * np.exp(-even_log_norm(strengths)) * strengths * sums_of_others
        return of_pairs
    return 16 * holding_each_player(strengths)


def holding_each_player(strengths: FloatArray) -> FloatArray:
    """Return the share of the variance of the sets that hold each player, (M,)."""
    scale = even_log_norm(strengths)
    raised, lowered = (0.5 * np.exp(np.log1p(sign * strengths).sum() - scale) for sign in (1, -1))
    shares: FloatArray = strengths * (raised / (1 + strengths) - lowered / (1 - strengths))
    return shares


def pair_weights(index: str, signs: FloatArray) -> FloatArray:
    """Return the weight of e at each coalition in the interaction of each pair, (n, P).

    An interaction is the sum of these times e over one coalition of each pair of complements.
    """
    n_players = signs.shape[1]
    weights = weights_of_members(index, n_players)
    return entries_of_pairs(weights + weights[::-1, ::-1], signs)  # of S and of its complement


def entries_of_pairs(of_members: FloatArray, signs: FloatArray) -> FloatArray:
    """Return the entries, (n, P), of (3, M + 1) by members of a pair in S and by the size of S."""
    first, second = pairs_of(signs.shape[1])
    members = signs > 0
    n_inside = members[:, first].astype(np.intp) + members[:, second]
    entries: FloatArray = of_members[n_inside, members.sum(axis=1)[:, None]]
    return entries


def squared_pair_weights(index: str, n_players: int) -> tuple[float, float]:
    """Return the sums of the squares of weights over all pairs of complements.

    The first is that of an interaction, the second that of the sum of a player's interactions.
    """
    if index == "banzhaf":
        of_pair = 16 * 0.5 ** (n_players - 1)
        return of_pair, of_pair * (n_players - 1)
    weights = weights_of_members("shapley", n_players)[0][: n_players - 1]
    # Of each size s, there are C(M − 2, s) coalitions of the other players, and this number times
    # the weight is 1 / (M − 1).
    return float(8 * weights.sum() / (n_players - 1)), 8.0


def n_nodes(n_players: int) -> int:
    """Return the nodes of a rule that is exact for all sets, or the bound on their number."""
    return min(_MOST_NODES, -(-n_players // 2))


def pair_integrals(
    signs: FloatArray,
    strengths: FloatArray,
    log_norm: float,
    rule: tuple[FloatArray, FloatArray],
    is_odd: bool = False,
) -> FloatArray:
    """Return the integrals over u of the even part of t_i t_j z_i z_j Π (1 + u t_l z_l), (n, P).

    Or of the odd part. The product is over the other players. It is that over all players by
    1 ± x z for both players of the pair, with x = u t, and 1 / (1 + x z) = (1 − x z) / (1 − x²). So
    four matrix products serve all pairs. The result is divided by the norm.
    """
    nodes, chances = rule
    first, second = pairs_of(signs.shape[1])
    products = nodes[:, None] * strengths  # (q, M)
    level = 0.5 * np.log1p(-(products**2)).sum(axis=1) - log_norm
    tilt = signs @ np.arctanh(products).T  # (n, q)
    raised, lowered = 0.5 * np.exp(level + tilt), 0.5 * np.exp(level - tilt)
    of_parity, of_other = raised + lowered, raised - lowered
    if is_odd:
        of_parity, of_other = of_other, of_parity
    shares = 1 / (1 - products**2)
    of_pairs = chances[:, None] * shares[:, first] * shares[:, second]  # (q, P)
    of_first, of_second = signs[:, first], signs[:, second]
    of_both, signs_of_pairs = (
        of_pairs * products[:, first] * products[:, second],
        of_first * of_second,
    )
    integrals: FloatArray = of_parity @ of_pairs + signs_of_pairs * (of_parity @ of_both)
    integrals -= of_first * (of_other @ (of_pairs * products[:, first]))
    integrals -= of_second * (of_other @ (of_pairs * products[:, second]))
    return integrals * signs_of_pairs * (strengths[first] * strengths[second])


_NOISE_CENTRE, _NOISE_SPREAD = np.log(3e-3), 2.5
"""Prior of the logarithm of the noise over the variance of the interactions."""

_GRID_LEVELS = (0.3, 1.0, 3.0, 8.0)
_GRID_NOISE = (1e-6, 1e-4, 1e-2, 1e-1, 1.0)
_MOST_GRID_LEVEL = 0.9
"""The grid of priors with equal strengths. Learning starts from the best of them."""

_OVERRELAXATION = (3.0, 2.0, 1.5, 1.0)
"""Each step goes so many times as far as the fixed point of its component."""

_COST_OF_FITTING, _COST_OF_HALF = 0.5, 0.35
"""Each fitted strength lowers the logarithm of the prior probability of a choice by this much."""

_LEVEL_LIMIT = 1.0


@dataclass(frozen=True)
class EvenPrior:
    """Hyperparameters of the even part of one game.

    Attributes
    ----------
    strengths : array, (M,)
        How strongly each player takes part in interactions.
    noise : float
        The variance of the noise.
    log_chance : float
        The logarithm of the prior probability.
    share : float
        The variance of the interactions.
    of_pairs : array, (P,), or None
        Further variances of the interactions of pairs; most are 0.
    """

    strengths: FloatArray
    noise: float
    log_chance: float = 0.0
    share: float = 1.0
    of_pairs: FloatArray | None = None

    @property
    def log_density(self) -> float:
        """The logarithm of the prior density of the level, the noise and the choice."""
        level = np.log(self.strengths).mean() - log_level_centre(len(self.strengths))
        noise = (np.log(self.noise) - _NOISE_CENTRE) / _NOISE_SPREAD
        return float(self.log_chance - 0.5 * ((level / LEVEL_SPREAD) ** 2 + noise**2))


def covariance_of_differences(kernel: FloatArray, noise: float) -> FloatArray:
    """Return the covariance of the differences from the first value, (n, n), with noise.

    The kernel is that between all values, (n + 1, n + 1).
    """
    covariance: FloatArray = kernel[1:, 1:] - kernel[1:, :1] - kernel[:1, 1:] + kernel[0, 0]
    covariance += noise
    diagonal = np.arange(len(covariance))
    covariance[diagonal, diagonal] += noise + 4 * JITTER
    return covariance


def best_even_priors(signs: FloatArray, differences: FloatArray) -> list[EvenPrior]:
    """Return the prior of the grid that suits each of the games, (B, n), with equal strengths."""
    n_players, grid, scores = signs.shape[1], [], []
    for level in _GRID_LEVELS:
        equal = np.full(n_players, min(level / n_players, _MOST_GRID_LEVEL))
        strengths = bounded_strengths(equal)
        kernel, _ = even_kernel(signs, signs, strengths)
        for noise in _GRID_NOISE:
            prior = EvenPrior(strengths, noise)
            half, whitened = whitened_columns(kernel, noise, differences)
            scores.append(log_evidence(half, whitened) + prior.log_density)
            grid.append(prior)
    return [grid[best] for best in np.argmax(np.array(scores), axis=0)]


def whitened_columns(
    kernel: FloatArray, noise: float, games: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return half the log determinant of the covariance L Lᵀ of differences, and L⁻¹ games.

    The games are rows, (B, n), and columns of the result, (n, B).
    """
    covariance = covariance_of_differences(kernel, noise)
    factor = scipy.linalg.cholesky(covariance, lower=True, check_finite=False)
    # One game after the other: the rounding of a game must not depend on the other games.
    whitened = np.array([whitened_by(factor, differences) for differences in games])
    return np.log(np.diag(factor)).sum(), whitened.T


def fitted_prior(
    signs: FloatArray, differences: FloatArray, start: EvenPrior, centres: FloatArray
) -> EvenPrior:
    """Return the prior that explains a game, (n,), best.

    `centres`, (M,), are prior means of the logarithms of the strengths, less their level.
    """
    prior = replace(start, strengths=bounded_strengths(start.strengths * np.exp(centres)))
    for overrelaxation in _OVERRELAXATION:
        prior = _improved(signs, differences, prior, centres, overrelaxation)
    return prior


def even_choices(start: EvenPrior, fitted: EvenPrior, centres: FloatArray) -> Iterator[EvenPrior]:
    """Return the priors to average over: fitted, equal and half-way strengths, and more noise."""
    n_players = len(centres)
    logarithms = np.log(fitted.strengths)
    level = logarithms.mean()
    cost = 0.5 * (((logarithms - level - centres) / STRENGTH_SPREAD) ** 2).sum()
    of_fitted = replace(fitted, log_chance=-cost - _COST_OF_FITTING * n_players)
    yield of_fitted
    yield replace(of_fitted, noise=10 * fitted.noise)
    higher = bounded_strengths(1.7 * fitted.strengths)
    yield replace(of_fitted, strengths=higher, noise=0.1 * fitted.noise)
    half_way = bounded_strengths(np.exp(level + 0.5 * (logarithms - level + centres)))
    log_chance = -0.25 * cost - _COST_OF_HALF * n_players
    yield replace(fitted, strengths=half_way, log_chance=log_chance)
    yield from choices_of_equal_strengths(start)


def choices_of_equal_strengths(start: EvenPrior) -> Iterator[EvenPrior]:
    """Return the priors of equal strengths to average over."""
    yield start
    yield replace(start, noise=10 * start.noise)


def _improved(
    signs: FloatArray,
    differences: FloatArray,
    prior: EvenPrior,
    centres: FloatArray,
    overrelaxation: float,
) -> EvenPrior:
    """Return the prior after one step."""
    t = prior.strengths
    kernel, odd = even_kernel(signs, signs, t)
    covariance = covariance_of_differences(kernel, prior.noise)
    factor = scipy.linalg.cho_factor(covariance, lower=True, check_finite=False)
    n = len(covariance)
    inverse = scipy.linalg.cho_solve(factor, np.eye(n), check_finite=False)
    solved = inverse @ differences
    inner = _undone(_undone(inverse).T)
    column = _undone(solved[:, None])
    scale = n / (differences @ solved + TINY)
    expected = _energies(t, signs, inner * odd, inner * kernel, prior.noise * np.trace(inner))
    outer = signs * column
    of_odd = (outer * (odd @ outer)).sum(axis=0)
    of_all = float((column * (kernel @ column)).sum())
    noise = prior.noise * float((column**2).sum())
    observed = scale * _shares(t, of_odd, of_all, noise)
    return _moved(prior, centres, expected, observed, overrelaxation)


def _undone(of_differences: FloatArray) -> FloatArray:
    """Return Dᵀ times columns, (n, k): (n + 1, k)."""
    return np.concatenate([-of_differences.sum(axis=0, keepdims=True), of_differences])


def _energies(
    t: FloatArray, signs: FloatArray, with_odd: FloatArray, with_even: FloatArray, noise: float
) -> FloatArray:
    of_odd = (signs * (with_odd @ signs)).sum(axis=0)
    return _shares(t, of_odd, float(with_even.sum()), noise)


def _shares(t: FloatArray, of_odd: FloatArray, of_all: float, noise: float) -> FloatArray:
    """Return the energies of the sets of each player, of all sets, and of the noise, (M + 2,).

    The even sets that hold player i sum to (t_i z_i z′_i S − t_i² C) / (1 − t_i²), where S is the
    sum over all odd sets, and C that over all even sets.
    """
    players = (t * of_odd - t**2 * of_all) / (1 - t**2)
    energies: FloatArray = np.maximum(np.concatenate([players, [of_all, noise]]), TINY)
    return energies


def _moved(
    prior: EvenPrior,
    centres: FloatArray,
    expected: FloatArray,
    observed: FloatArray,
    overrelaxation: float,
) -> EvenPrior:
    """Return the prior with its logarithms moved towards equal energies."""
    logarithms, n_players = np.log(prior.strengths), len(centres)
    level = logarithms.mean()
    offsets = np.append(logarithms - level - centres, np.log(prior.noise) - _NOISE_CENTRE)
    spreads = np.append(np.full(n_players, STRENGTH_SPREAD), _NOISE_SPREAD)
    steps = np.append(np.full(n_players, overrelaxation), 1.0)
    is_moved = np.arange(n_players + 2) != n_players  # the scale of all sets is that of the values
    moves = log_moves(expected[is_moved], observed[is_moved], offsets, spreads, steps)
    of_players = moves[:-1] - moves[:-1].mean()
    mean_size, variance = sizes_of_even_sets(prior.strengths)
    beyond = observed - expected
    slope = 0.5 * (beyond[:n_players].sum() - mean_size * beyond[n_players])
    slope -= (level - log_level_centre(n_players)) / LEVEL_SPREAD**2
    information = 0.5 * expected[n_players] * variance + 1 / LEVEL_SPREAD**2
    of_players += np.clip(slope / information, -_LEVEL_LIMIT, _LEVEL_LIMIT)
    strengths = bounded_strengths(np.exp(logarithms + of_players))
    return EvenPrior(strengths, float(np.clip(prior.noise * np.exp(moves[-1]), 1e-7, 4e2)))

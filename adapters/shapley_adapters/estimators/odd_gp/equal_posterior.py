"""Posteriors of games with equal strengths, whose matrices are factored once for many games.

With H the covariance of interactions, D the noise over their variance a, and Z the signs, the
values have the covariance a C + Z Zᵀ / M, where C = H + D. An effect that all players share counts
as if Z were Z R, with R² = I + c 1 1ᵀ and the variance c of `Prior`. Let C = L Lᵀ, and let U S Vᵀ
be the singular value decomposition of L⁻¹ Z / √M. With g = 1 / (a + s²), the inverse is

    L⁻ᵀ [(I − U Uᵀ) / a + U diag(g) Uᵀ] L⁻¹.

So L, U, S and V serve all variances a. What is estimated, an attribution or the value of another
coalition, has the covariance a C₁ + Z w / √M with the values, where C₁ is that by interactions and
noise, and w / √M is what single players count in it. With B = L⁻¹ C₁ and D = Vᵀ w − S Uᵀ B, its
mean is Bᵀ L⁻¹ y + Dᵀ diag(s g) Uᵀ L⁻¹ y, and its variance is a times that by C₁ alone, given the
values, plus a Σ g D² over the columns of U. No large numbers cancel, even if a is tiny.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ...array_types import FloatArray, IntArray
from .attribution_covariances import interaction_covariances, shapley_weights
from .choice_average import PriorChances, Solved, average_over_choices
from .factor_cache import FactorCache, coalitions_key, sorted_players
from .kernels import OddKernel, Prior
from .left_out_values import SizeWeights, checked_last, last_block, last_rows
from .marginal_likelihood import (
    TINY,
    WIDTH,
    half_log_determinants,
    log_prior,
    noise_of,
    noise_of_attributions,
    root_of_singles,
    whitened_by,
)
from .posterior import Posterior, mixture
from .prior_choices import DECIDING, are_likely, choices_of_equal
from .stacked_lapack import inverses_of_lower

_MOST_AVERAGED = 2048
"""With more values, some of them decide which choices of the prior are likely. Each choice that is
factored takes time and memory."""


def equal_posterior(
    signs: FloatArray, targets: FloatArray, starts: Sequence[Prior], other_signs: FloatArray
) -> Posterior:
    """Return the posterior for targets, (n, B), averaged over choices of the prior.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    starts : sequence of Prior
        For each target, the prior with equal strengths that suits it.
    other_signs : array, (m, M)
        Other coalitions, whose values are predicted.
    """
    if len(signs) > _MOST_AVERAGED:
        return _by_likely_choices(signs, targets, starts, other_signs)
    order, players = checked_last(signs), sorted_players(signs)
    coalitions = _Coalitions(signs[order][:, players], other_signs[:, players])
    values = np.ascontiguousarray(targets[order].T)
    weights = None if len(other_signs) else SizeWeights.of(coalitions.signs)
    shapes = (signs.shape[1], signs.shape[1], len(other_signs), 1)
    results = [np.empty((n_rows, targets.shape[1])) for n_rows in shapes]
    for block in _solved_blocks(coalitions, values, starts):
        found, games = _averaged(block.solved, block.scores, weights), block.games
        results[0][players[:, None], games] = found.means
        results[1][players[:, None], games] = found.variances
        results[2][:, games], results[3][:, games] = found.predictions, found.freedom
    return Posterior(*results)


def _by_likely_choices(
    signs: FloatArray, targets: FloatArray, starts: Sequence[Prior], other_signs: FloatArray
) -> Posterior:
    """Return the posterior for targets, averaged over the choices that few values leave likely."""
    order, players = checked_last(signs), sorted_players(signs)
    coalitions = _Coalitions(signs[order][:, players], other_signs[:, players])
    values = np.ascontiguousarray(targets[order].T)

    def solve(prior: Prior, games: IntArray) -> Iterator[tuple[IntArray, Solved]]:
        factors = coalitions.factors(prior)
        for block in _blocks(len(games)):
            a = np.full(WIDTH, prior.interactions)
            yield block, factors.solve(values[games[block]].T, a)

    n_players = signs.shape[1]
    choices = likely_of_equal(signs, targets, starts)
    weights = None if len(other_signs) else SizeWeights.of(coalitions.signs)
    n_means = n_players + len(other_signs)
    found = average_over_choices(choices, solve, n_means, n_players, weights)
    back = np.argsort(players)
    return replace(found, means=found.means[back], variances=found.variances[back])


def likely_of_equal(
    signs: FloatArray, targets: FloatArray, starts: Sequence[Prior]
) -> list[PriorChances]:
    """Return the choices of the prior for each target, (n, B), that its first values leave likely.

    Each comes with the logarithm of its prior probability, without `log_prior`.
    """
    first, players = signs[:DECIDING], sorted_players(signs[:DECIDING])
    values = np.ascontiguousarray(targets[:DECIDING].T)
    likely: list[PriorChances] = [[]] * len(starts)
    for block in _solved_blocks(_Coalitions(first[:, players], first[:0]), values, starts):
        of_block = are_likely(block.scores)
        for column, game in enumerate(block.games):
            likely[game] = [
                (prior.of_games(block.indices[column]), log_chance)
                for (prior, log_chance), is_likely in zip(
                    block.choices, of_block[:, column], strict=True
                )
                if is_likely
            ]
    return likely


@dataclass(frozen=True)
class _SolvedBlock:
    """The posteriors of a block of B games by each of C choices of the prior.

    Attributes
    ----------
    games, indices : arrays, (B,)
        Which games these are, and the index of each in the stacks of `choices`.
    choices : list of tuples
        The priors of a stack of games, with the logarithms of their probabilities.
    solved : list of SolvedValues
        The posterior by each choice.
    scores : array, (C, B)
        The logarithms of the probabilities of the choices, given the values.
    """

    games: IntArray
    indices: IntArray
    choices: list[tuple[Prior, float]]
    solved: list[SolvedValues]
    scores: FloatArray


def _solved_blocks(
    coalitions: _Coalitions, values: FloatArray, starts: Sequence[Prior]
) -> Iterator[_SolvedBlock]:
    """Yield the posteriors of games, (B, n), in blocks that share factors."""
    n_pairs = len(coalitions.signs) - 1
    for games in _games_by_factors(starts):
        choices = choices_of_equal(Prior.stack([starts[game] for game in games]), n_pairs)
        factors = [coalitions.factors(prior.of_games(0)) for prior, _ in choices]
        log_chances = np.array([log_prior(prior) + log_chance for prior, log_chance in choices])
        for block in _blocks(len(games)):
            of_block = values[games[block]].T  # each column is contiguous
            a = [prior.interactions[block] for prior, _ in choices]
            solved = [of.solve(of_block, a) for of, a in zip(factors, a, strict=True)]
            scores = np.array([of.log_evidence for of in solved]) + log_chances[:, block]
            yield _SolvedBlock(games[block], block, choices, solved, scores)


def _games_by_factors(starts: Sequence[Prior]) -> list[IntArray]:
    """Return the games that start at the same strengths and noise, and so share factors."""
    games_by_start: dict[tuple[bytes, float], list[int]] = {}
    for game, start in enumerate(starts):
        games_by_start.setdefault((start.strengths.tobytes(), float(start.noise)), []).append(game)
    return [np.array(games) for games in games_by_start.values()]


def _blocks(n_games: int) -> Iterator[IntArray]:
    """Yield the indices of games in blocks; the last block repeats its last game."""
    for start in range(0, n_games, WIDTH):
        yield np.minimum(np.arange(start, start + WIDTH), n_games - 1)


def _averaged(
    solved: list[SolvedValues], scores: FloatArray, weights: SizeWeights | None
) -> Posterior:
    """Return the average over the choices for a block; without weights, errors have no scale."""
    found = mixture(list(scores), [of.means for of in solved], [of.variances for of in solved])
    if weights is None:
        return found
    best = scores.argmax(axis=0)
    scale, freedom = np.empty((2, 1, len(best)))
    for choice in np.unique(best):
        of_choice, chosen = solved[choice].scale_and_freedom(weights), best == choice
        scale[:, chosen], freedom[:, chosen] = (array[:, chosen] for array in of_choice)
    return replace(found, variances=found.variances * scale, freedom=freedom)


class _Coalitions:
    """The coalitions of a design, and what their factors have in common."""

    def __init__(self, signs: FloatArray, other_signs: FloatArray) -> None:
        self.signs, self.other_signs = signs, other_signs
        self.weights = shapley_weights(signs)
        self._key = coalitions_key(signs)
        self._by_level: dict[float, _Covariances] = {}
        self._last: dict[Hashable, SharedFactors] = {}

    def factors(self, prior: Prior) -> SharedFactors:
        """Return the factors for the strengths and the noise of a prior of one game."""
        level = float(prior.strengths[0])
        key = level, float(prior.noise), prior.unevenness, prior.common

        def compute() -> SharedFactors:
            if level not in self._by_level:
                self._by_level[level] = _Covariances.of(
                    self.signs, prior.strengths, self.other_signs
                )
            return SharedFactors.of(self, self._by_level[level], prior)

        if len(self.signs) > _MOST_AVERAGED:
            return self._kept_alone(level, key, compute)
        if len(self.other_signs):
            return compute()  # of folds, which are drawn for one call
        return _cache.get((self._key, *key), compute)

    def _kept_alone(
        self, level: float, key: Hashable, compute: Callable[[], SharedFactors]
    ) -> SharedFactors:
        """Return large factors, and keep no others; priors of the same factors are neighbours."""
        if key not in self._last:
            self._last.clear()
            self._by_level = {of: kept for of, kept in self._by_level.items() if of == level}
            self._last[key] = compute()
        return self._last[key]


@dataclass(frozen=True)
class _Covariances:
    """The covariances of interactions, for strengths of one level and variance 1.

    Attributes
    ----------
    values, with_others : arrays, (n, n) and (n, m)
        Of the values with each other, and with those of other coalitions.
    with_attributions : array, (n, M)
        Of the values with the attributions.
    attributions : array, (M,)
        The variances of the attributions.
    """

    values: FloatArray
    with_others: FloatArray
    with_attributions: FloatArray
    attributions: FloatArray

    @classmethod
    def of(cls, signs: FloatArray, strengths: FloatArray, other_signs: FloatArray) -> _Covariances:
        values = OddKernel.at(signs, strengths).interactions
        with_others = OddKernel.at(signs, strengths, other_signs).interactions
        return cls(values, with_others, *interaction_covariances(signs, strengths))


@dataclass(frozen=True)
class SharedFactors:
    """The factors of the covariances of values, for strengths and a noise, but for any variance.

    Names of matrices are those at the top of the module; k is the number of singular values.

    Attributes
    ----------
    factor : array, (n, n)
        L.
    half : float
        Half the logarithm of the determinant of C.
    first_single : float
        The variance of the first value by single players.
    singular : array, (k,)
        S.
    columns : array, (k + M + m, n)
        Uᵀ, and below it Bᵀ of the attributions and of the values of other coalitions.
    tilts : array, (k, M + m)
        D.
    alone : array, (M,)
        Variances of the attributions by C alone, given the values, for a = 1.
    unseen : array, (M,)
        Variances of the attributions that single players have, and of which no value tells.
    last_inverse : array, (l, l)
        The last rows and columns of L⁻¹, transposed.
    last_basis : array, (l, k)
        The last rows of L⁻ᵀ U.
    last_precisions : array, (l, 1)
        The last entries of the diagonal of L⁻ᵀ (I − U Uᵀ) L⁻¹.
    """

    factor: FloatArray
    half: float
    first_single: float
    singular: FloatArray
    columns: FloatArray
    tilts: FloatArray
    alone: FloatArray
    unseen: FloatArray
    last_inverse: FloatArray
    last_basis: FloatArray
    last_precisions: FloatArray

    @classmethod
    def of(cls, coalitions: _Coalitions, covariances: _Covariances, prior: Prior) -> SharedFactors:
        """Factor the covariances of the values, with the noise of a prior of one game."""
        signs, other_signs = coalitions.signs, coalitions.other_signs
        n, n_players = signs.shape
        of_unit = replace(prior, interactions=1.0)
        noise, least = noise_of(of_unit, signs)
        covariance = covariances.values.copy()
        covariance[np.arange(n), np.arange(n)] += noise
        factor = scipy.linalg.cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
        root = root_of_singles(n_players, prior.common)
        singles = signs @ root
        with_attributions = covariances.with_attributions + noise[:, None] * coalitions.weights
        of_estimated = [with_attributions, covariances.with_others]
        whitened = whitened_by(factor, np.concatenate([singles, *of_estimated], axis=1))
        of_singles, loadings = np.split(whitened, [n_players], axis=1)
        basis, singular, turned = np.linalg.svd(of_singles, full_matrices=False)
        counted = np.concatenate([2.0 * root, other_signs @ root])
        tilts = turned @ counted.T - singular[:, None] * (basis.T @ loadings)
        of_noise = noise_of_attributions(of_unit, n_players, least)
        alone = covariances.attributions + of_noise + least * 4 / n_players**2
        alone -= (loadings[:, :n_players] ** 2).sum(axis=0)
        attributions = counted[:n_players].T
        unseen = (attributions**2).sum(axis=0) - ((turned @ attributions) ** 2).sum(axis=0)
        inverse = inverses_of_lower(last_block(factor))
        last_basis = inverse.T @ last_rows(basis)  # the other entries of L⁻¹ are 0
        squares = _squares_beside(basis, last_basis, inverse)
        return cls(
            factor=factor,
            half=float(half_log_determinants(factor)),
            first_single=float((singles[0] ** 2).sum()),
            singular=singular,
            columns=np.ascontiguousarray(np.concatenate([basis, loadings], axis=1).T),
            tilts=tilts,
            alone=np.maximum(alone, 0.0),
            unseen=np.maximum(unseen, 0.0) * (n < n_players),
            last_inverse=np.ascontiguousarray(inverse.T),
            last_basis=last_basis,
            last_precisions=squares[:, None],
        )

    def solve(self, targets: FloatArray, interactions: FloatArray) -> SolvedValues:
        """Return the posterior for a block of targets, (n, B), with variances a, (B,)."""
        a, s = interactions, self.singular[:, None]
        n, n_singular = len(targets), len(s)
        whitened = whitened_by(self.factor, targets)
        products = self.columns @ whitened
        along, direct = products[:n_singular], products[n_singular:]
        rest = whitened
        rest -= self.columns[:n_singular].T @ along
        rest *= n > n_singular  # otherwise it is rounding
        precisions = 1.0 / (a + s**2)
        scaled = precisions * along
        energy = (rest**2).sum(axis=0) / a + (scaled * along).sum(axis=0)
        half = self.half + 0.5 * ((n - n_singular) * np.log(a) - np.log(precisions).sum(axis=0))
        first = targets[0] ** 2 / (a * self.factor[0, 0] ** 2 + self.first_single)
        spread = np.maximum(energy - first, 0.0) / max(1, n - 1)
        squares = self.tilts[:, : len(self.alone)].T ** 2
        variances = a * (self.alone[:, None] + squares @ precisions) + self.unseen[:, None]
        return SolvedValues(
            factors=self,
            interactions=a,
            log_evidence=-0.5 * n * np.log(energy / n + TINY) - half,
            means=direct + self.tilts.T @ (s * scaled),
            variances=variances * spread,
            rest=rest,
            scaled=scaled,
            precisions=precisions,
            spread=spread,
        )


@dataclass(frozen=True)
class SolvedValues:
    """The posterior of a block of B targets by one choice of the prior.

    Attributes
    ----------
    factors : SharedFactors
        What it was computed with.
    interactions : array, (B,)
        The variances a.
    log_evidence : array, (B,)
        The logarithm of the marginal likelihood, up to a constant.
    means, variances : arrays, (M + m, B) and (M, B)
        Of the attributions; the means are followed by predictions.
    rest, scaled : arrays, (n, B) and (k, B)
        (I − U Uᵀ) L⁻¹ y, and diag(g) Uᵀ L⁻¹ y.
    precisions : array, (k, B)
        The numbers g.
    spread : array, (B,)
        The mean square of whitened values.
    """

    factors: SharedFactors
    interactions: FloatArray
    log_evidence: FloatArray
    means: FloatArray
    variances: FloatArray
    rest: FloatArray
    scaled: FloatArray
    precisions: FloatArray
    spread: FloatArray

    def scale_and_freedom(self, weights: SizeWeights) -> tuple[FloatArray, FloatArray]:
        """Return the factor of the variances, and degrees of freedom, (1, B) each."""
        of, a = self.factors, self.interactions
        solved = of.last_inverse @ (last_rows(self.rest) / a) + of.last_basis @ self.scaled
        precisions = of.last_precisions / a + of.last_basis**2 @ self.precisions
        of_stack = (array[None] for array in (precisions, solved, self.spread[None]))
        scale, freedom = weights.of_solved(*of_stack)
        return scale[0], freedom[0]


def _squares_beside(basis: FloatArray, last_basis: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return the sums of the squares of the last columns of (I − U Uᵀ) L⁻¹, (l,)."""
    columns = -(basis @ last_basis.T)
    last_rows(columns)[:] += inverse
    squares: FloatArray = (columns**2).sum(axis=0)
    return squares


_cache: FactorCache[SharedFactors] = FactorCache()

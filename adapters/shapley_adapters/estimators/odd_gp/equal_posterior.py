"""Posteriors of games with equal strengths, whose matrices are factored once for many games.

With H the covariance of interactions, D the noise over their variance a, and Z the signs, the
values have the covariance a C + Z Zᵀ / M, where C = H + D; where games jump, Z / √M is Z times the
`root_of_singles`. Let C = L Lᵀ, and let U S Vᵀ be the singular value decomposition of L⁻¹ Z / √M.
With g = 1 / (a + s²), the inverse is

    L⁻ᵀ [(I − U Uᵀ) / a + U diag(g) Uᵀ] L⁻¹.

So L, U, S and V serve all variances a. What is estimated, an attribution or the value of another
coalition, has the covariance a C₁ + Z w / √M with the values, where C₁ is that by interactions and
noise, and w / √M is what single players count in it. With B = L⁻¹ C₁ and D = Vᵀ w − S Uᵀ B, its
mean is Bᵀ L⁻¹ y + Dᵀ diag(s g) Uᵀ L⁻¹ y, and its variance is a times that by C₁ alone, given the
values, plus a Σ g D² over the columns of U. No large numbers cancel, even if a is tiny.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ...array_types import FloatArray, IntArray
from .attribution_covariances import interaction_covariances, shapley_weights
from .estimands import ShapleyValues
from .factors import FactorCache, coalitions_key, inverses_of_lower, sorted_players
from .kernels import Kernel, Prior, root_of_singles
from .left_out_values import SizeWeights, checked_last, last_block, last_rows
from .marginal_likelihood import (
    WIDTH,
    noise_of,
    whitened_by,
)
from .posterior import Posterior


def equal_posterior(
    signs: FloatArray, targets: FloatArray, starts: Sequence[Prior], other_signs: FloatArray
) -> Posterior:
    """Return the posterior for targets, (n, B), each by its prior of the grid.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    starts : sequence of Prior
        For each target, the prior with equal strengths that suits it.
    other_signs : array, (m, M)
        Other coalitions, whose values are predicted; errors then have no scale.
    """
    order, players = checked_last(signs), sorted_players(signs)
    signs, other_signs = signs[order][:, players], other_signs[:, players]
    values = np.ascontiguousarray(targets[order].T)
    weights = None if len(other_signs) else SizeWeights.from_signs(signs)
    n_players, n_games = signs.shape[1], targets.shape[1]
    results = Posterior.unknown(n_players, len(other_signs), n_games)
    for games in _games_by_factors(starts):
        factors = _factors(signs, other_signs, starts[games[0]])
        for block in _blocks(games):
            a = np.array([starts[game].interactions for game in block])
            solved = factors.solve(values[block].T, a)  # each column is contiguous
            means, predictions = np.split(solved.means, [n_players])
            scale: FloatArray = np.ones((1, len(block)))
            freedom = np.full_like(scale, np.inf)
            if weights is not None:
                scale, freedom = solved.scale_and_freedom(weights)
            results.means[players[:, None], block] = means
            results.variances[players[:, None], block] = solved.variances * scale
            results.predictions[:, block], results.freedom[:, block] = predictions, freedom
    return results


def _games_by_factors(starts: Sequence[Prior]) -> list[IntArray]:
    """Return the games whose priors of the grid differ only in the variance a."""
    games: dict[tuple[float, float, bool], list[int]] = {}
    for game, start in enumerate(starts):
        key = float(start.strengths[0]), float(start.noise), start.jumps
        games.setdefault(key, []).append(game)
    return [np.array(of_start) for of_start in games.values()]


def _blocks(games: IntArray) -> Iterator[IntArray]:
    """Yield games in blocks of the same size; the last block repeats its last game."""
    for start in range(0, len(games), WIDTH):
        yield games[np.minimum(np.arange(start, start + WIDTH), len(games) - 1)]


def _factors(signs: FloatArray, other_signs: FloatArray, prior: Prior) -> SharedFactors:
    """Return the factors for the strengths and the noise of a prior of one game.

    They are kept for later calls, but for those of folds, which are drawn for one call.
    """
    if len(other_signs):
        return SharedFactors.from_prior(signs, other_signs, prior)
    key = coalitions_key(signs), float(prior.strengths[0]), float(prior.noise), prior.jumps
    return _cache.get(key, lambda: SharedFactors.from_prior(signs, other_signs, prior))


@dataclass(frozen=True)
class SharedFactors:
    """The factors of the covariances of values, for strengths and a noise, but for any variance.

    Names of matrices are those at the top of the module; k is the number of singular values.

    Attributes
    ----------
    factor : array, (n, n)
        L.
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
    def from_prior(cls, signs: FloatArray, other_signs: FloatArray, prior: Prior) -> SharedFactors:
        """Factor the covariances of the values, with the noise of a prior of one game."""
        n, n_players = signs.shape
        strengths, of_unit = prior.strengths, replace(prior, interactions=1.0)
        noise, least = noise_of(of_unit, signs)
        covariance = Kernel.at(signs, strengths).interactions
        covariance[np.arange(n), np.arange(n)] += noise
        factor = scipy.linalg.cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
        of_interactions, own_variances = interaction_covariances(signs, strengths)
        weights = shapley_weights(signs)
        with_attributions = of_interactions + noise[:, None] * weights
        with_others = Kernel.at(signs, strengths, other_signs).interactions
        estimand, root = ShapleyValues(n_players), root_of_singles(prior, n_players)
        singles = signs @ root
        whitened = whitened_by(
            factor, np.concatenate([singles, with_attributions, with_others], axis=1)
        )
        of_singles, loadings = np.split(whitened, [n_players], axis=1)
        basis, singular, turned = np.linalg.svd(of_singles, full_matrices=False)
        counted = np.concatenate([2.0 * root, other_signs @ root])
        tilts = turned @ counted.T - singular[:, None] * (basis.T @ loadings)
        of_noise = estimand.variance_of_noise(of_unit, least)
        alone = own_variances + of_noise + least * 4 / n_players**2
        alone -= (loadings[:, :n_players] ** 2).sum(axis=0)
        attributions = counted[:n_players].T
        unseen = (attributions**2).sum(axis=0) - ((turned @ attributions) ** 2).sum(axis=0)
        inverse = inverses_of_lower(last_block(factor))
        last_basis = inverse.T @ last_rows(basis)  # the other entries of L⁻¹ are 0
        squares = _squares_beside(basis, last_basis, inverse)
        return cls(
            factor=factor,
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
        first = targets[0] ** 2 / (a * self.factor[0, 0] ** 2 + self.first_single)
        spread = np.maximum(energy - first, 0.0) / max(1, n - 1)
        squares = self.tilts[:, : len(self.alone)].T ** 2
        variances = a * (self.alone[:, None] + squares @ precisions) + self.unseen[:, None]
        return SolvedValues(
            factors=self,
            interactions=a,
            means=direct + self.tilts.T @ (s * scaled),
            variances=variances * spread,
            rest=rest,
            scaled=scaled,
            precisions=precisions,
            spread=spread,
        )


@dataclass(frozen=True)
class SolvedValues:
    """The posterior of a block of B targets by a prior.

    Attributes
    ----------
    factors : SharedFactors
        What it was computed with.
    interactions : array, (B,)
        The variances a.
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
        scale, freedom = weights.scale_from_solved(*of_stack)
        return scale[0], freedom[0]


def _squares_beside(basis: FloatArray, last_basis: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return the sums of the squares of the last columns of (I − U Uᵀ) L⁻¹, (l,)."""
    columns = -(basis @ last_basis.T)
    last_rows(columns)[:] += inverse
    squares: FloatArray = (columns**2).sum(axis=0)
    return squares


_cache: FactorCache[SharedFactors] = FactorCache()

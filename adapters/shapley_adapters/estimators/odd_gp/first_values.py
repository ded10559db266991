"""Posteriors of games with many values, whose interactions are approximated through the first ones.

Single players and the sparse interactions remain exact. All other interactions are split into two
parts. The first part is a linear function of the first m values. The second part is replaced by
independent noise, of a separate variance for each value (Snelson and Ghahramani, Sparse Gaussian
Processes using Pseudo-inputs, 2006). Time grows with n, not n³.

Let c be the coefficients and e the noise, of variances D. Then y = F c + e, and φ = Gᵀ c + the sum
of e over all pairs, with their weights. With B the weights of the evaluated pairs,
φ = (G − Fᵀ B)ᵀ c + Bᵀ y + the sum of e over the other pairs. Let L Lᵀ = I + Fᵀ D⁻¹ F. The inverse
of the covariance of the values is D⁻¹ − D⁻¹ F L⁻ᵀ L⁻¹ Fᵀ D⁻¹. It gives the prediction of each value
by all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ...array_types import FloatArray, IntArray
from .attribution_covariances import (
    interaction_covariances,
    left_of_other_pairs,
    shapley_weights,
)
from .estimands import ShapleyValues
from .kernels import FEWEST_PLAYERS, Kernel, Prior, root_of_singles
from .left_out_values import SizeWeights, checked_last, last_rows
from .marginal_likelihood import (
    TINY,
    column_by_column,
    noise_of,
    whitened_by,
)
from .posterior import Posterior, growth_by_fit, products
from .sparse_interactions import SparseInteractions

_JITTER = 1e-8
"""Least variance of a value given the first ones, where that of a kernel is 1."""


def posterior_through_first_values(
    signs: FloatArray,
    targets: FloatArray,
    prior: Prior,
    n_first: int,
    n_fitted: float,
    sparse: SparseInteractions,
    other_signs: FloatArray,
) -> Posterior:
    """Return the posterior of games that share a prior.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    targets : array, (n, B)
        Their values.
    prior : Prior
        The prior of one game.
    n_first : int
        Number of first values that the interactions are approximated through.
    n_fitted : float
        Degrees of freedom of the fitted hyperparameters.
    sparse : SparseInteractions
        The interactions with separate variances, of all games.
    other_signs : array, (m, M)
        Other coalitions, whose values are predicted; errors then have no scale.
    """
    n, n_players = signs.shape
    values = _Values(signs, n_first, sparse, other_signs)
    solved = _Approximation.from_prior(values, prior).solve(targets)
    means, predictions = np.split(solved.means, [n_players])
    scale: FloatArray = np.ones((1, targets.shape[1]))
    freedom = np.full_like(scale, np.inf)
    if not len(other_signs):
        scale, freedom = solved.scale_and_freedom(SizeWeights.from_signs(signs[values.order]))
    variances = solved.variances * scale * growth_by_fit(n, n_fitted)
    return Posterior(means, variances, predictions, freedom)


class _Values:
    """The coalitions of many values, and what does not depend on the prior."""

    def __init__(
        self,
        signs: FloatArray,
        n_first: int,
        sparse: SparseInteractions,
        other_signs: FloatArray,
    ) -> None:
        self.signs, self.other_signs = signs, other_signs
        self.first = signs[:n_first]
        self.sparse = sparse
        self.weights = shapley_weights(signs)
        self.order = checked_last(signs)

    @property
    def unknown_share(self) -> float:
        """The share of the pairs beside the first ones that are not evaluated."""
        n, n_players = self.signs.shape
        one_pair = 2.0 ** (1 - n_players)  # its reciprocal, the number of pairs, may overflow
        beside_first = 1.0 - len(self.first) * one_pair
        share: float = max(0.0, 1.0 - n * one_pair) / max(one_pair, beside_first, TINY)
        return share


@dataclass(frozen=True)
class _Approximation:
    """The covariances of many values by one prior, factored for any number of games.

    Names of matrices are those at the top of the module; q is the number of coefficients.

    Attributes
    ----------
    roots : array, (n, 1)
        The roots of D⁻¹.
    features : array, (n, q)
        F, times these roots.
    factor : array, (q, q)
        L.
    first : float
        The variance of the first value.
    weights : array, (n, M)
        B.
    loadings : array, (q, M)
        L⁻¹ (G − Fᵀ B).
    of_others : array, (q, m)
        L⁻¹ times the features of other coalitions.
    variances : array, (M,)
        Of the attributions, given the values.
    checked : array, (l,)
        The indices of the values that are predicted by all others.
    """

    roots: FloatArray
    features: FloatArray
    factor: FloatArray
    first: float
    weights: FloatArray
    loadings: FloatArray
    of_others: FloatArray
    variances: FloatArray
    checked: IntArray

    @classmethod
    def from_prior(cls, values: _Values, prior: Prior) -> _Approximation:
        """Factor the covariances of values by a prior of one game."""
        interactions = _Interactions.from_prior(values.first, prior)
        common = interactions.covariances_with(values.signs)
        noise = np.maximum(interactions.variance - (common**2).sum(axis=0), 0.0) + _JITTER
        of_pairs, least = noise_of(prior, values.signs)
        noise += of_pairs
        features = _features(values, values.signs, prior, common)
        first = float((features[0] ** 2).sum() + noise[0])
        roots = 1.0 / np.sqrt(noise)
        features *= roots[:, None]
        precision = features.T @ features
        diagonal = np.arange(len(precision))
        precision[diagonal, diagonal] += 1.0
        factor = scipy.linalg.cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
        maps = _maps(values, prior, interactions.with_attributions)
        loadings = whitened_by(factor, maps - features.T @ (values.weights / roots[:, None]))
        others = interactions.covariances_with(values.other_signs)
        of_others = _features(values, values.other_signs, prior, others)
        of_noise = ShapleyValues(values.signs.shape[1]).variance_of_noise(prior, least)
        unknown = left_of_other_pairs(of_noise, values.weights, of_pairs)
        unknown += values.unknown_share * interactions.attributions_alone
        return cls(
            roots=roots[:, None],
            features=features,
            factor=factor,
            first=first,
            weights=values.weights,
            loadings=loadings,
            of_others=whitened_by(factor, of_others.T),
            variances=(loadings**2).sum(axis=0) + unknown,
            checked=values.order[-len(last_rows(values.weights)) :],
        )

    def solve(self, targets: FloatArray) -> _SolvedGames:
        """Return the posterior of games, (n, B)."""
        n = len(targets)
        scaled = np.asfortranarray(self.roots * targets)
        coefficients = column_by_column(  # (q, B)
            lambda block: whitened_by(self.factor, self.features.T @ block), scaled
        )
        energy = _sums_of_squares(scaled) - _sums_of_squares(coefficients)
        energy = np.maximum(energy, 0.0)
        spread = np.maximum(energy - targets[0] ** 2 / self.first, 0.0) / (n - 1)
        means = products(self.loadings, coefficients) + products(self.weights, targets)
        return _SolvedGames(
            approximation=self,
            scaled=scaled,
            coefficients=coefficients,
            means=np.concatenate([means, products(self.of_others, coefficients)]),
            variances=self.variances[:, None] * spread,
            spread=spread,
        )


@dataclass(frozen=True)
class _SolvedGames:
    """The posterior of B games by one prior.

    Attributes
    ----------
    approximation : _Approximation
        What it was computed with.
    scaled, coefficients : arrays, (n, B) and (q, B)
        The values times the roots of D⁻¹, and L⁻¹ Fᵀ D⁻¹ y.
    means, variances : arrays, (M + m, B) and (M, B)
        Of the attributions; the means are followed by predictions.
    spread : array, (B,)
        The mean square of whitened values, without the known first one.
    """

    approximation: _Approximation
    scaled: FloatArray
    coefficients: FloatArray
    means: FloatArray
    variances: FloatArray
    spread: FloatArray

    def scale_and_freedom(self, weights: SizeWeights) -> tuple[FloatArray, FloatArray]:
        """Return the factor of the variances, and degrees of freedom, (1, B) each."""
        of, checked = self.approximation, self.approximation.checked
        roots = of.roots[checked]
        explained = whitened_by(of.factor, of.features[checked].T)  # (q, l)
        precisions = roots**2 * (1.0 - (explained**2).sum(axis=0))[:, None]
        solved = roots * (self.scaled[checked] - products(explained, self.coefficients))
        return weights.scale_from_solved(precisions, solved, self.spread[None])


@dataclass(frozen=True)
class _Interactions:
    """The interactions of a prior, given the first m values.

    Attributes
    ----------
    first, strengths : arrays, (m, M) and (M,)
        The signs of the first coalitions, and the strengths.
    factor : array, (m, m)
        The factor of the covariance of the first values by interactions.
    variance : float
        Of any value, by interactions.
    with_attributions : array, (m, M)
        Covariances of the first values with the attributions, whitened by the factor.
    attributions_alone : array, (M,)
        Variances of the attributions by interactions, given the first values.
    """

    first: FloatArray
    strengths: FloatArray
    interactions: float
    factor: FloatArray
    variance: float
    with_attributions: FloatArray
    attributions_alone: FloatArray

    @classmethod
    def from_prior(cls, first: FloatArray, prior: Prior) -> _Interactions:
        a, strengths = float(prior.interactions), prior.strengths
        among = a * Kernel.at(first, strengths).interactions
        diagonal = np.arange(len(among))
        among[diagonal, diagonal] += _JITTER
        factor = scipy.linalg.cholesky(among, lower=True, overwrite_a=True, check_finite=False)
        covariances, variances = interaction_covariances(first, strengths)
        whitened = whitened_by(factor, a * covariances)
        alone = np.maximum(a * variances - (whitened**2).sum(axis=0), 0.0)
        variance = a * (first.shape[1] >= FEWEST_PLAYERS)
        return cls(first, strengths, a, factor, variance, whitened, alone)

    def covariances_with(self, signs: FloatArray) -> FloatArray:
        """Return the covariances, (m, n), of the first values with others, whitened."""
        kernel = Kernel.at(self.first, self.strengths, signs).interactions
        return whitened_by(self.factor, self.interactions * kernel)


def _features(values: _Values, signs: FloatArray, prior: Prior, common: FloatArray) -> FloatArray:
    """Return the features of coalitions, (n, M + k + m): F."""
    of_singles = signs @ root_of_singles(prior, signs.shape[1])
    return np.concatenate([of_singles, values.sparse.features(signs), common.T], axis=1)


def _maps(values: _Values, prior: Prior, with_attributions: FloatArray) -> FloatArray:
    """Return the Shapley values of each feature, (M + k + m, M): G."""
    n_players = values.signs.shape[1]
    of_singles = 2.0 * root_of_singles(prior, n_players)
    return np.concatenate(
        [of_singles, values.sparse.maps(ShapleyValues(n_players)), with_attributions]
    )


def _sums_of_squares(columns: FloatArray) -> FloatArray:
    """Return the sum of squares of each column, which does not depend on the others."""
    sums: FloatArray = (np.ascontiguousarray(columns.T) ** 2).sum(axis=1)
    return sums

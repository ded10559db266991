"""The prior of a grid, with equal strengths, that suits the values of a game.

With H the covariance of interactions, D the noise, a the variance of interactions and Z the signs,
the values have the covariance a C + Z Zᵀ / M with C = H + D. The factors of C and the singular
values of L⁻¹ Z / √M, with C = L Lᵀ, give the evidence for every a; see `equal_posterior`. They
depend on the coalitions and not on the game, and are kept for later games.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ...array_types import FloatArray, IntArray
from .factors import FactorCache, coalitions_key, inverses_of_lower, sorted_players
from .kernels import Kernel, Prior, base_features, bounded_strengths
from .marginal_likelihood import (
    TINY,
    column_by_column,
    half_log_determinants,
    log_prior,
    noise_of,
)

_LEVELS = (1.0, 3.0, 8.0)
_INTERACTIONS = np.array([1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0])
_NOISE = (1e-7, 1e-4, 1e-2, 1e-1, 1.0)
_MOST_LEVEL = 0.9
"""The grid of priors with equal strengths. Learning starts from the best of them."""

_EVEN_LEVELS = (0.3, *_LEVELS)
"""The levels of an even part, which may have interactions of pairs only."""

_JUMP_LEVEL, _JUMP_NOISE, _JUMP_LOG_CHANCE = 3.0, (10.0, 3.0), 2.0
"""Priors of games that jump: the level of the strengths, the noise, and the logarithm of their
probability over that of the others. The variance of interactions is 1."""


def best_of_grid(signs: FloatArray, targets: FloatArray, is_even: bool = False) -> list[Prior]:
    """Return the prior of the grid that suits each of the targets, (n, B), with equal strengths."""
    signs = signs[:, sorted_players(signs)]
    n, n_players = signs.shape
    families = _families(n_players, is_even)
    priors = [prior for family in families for prior in family]
    if n == 1:  # the value of all players suits all priors
        likeliest = max(priors, key=lambda prior: float(log_prior(prior)))
        return [likeliest] * targets.shape[1]
    if n - 1 <= n_players:  # these are single players, whose values show no jumps
        families = [family for family in families if not family[0].jumps]
    key = coalitions_key(signs), is_even
    grid = _cache.get(key, lambda: _Evidence.from_signs(signs, families))
    best = column_by_column(grid.best, targets)[0]
    return [priors[index] for index in best.astype(np.intp)]


@lru_cache(maxsize=16)
def _families(n_players: int, is_even: bool) -> list[list[Prior]]:
    """Return the priors of the grid; those of a family differ in the variance of interactions.

    That of an even part has no alternative.
    """

    def strengths(level: float) -> FloatArray:
        return bounded_strengths(np.full(n_players, min(level / n_players, _MOST_LEVEL)))

    if is_even:
        return [
            [Prior(strengths(level), 1.0, noise, is_even=True)]
            for level in _EVEN_LEVELS
            for noise in _NOISE
        ]
    families = [
        [Prior(strengths(level), float(a), noise) for a in _INTERACTIONS]
        for level in _LEVELS
        for noise in _NOISE
    ]
    of_jumps = [Prior(strengths(_JUMP_LEVEL), 1.0, noise, jumps=True) for noise in _JUMP_NOISE]
    return families + [[prior] for prior in of_jumps]


@dataclass(frozen=True)
class _Evidence:
    """What gives the log evidence of all P priors of F families, up to a constant.

    Attributes
    ----------
    inverses : array, (F, n, n)
        L⁻¹ of each family.
    bases : array, (F, n, k)
        The left singular vectors of L⁻¹ Z / √M.
    family : array, (P,)
        The family of each prior.
    interactions : array, (P, 1)
        The variance of its interactions.
    precisions : array, (P, k)
        The inverse variances of the values along the singular vectors.
    offsets : array, (P, 1)
        The part of the log evidence that does not depend on the values, and the log prior.
    """

    inverses: FloatArray
    bases: FloatArray
    family: IntArray
    interactions: FloatArray
    precisions: FloatArray
    offsets: FloatArray

    @classmethod
    def from_signs(cls, signs: FloatArray, families: list[list[Prior]]) -> _Evidence:
        """Compute it for coalitions, (n, M), that of all players first."""
        n, covariances = len(signs), []
        for prior, *_ in families:
            kernel = Kernel.at(signs, prior.strengths, is_even=prior.is_even)
            noise, _ = noise_of(replace(prior, interactions=1.0), signs)
            covariances.append(kernel.interactions + np.diag(noise))
        factors: FloatArray = np.linalg.cholesky(np.array(covariances))
        inverses = inverses_of_lower(factors)
        features = [base_features(prior, signs) for prior, *_ in families]
        bases, singular, _ = np.linalg.svd(inverses @ features, full_matrices=False)
        halves = half_log_determinants(factors)
        family = np.repeat(np.arange(len(families)), [len(priors) for priors in families])
        priors = [prior for priors in families for prior in priors]
        a = np.array([[prior.interactions] for prior in priors])
        spread = a + singular[family] ** 2
        n_rest = n - singular.shape[1]
        halves = halves[family] + 0.5 * (np.log(spread).sum(axis=1) + n_rest * np.log(a[:, 0]))
        beforehand = [float(log_prior(p)) + _JUMP_LOG_CHANCE * p.jumps for p in priors]
        return cls(inverses, bases, family, a, 1.0 / spread, (beforehand - halves)[:, None])

    def best(self, targets: FloatArray) -> FloatArray:
        """Return the index of the best prior for each of the targets, (1, B)."""
        n = len(targets)
        whitened = self.inverses @ targets
        along = self.bases.swapaxes(1, 2) @ whitened
        rest = ((whitened - self.bases @ along) ** 2).sum(axis=1)
        rest *= n > along.shape[1]  # otherwise it is rounding
        energy = rest[self.family] / self.interactions + TINY
        energy += (self.precisions[:, None] @ along[self.family] ** 2)[:, 0]
        scores = self.offsets - 0.5 * n * np.log(energy / n)
        best: FloatArray = scores.argmax(axis=0)[None].astype(float)
        return best


_cache: FactorCache[_Evidence] = FactorCache()

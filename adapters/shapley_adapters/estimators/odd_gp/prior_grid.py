"""The prior of a grid, with equal strengths, that suits the values of a game.

With H the covariance of interactions, ν the noise and a the variance of interactions, the values
have the covariance a C + Z Zᵀ / M with C = H + ν, where the first value has no noise. Its inverse
and its determinant are needed for 150 priors and for each game. Most of the work does not depend
on the game, so that it is done once for the coalitions:

1. Subtract what the first value predicts by C. All other values have noise.
2. Split these into those along the columns of Z, and the rest. The rest does not depend on the
   attributions of single players. The eigenvectors of its covariance are the same for all ν.
3. Given the rest, M + 1 numbers remain. Their singular values give the evidence for each a.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.linalg

from ...array_types import FloatArray
from .factors import FactorCache, coalitions_key, inverses_of_lower, sorted_players
from .kernels import OddKernel, Prior, bounded_strengths, root_of_singles
from .marginal_likelihood import (
    JITTER,
    TINY,
    column_by_column,
    half_log_determinants,
    log_prior,
    noise_of,
)

_GRID_LEVELS = (1.0, 3.0, 8.0)
_GRID_INTERACTIONS = np.array([1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0])
_GRID_NOISE = (1e-7, 1e-4, 1e-2, 1e-1, 1.0)
_MOST_GRID_LEVEL = 0.9
"""The grid of priors with equal strengths. Learning starts from the best of them."""

_JUMP_LEVEL, _JUMP_NOISE, _JUMP_LOG_CHANCE = 3.0, (10.0, 3.0), 2.0
"""Priors of games that jump: the level of the strengths, the noise, and the logarithm of their
probability over that of the others. The variance of interactions is 1."""

_JITTER = 1e3 * JITTER
"""Added to every variance of interactions, which is 1, so that factorisations succeed."""


def best_of_grid(signs: FloatArray, targets: FloatArray) -> list[Prior]:
    """Return the prior of the grid that suits each of the targets, (n, B), with equal strengths."""
    signs = signs[:, sorted_players(signs)]
    grid = [prior for _, priors in _grid(signs.shape[1]) for prior in priors]
    grid += _jump_priors(signs.shape[1])
    if len(signs) == 1:  # the value of all players suits all priors
        return [grid[int(np.argmax(log_prior(Prior.stack(grid))))]] * targets.shape[1]
    maps = _cache.get(coalitions_key(signs), lambda: _GridMaps.from_signs(signs))
    best = column_by_column(maps.best, targets)[0]
    return [grid[index] for index in best.astype(np.intp)]


@lru_cache(maxsize=16)
def _grid(n_players: int) -> list[tuple[FloatArray, list[Prior]]]:
    """Return the strengths of each level of the grid, and its priors: by noise, then variance."""
    levels = []
    for level in _GRID_LEVELS:
        equal = np.full(n_players, min(level / n_players, _MOST_GRID_LEVEL))
        strengths = bounded_strengths(equal)
        priors = [Prior(strengths, a, noise) for noise in _GRID_NOISE for a in _GRID_INTERACTIONS]
        levels.append((strengths, priors))
    return levels


@lru_cache(maxsize=16)
def _jump_priors(n_players: int) -> list[Prior]:
    """Return the priors of games that jump where about half of the players are present."""
    strengths = np.full(n_players, min(_JUMP_LEVEL / n_players, _MOST_GRID_LEVEL))
    return [Prior(bounded_strengths(strengths), 1.0, noise, jumps=True) for noise in _JUMP_NOISE]


@dataclass(frozen=True)
class _GridMaps:
    """What gives the log evidence of all priors of the grid, up to a constant.

    There are L levels of strengths, each with N variances of the noise and A of interactions.

    Attributes
    ----------
    maps : array, (L r + L N (k + 1), n)
        Linear functions of the values: r numbers of the rest for each level, then k + 1 numbers
        along Z for each level and noise.
    rest_precisions : array, (L, N, r)
        Inverse variances of the rest for a = 1.
    precisions : array, (L, N, A, k + 1)
        Inverse variances of the numbers along Z.
    offsets : array, (L, N, A, 1)
        The part of the log evidence that does not depend on the values, and the log prior.
    jump_maps, jump_offsets : arrays, (J, n, n) and (J, 1)
        The inverse factors of the covariances of the values by priors of games that jump, and the
        part of their log evidence that does not depend on the values. J is 0 with no more pairs
        than players: these are single players, whose values show no jumps.
    """

    maps: FloatArray
    rest_precisions: FloatArray
    precisions: FloatArray
    offsets: FloatArray
    jump_maps: FloatArray
    jump_offsets: FloatArray

    @classmethod
    def from_signs(cls, signs: FloatArray) -> _GridMaps:
        """Compute them for coalitions, (n, M), that of all players first."""
        levels = [
            _Level.from_kernel(OddKernel.at(signs, strengths))
            for strengths, _ in _grid(signs.shape[1])
        ]
        a = _GRID_INTERACTIONS
        of_rest, along, rest_precisions, precisions, offsets = [], [], [], [], []
        for level, (_, priors) in zip(levels, _grid(signs.shape[1]), strict=True):
            of_rest.append(level.rest)
            beforehand = log_prior(Prior.stack(priors)).reshape(len(_GRID_NOISE), -1)
            for noise, log_chances in zip(_GRID_NOISE, beforehand, strict=True):
                maps, singular, half = level.with_noise(noise)
                spread = a[:, None] + singular**2
                halves = half + 0.5 * np.log(spread).sum(axis=1)
                halves += 0.5 * len(level.rest) * np.log(a)
                along.append(maps)
                rest_precisions.append(1.0 / (level.rest_variances + noise + _JITTER))
                precisions.append(1.0 / spread)
                offsets.append(log_chances - halves)
        shape = len(_GRID_LEVELS), len(_GRID_NOISE)
        return cls(
            np.concatenate([*of_rest, *along]),
            np.reshape(rest_precisions, (*shape, -1)),
            np.reshape(precisions, (*shape, len(a), -1)),
            np.reshape(offsets, (*shape, len(a), 1)),
            *_maps_of_jumps(signs),
        )

    def best(self, targets: FloatArray) -> FloatArray:
        """Return the index of the best prior for each of the targets, (1, B)."""
        n, n_targets = targets.shape
        n_levels, n_noises, n_rest = self.rest_precisions.shape
        squares = (self.maps @ targets) ** 2
        of_rest, along = np.split(squares, [n_levels * n_rest])
        rest = self.rest_precisions @ of_rest.reshape(n_levels, n_rest, n_targets)
        along = along.reshape(n_levels, n_noises, -1, n_targets)
        energy = rest[:, :, None] / _GRID_INTERACTIONS[:, None] + self.precisions @ along + TINY
        evidence = self.offsets - 0.5 * n * np.log(energy / n)
        of_jumps = ((self.jump_maps @ targets) ** 2).sum(axis=1) + TINY  # (J, B)
        jumping = self.jump_offsets - 0.5 * n * np.log(of_jumps / n)
        scores = np.concatenate([evidence.reshape(-1, n_targets), jumping])
        best: FloatArray = scores.argmax(axis=0)[None].astype(float)
        return best


def _maps_of_jumps(signs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return `jump_maps` and `jump_offsets` of `_GridMaps`."""
    n, n_players = signs.shape
    priors = _jump_priors(n_players) if n - 1 > n_players else []
    maps, offsets = np.empty((len(priors), n, n)), np.empty((len(priors), 1))
    for index, prior in enumerate(priors):
        kernel = OddKernel.at(signs, prior.strengths)
        singles = signs @ root_of_singles(prior, n_players)
        covariance = prior.interactions * kernel.interactions + singles @ singles.T
        covariance[np.arange(n), np.arange(n)] += noise_of(prior, signs)[0]
        factor = np.linalg.cholesky(covariance)
        maps[index] = inverses_of_lower(factor)
        beforehand = float(log_prior(prior)) + _JUMP_LOG_CHANCE
        offsets[index] = beforehand - half_log_determinants(factor)
    return maps, offsets


@dataclass(frozen=True)
class _Level:
    """The values of coalitions, split into those along Z and the rest, by strengths of one level.

    Attributes
    ----------
    first : array, (1, n)
        The linear function that is the first value, over its standard deviation by C.
    rest : array, (r, n)
        The linear functions that are the rest.
    rest_variances : array, (r,)
        Their variances by interactions.
    along : array, (k, n)
        The linear functions that are the values along Z.
    covariance, with_rest : arrays, (k, k) and (k, r)
        The covariances of these with each other, and with the rest.
    of_players : array, (k + 1, M)
        The first value and those along Z as functions of the players' attributions.
    """

    first: FloatArray
    rest: FloatArray
    rest_variances: FloatArray
    along: FloatArray
    covariance: FloatArray
    with_rest: FloatArray
    of_players: FloatArray

    @classmethod
    def from_kernel(cls, kernel: OddKernel) -> _Level:
        """Split the values of a kernel's coalitions."""
        n, n_players = kernel.signs.shape
        variance = kernel.interactions[0, 0] + _JITTER
        by_first = kernel.interactions[1:, :1] / variance
        covariance = kernel.interactions[1:, 1:] - by_first * kernel.interactions[:1, 1:]
        singles = kernel.signs / np.sqrt(n_players)
        n_along = min(n_players, n - 1)
        others = singles[1:] - by_first * singles[:1]  # without what the first value predicts
        basis = scipy.linalg.qr(others, check_finite=False)[0]
        functions = np.concatenate([-basis.T @ by_first, basis.T], axis=1)  # of all values
        rotated = basis.T @ covariance @ basis
        variances, vectors = np.linalg.eigh(rotated[n_along:, n_along:])
        along = functions[:n_along]
        scale = np.sqrt(variance)
        return cls(
            first=np.eye(1, n) / scale,
            rest=vectors.T @ functions[n_along:],
            rest_variances=np.maximum(variances, 0.0),
            along=along,
            covariance=rotated[:n_along, :n_along],
            with_rest=rotated[:n_along, n_along:] @ vectors,
            of_players=np.concatenate([singles[:1] / scale, along @ singles]),
        )

    def with_noise(self, noise: float) -> tuple[FloatArray, FloatArray, float]:
        """Return the numbers along Z given the rest, as functions of the values, and of players.

        Returns
        -------
        array, (k + 1, n)
            The functions, which are independent of each other.
        array, (k + 1,)
            The singular values of the attributions' part in them.
        float
            Half the logarithm of the determinant of the covariance C of all values.
        """
        own = noise + _JITTER
        variances = self.rest_variances + own
        by_rest = self.with_rest / variances
        covariance = self.covariance - by_rest @ self.with_rest.T
        diagonal = np.arange(len(covariance))
        covariance[diagonal, diagonal] += own
        factor = np.linalg.cholesky(covariance)
        columns = np.concatenate([self.along - by_rest @ self.rest, self.of_players[1:]], axis=1)
        whitened = scipy.linalg.solve_triangular(factor, columns, lower=True, check_finite=False)
        maps, of_players = np.split(whitened, [self.first.shape[1]], axis=1)
        of_players = np.concatenate([self.of_players[:1], of_players])
        n_numbers, n_players = of_players.shape
        basis, singular, _ = np.linalg.svd(of_players, full_matrices=n_numbers > n_players)
        singular = np.concatenate([singular, np.zeros(n_numbers - len(singular))])
        half = np.log(np.diagonal(factor)).sum() + 0.5 * np.log(variances).sum()
        half -= np.log(self.first[0, 0])
        return basis.T @ np.concatenate([self.first, maps]), singular, float(half)


_cache: FactorCache[_GridMaps] = FactorCache()

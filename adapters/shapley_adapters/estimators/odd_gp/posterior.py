"""Posteriors of the Shapley values of odd games, given values and a prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ...array_types import FloatArray
from .kernels import OddKernels, Ratios, attribution_covariances
from .marginal_likelihood import (
    column_by_column,
    covariance_of,
    log_evidence,
    log_prior,
    whiten,
    whitened_by,
)
from .sparse_triples import Outstanding

_SPARSE_JITTER = 1e-8
"""Least variance of a value given the first ones, where that of a kernel is 1."""

_AROUND = ((1.0, 1.0, 1.0), (1.0, 0.3, 0.1), (1.0, 3.0, 0.1), (1.0, 1.0, 0.01))
"""Factors of the learned ratios that the posterior averages over."""


@dataclass(frozen=True)
class Posterior:
    """Means and variances of the Shapley values, (..., M, B) each, for B targets."""

    means: FloatArray
    variances: FloatArray


def ratios_around(ratios: Ratios) -> list[Ratios]:
    """Return the ratios that a posterior averages over instead of the learned ones alone."""
    return [
        Ratios(ratios.third * third, ratios.fifth * fifth, ratios.noise * noise)
        for third, fifth, noise in _AROUND
    ]


def posterior(
    signs: FloatArray,
    targets: FloatArray,
    kernels: OddKernels,
    choices: list[Ratios],
    n_learned: float,
    outstanding: list[Outstanding],
) -> Posterior:
    """Return the posterior, averaged over the choices of the ratios by their evidence.

    Either of one game, or of each game of a stack, whose arrays have R first.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    targets : array, (..., n, B)
        Their values.
    kernels : OddKernels
        Between all of them; or between the first ones, through which all are then conditioned on.
    choices : list of Ratios
        The ratios to average over; where not all values are conditioned on, the first alone.
    n_learned : float
        Degrees of freedom that have gone into the hyperparameters.
    outstanding : list of Outstanding
        Interactions with variances of their own, for each game of a stack; none for one game.
    """
    covariances, variances = attribution_covariances(signs, kernels.weights)
    of_features: FloatArray | None = None
    of_outstanding, own_variance = np.zeros(()), np.zeros(())
    if outstanding:
        stack = Outstanding.stack(outstanding)
        features, maps = stack.features(signs), stack.attributions(signs.shape[1])
        of_features = features @ features.swapaxes(-1, -2)
        of_outstanding, own_variance = features @ maps, (maps**2).sum(axis=-2)
    n_targets = targets.shape[-1]
    scores, means, spreads = [], [], []
    for ratios in choices:
        covariance = ratios.combine(covariances).swapaxes(-1, -2) + of_outstanding
        both = np.concatenate([targets, covariance], axis=-1)
        half, columns = whiten(covariance_of(kernels, ratios, of_features), both)
        whitened, seen = np.split(columns, [n_targets], axis=-1)
        variance = ratios.combine(variances) + own_variance
        left = np.maximum(variance - (seen**2).sum(axis=-2), 0.0)  # (..., M)
        scores.append(log_evidence(half, whitened) + np.asarray(log_prior(ratios))[..., None])
        means.append(_products(seen, whitened))
        spreads.append(left[..., None] * _scale(whitened, n_learned))
    chances = np.exp(np.array(scores) - np.max(scores, axis=0))
    chances = (chances / chances.sum(axis=0))[..., None, :]  # (G, ..., 1, B)
    mean = (chances * means).sum(axis=0)
    averaged = (chances * (np.array(spreads) + (np.array(means) - mean) ** 2)).sum(axis=0)
    return Posterior(mean, averaged)


def _products(seen: FloatArray, whitened: FloatArray) -> FloatArray:
    """Return seenᵀ times whitened columns, of one game or of each game of a stack."""
    if seen.ndim > 2:
        return seen.swapaxes(-1, -2) @ whitened
    return column_by_column(lambda block: seen.T @ block, whitened)


def _scale(whitened: FloatArray, n_learned: float) -> FloatArray:
    """Return by how much the values vary more than the prior says, (..., 1, B).

    A whitened value is how far it lies from what the ones before it foretell, in units of the
    error that the prior expects. The later half tells how large errors are at the end, where the
    posterior is.
    """
    n = whitened.shape[-2]
    later = (whitened[..., n // 2 :, :] ** 2).mean(axis=-2, keepdims=True)
    scale: FloatArray = later * n / max(n - n_learned, n / 3)
    return scale


def posterior_through_first_values(
    signs: FloatArray,
    targets: FloatArray,
    among_first: OddKernels,
    ratios: Ratios,
    n_learned: float,
    outstanding: Outstanding,
) -> Posterior:
    """Return the posterior of one game, with interactions known through the first values only.

    Degree 1 and what stands out are kept whole. What the values of higher degrees have in common
    with the first ones is kept, too, and the rest taken for independent noise of its own size for
    each value (Snelson and Ghahramani, Sparse Gaussian Processes using Pseudo-inputs, 2006). Time
    grows with n, not n³.
    """
    n, n_players = signs.shape
    first, player_weights = among_first.signs, among_first.weights
    variance = among_first.variance(ratios) - 1.0

    def of_higher(kernels: OddKernels) -> FloatArray:
        part: FloatArray = kernels.combined(ratios) - kernels.products / n_players
        return part

    among = of_higher(among_first)
    places = np.arange(len(among))
    among[places, places] += _SPARSE_JITTER
    factor = scipy.linalg.cholesky(among, lower=True, overwrite_a=True, check_finite=False)
    common = whitened_by(factor, of_higher(OddKernels.at(first, player_weights, signs)))  # (m, n)
    own = np.maximum(variance - (common**2).sum(axis=0), 0.0)
    own[1:] += ratios.noise_variance
    weights = 1.0 / (own + _SPARSE_JITTER)
    kept = np.concatenate([signs / np.sqrt(n_players), outstanding.features(signs)], axis=1)
    features = np.concatenate([kept, common.T], axis=1)  # (n, M + k + m)

    covariances, variances = attribution_covariances(first, player_weights)
    nothing = np.zeros_like(covariances[0])
    to_first = whitened_by(factor, ratios.combine([nothing, *covariances[1:]]).T)  # (m, M)
    alone = ratios.combine([0 * variances[0], *variances[1:]]) - (to_first**2).sum(axis=0)
    of_degree_one = 2 / np.sqrt(n_players) * np.eye(n_players)
    maps = np.concatenate([of_degree_one, outstanding.attributions(n_players), to_first])

    weighted = features * weights[:, None]
    precision = features.T @ weighted
    places = np.arange(len(precision))
    precision[places, places] += 1.0
    root = scipy.linalg.cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
    targets = np.asfortranarray(targets)  # so that sums over them are those of a column alone
    found = whitened_by(root, column_by_column(lambda block: weighted.T @ block, targets))
    seen = whitened_by(root, maps)
    energy = (weights[:, None] * targets**2).sum(axis=0) - (found**2).sum(axis=0)
    scale = np.maximum(energy, 0.0) / (n - n_learned)
    left = (seen**2).sum(axis=0) + np.maximum(alone, 0.0)
    return Posterior(_products(seen, found), left[:, None] * scale)

"""Few sets of players with variances of their own, as trees have them.

Candidates are the sets of three players, in the odd part, or of two, in the even part, that explain
most of what the prior leaves. Each gets the variance that maximises the marginal likelihood, one
after the other (Tipping and Faul, Fast marginal likelihood maximisation for sparse Bayesian models,
2003), as long as the rate of false discoveries among all that were tried is bounded.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack
from scipy.special import ndtr

from ...array_types import FloatArray, IntArray
from .prior import ODD, TINY, Prior, SparseSets, factored, products_of

_LEAST_GAIN, _FALSE_SHARE = 2.0, 0.6
"""Least gain of the log likelihood by a set, and the bound on the share of false discoveries."""

_MOST_CANDIDATES, _MOST_STEPS = 600, 300
"""Sets that may get a variance, and steps of the search."""

_MOST_OF_VALUES = 4.0
"""With n values, so many times n² sets are tried: of the strongest players."""

_LEAST = 1e-12
_LARGEST = 100.0
_CHANGE = 0.3
"""Change of the logarithm of a variance, below which it stays."""


def n_watched(n_values: int, n_players: int, size: int) -> int:
    """Return of how many players the sets are tried."""
    return min(n_players, max(size, int((_MOST_OF_VALUES * n_values**2) ** (1 / size))))


def find_sparse_sets(prior: Prior, h: FloatArray) -> SparseSets:
    """Return the sets with more energy in the values than the rest of the prior expects."""
    data = prior.data
    n, n_players = data.signs.shape
    size = 3 if data.parity == ODD else 2
    at = prior.variances(h)
    n_strongest = n_watched(n, n_players, size)
    watched = np.sort(np.argsort(-at.strengths, kind="stable")[:n_strongest])
    factor = factored(prior.covariance(at))
    alpha = lapack.dpotrs(factor, data.values, lower=1)[0]
    alpha /= np.sqrt(np.maximum((data.values * alpha).sum(axis=0), _LEAST**2))
    sets, energy = _energies(data.signs, alpha, watched, size)
    if not len(sets):
        return SparseSets.none(size)
    best = np.argsort(-energy * at.strengths[sets].prod(axis=1), kind="stable")[:_MOST_CANDIDATES]
    candidates = sets[best]
    variances = sparse_variances(
        factor, data.values, products_of(data.signs, candidates), len(sets), data.n_independent
    )
    return SparseSets(candidates[variances > 0], variances[variances > 0])


def _energies(
    signs: FloatArray, alpha: FloatArray, watched: IntArray, size: int
) -> tuple[IntArray, FloatArray]:
    """Return all sets of some players, (m, size), and the energy of each, (m,)."""
    first, second = np.triu_indices(len(watched), 1)
    own = signs[:, watched]
    pairs = own[:, first] * own[:, second]
    if size == 2:
        return watched[np.stack([first, second], axis=1)], ((pairs.T @ alpha) ** 2).sum(axis=1)
    third, pair = np.nonzero(np.arange(len(watched))[:, None] < first)
    squares = np.zeros((len(watched), len(first)))
    for of_output in alpha.T:
        squares += ((own * of_output[:, None]).T @ pairs) ** 2
    sets = watched[np.stack([third, first[pair], second[pair]], axis=1)]
    return sets, squares[third, pair]


def sparse_variances(
    factor: FloatArray, values: FloatArray, columns: FloatArray, n_tried: int, n_outputs: float
) -> FloatArray:
    """Return the variances of columns, (n, m), beside a covariance, given by its factor.

    Parameters
    ----------
    factor : array, (n, n)
        The lower factor of the covariance without the columns.
    values : array, (n, B)
        The values, of which `n_outputs` count as independent.
    columns : array, (n, m)
        The products of the signs of sets of players.
    n_tried : int
        The number of sets of which these are the most promising.
    """
    features = lapack.dtrtrs(factor, columns, lower=1)[0]
    whitened = lapack.dtrtrs(factor, values, lower=1)[0]
    n, n_columns = features.shape
    size = np.maximum((whitened**2).sum(axis=0), TINY)
    share = np.maximum(1 / n, (whitened[n // 2 :] ** 2).mean(axis=0) / size)
    whitened = whitened / np.sqrt(size)
    along = features.T @ whitened  # (m, B)
    own = (features**2).sum(axis=0) + _LEAST
    energy = np.ones(values.shape[1])
    variances = np.zeros(n_columns)
    of_columns: dict[int, FloatArray] = {}
    rows, scales = np.zeros((0, n_columns)), np.zeros(0)
    for _ in range(_MOST_STEPS):
        noise = energy * share
        ratio = np.where(variances > 0, 0.0, (along**2 / noise).mean(axis=1) / own)
        new = int(ratio.argmax())
        best = max(float(ratio[new]), 1.0)
        gain = n_outputs * (best - 1 - np.log(best)) / 2
        n_on = np.count_nonzero(variances)
        p_value = 2 * ndtr(-np.sqrt(n_outputs * best))
        if gain > _LEAST_GAIN and p_value * n_tried <= _FALSE_SHARE * (n_on + 1):
            to = min((best - 1) / own[new], _LARGEST)
        else:  # none to add: the one that is farthest from its best
            on = np.flatnonzero(variances)
            if not len(on):
                break
            left = np.maximum(1 - variances[on] * own[on], _LEAST)
            sparsity = own[on] / left
            quality = ((along[on] / left[:, None]) ** 2 / noise).mean(axis=1)
            wanted = np.maximum(quality / sparsity, 1.0)
            wanted = np.minimum((wanted - 1) / sparsity, _LARGEST)
            change = np.abs(np.log((wanted + _LEAST) / (variances[on] + _LEAST)))
            if change.max() < _CHANGE:
                break
            new, to = int(on[change.argmax()]), float(wanted[change.argmax()])
        if new not in of_columns:
            of_columns[new] = features.T @ features[:, new]
        row = of_columns[new] - (scales * rows[:, new]) @ rows
        row[new] = own[new]
        added = to - variances[new]
        scale = added / (1 + added * own[new])
        before, own_before = along[new].copy(), own[new]
        energy = np.maximum(energy - scale * before**2, _LEAST)
        along = along - scale * np.outer(row, before)
        along[new] = before / (1 + added * own_before)
        own = np.maximum(own - scale * row**2, _LEAST)
        own[new] = own_before / (1 + added * own_before)
        variances[new] = to
        rows, scales = np.vstack([rows, row]), np.append(scales, scale)
    return variances

"""The strongest interactions of three players, from the evaluations of the pairs.

The Shapley interaction of a triple is the sum of 8 c_T / (|T| − 2) over the odd sets T that hold
it. Here it is 8 c_T of the triple itself: interactions of five and more players are left out. So it
comes from the odd part of the game, and the interactions of pairs, from the even part, say which
triples to try. Both parts are differences and sums of the same values, with independent
coefficients: the choice of candidates by pairs does not favour any error of the triples.

The odd part is a regression on single players with equal variances, on noise, and on few triples
with separate variances; see `variances_of_features`. Unlike a lasso, it gives errors.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ...array_types import FloatArray, IntArray
from ...interactions.result import pairs_of
from ...interactions.triples import MOST_TRIPLES, StrongTriples
from .variances_of_features import variances_of_their_own

_FEWEST_PLAYERS, _PAIRS_PER_PLAYER = 31, 3
"""Triples are searched for among so many players and more, if the pairs of complements are at least
so many for each player. Measured with 50 players and two pairs each: of the five strongest triples,
.2 are found, and their 95 % intervals hold .2."""

_STRONG_PAIRS, _CANDIDATES = 1.5, 300
"""Candidates hold one of so many strongest pairs for each player. They are so many, those in which
the product of the two strongest pairs is largest. With 1,000 candidates, as many of the strongest
triples are found, and 95 % intervals of the triples found hold .83 instead of .94."""

_RATIOS = np.geomspace(0.03, 3000, 24)
"""Variances of the main effects to try, over that of the noise."""

_PER_COEFFICIENT = 8.0
"""The Shapley interaction of a triple, over its coefficient."""


def are_searched(n_players: int, n_pairs: int) -> bool:
    """Return whether so many pairs of complements determine the strongest triples."""
    return n_players >= _FEWEST_PLAYERS and n_pairs >= _PAIRS_PER_PLAYER * n_players


def strong_triples(signs: FloatArray, odd: FloatArray, pairs: FloatArray) -> StrongTriples:
    """Return the strongest triples of all rows and outputs.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    odd : array, (R, n, K)
        The odd part of each game.
    pairs : array, (R, P, K)
        The interactions of all pairs.
    """
    n_rows, _, n_outputs = odd.shape
    found = StrongTriples.blank(n_rows, n_outputs)
    found.are_searched[:] = True
    singles = scipy.linalg.svd(signs, full_matrices=False)[:2]
    for row, output in np.ndindex(n_rows, n_outputs):
        values, scale = odd[row, :, output], float(np.abs(odd[row, :, output]).max())
        if not scale:
            continue
        triples = _candidates(pairs[row, :, output], signs.shape[1])
        means, errors = _posterior(signs, singles, values / scale, triples)
        kept = np.argsort(-np.abs(means), kind="stable")[:MOST_TRIPLES]
        kept = kept[means[kept] != 0]
        found.players[row, : len(kept), :, output] = triples[kept]
        found.values[row, : len(kept), output] = scale * means[kept]
        found.standard_errors[row, : len(kept), output] = scale * errors[kept]
    return found


def _candidates(pairs: FloatArray, n_players: int) -> IntArray:
    """Return the triples to try, (T, 3), given the interactions of all pairs, (P,)."""
    first, second = pairs_of(n_players)
    sizes = np.zeros((n_players, n_players))
    sizes[first, second] = sizes[second, first] = np.abs(pairs)
    strongest = np.argsort(-np.abs(pairs), kind="stable")[: int(_STRONG_PAIRS * n_players)]
    thirds = np.arange(n_players)
    i, j, k = (
        array.ravel()
        for array in np.broadcast_arrays(
            first[strongest, None], second[strongest, None], thirds[None]
        )
    )
    is_triple = (k != i) & (k != j)
    triples = np.sort(np.stack([i, j, k], axis=1)[is_triple], axis=1)
    triples = np.unique(triples, axis=0)
    i, j, k = triples.T
    of_pairs = np.sort(np.stack([sizes[i, j], sizes[j, k], sizes[i, k]]), axis=0)
    order = np.argsort(-of_pairs[1] * of_pairs[2], kind="stable")[:_CANDIDATES]
    kept: IntArray = triples[order]
    return kept


def _posterior(
    signs: FloatArray, singles: tuple[FloatArray, FloatArray], values: FloatArray, triples: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return posterior means and standard deviations of interactions, 0 for most.

    `singles` are the left singular vectors and the singular values of the signs.
    """
    vectors, n = singles[0], len(values)
    variances = _variances_of_singles(singles, values)
    shrinkage = 1 / np.sqrt(1 + variances) - 1
    features = signs[:, triples].prod(axis=2)
    features += vectors @ (shrinkage[:, None] * (vectors.T @ features))
    values = values + vectors @ (shrinkage * (vectors.T @ values))  # whitened, as the features are
    candidates = np.ascontiguousarray(features.T)[None].copy()
    own = variances_of_their_own(candidates, values[None], len(triples))[0]
    strong = np.flatnonzero(own)
    chosen = features[:, strong]
    covariances = np.linalg.inv(chosen.T @ chosen + np.diag(1 / own[strong]))
    coefficients = covariances @ (chosen.T @ values)
    noise = values @ (values - chosen @ coefficients) / n
    means, errors = np.zeros((2, len(triples)))
    means[strong] = _PER_COEFFICIENT * coefficients
    errors[strong] = _PER_COEFFICIENT * np.sqrt(noise * np.diag(covariances))
    return means, errors


def _variances_of_singles(singles: tuple[FloatArray, FloatArray], values: FloatArray) -> FloatArray:
    """Return the variances along the singular vectors, over the noise, by the best evidence."""
    vectors, sizes = singles
    along = (vectors.T @ values) ** 2
    beyond, n = max(float(values @ values - along.sum()), 0.0), len(values)
    tried = _RATIOS[:, None] * sizes**2 / len(sizes)
    energies = np.maximum(beyond + (along / (1 + tried)).sum(axis=1), np.finfo(float).tiny)
    evidence = -n * np.log(energies) - np.log1p(tried).sum(axis=1)
    best: FloatArray = tried[np.argmax(evidence)]
    return best

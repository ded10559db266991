"""Interactions of players that are near each other on a graph: words, pixels, atoms.

Strengths of players say nothing about which of the players interact with each other, and a graph
may: layers of a network join what is near. The interactions of two or three players get variances
of their own, the product of the players' strengths times a power of the length of the shortest path
or tree that joins them. Where the graph says nothing, the values of the game show it, and no
interaction gets any. A graph serves interactions of the size that counts most: three players for
the odd part, two for the even one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from ...array_types import FloatArray, IntArray
from .prior import EVEN, Prior, SparseSets

_LONGEST, _MOST_SETS = 5.0, 2000
"""The longest path or tree, and the largest number of sets: the longest ones are left out."""

_DECAYS = (0.2, 0.5)
"""Factors to try for the variance, for each further edge."""

_VARIANCES, _SHARES = (0.03, 0.1, 0.3, 1.0), (1.0, 0.1)
"""Variances to try for these interactions in all, where that of single players is 1, and shares of
the fitted variances of all interactions."""

_IN_FAVOUR = 3.0
"""The log evidence that the user's graph has in advance. Measured at 4 evaluations for each atom of
molecules, of which few show anything: errors are .89 of those without it, .94 if it has none."""

_DECIDING = 400
"""Number of values whose evidence decides."""


class NearSets(NamedTuple):
    """Sets of two or three players that are near each other, (T, 2) or (T, 3), and lengths, (T,).

    Edges between two; half of the sum of the distances between three, which is the length of the
    shortest tree that joins them on lines, trees and grids.
    """

    players: IntArray
    lengths: FloatArray

    @classmethod
    def from_distances(cls, distances: FloatArray, size: int) -> NearSets:
        """Return the nearest sets, given the distances between all players, (M, M)."""
        return _near_sets(np.ascontiguousarray(distances).tobytes(), len(distances), size)


@lru_cache(maxsize=64)
def _near_sets(content: bytes, n_players: int, size: int) -> NearSets:
    distances = np.frombuffer(content).reshape(n_players, n_players)
    is_near = np.triu(distances <= _LONGEST, 1)
    first, second = np.nonzero(is_near)
    players, lengths = np.stack([first, second], axis=1), distances[first, second]
    if size == 3:
        pair, third = np.nonzero(is_near[first] & is_near[second])
        i, j, k = first[pair], second[pair], third
        players = np.stack([i, j, k], axis=1)
        lengths = (distances[i, j] + distances[j, k] + distances[i, k]) / 2
    different, counts = np.unique(lengths[lengths <= _LONGEST], return_counts=True)
    n_kept = int((counts.cumsum() <= _MOST_SETS).sum())
    is_kept = lengths <= (different[n_kept - 1] if n_kept else 0.0)
    return NearSets(players[is_kept], lengths[is_kept])


def with_near_sets(prior: Prior, h: FloatArray, distances: FloatArray) -> tuple[Prior, FloatArray]:
    """Return a prior with sets of near players and its hyperparameters, if values are in favour.

    Parameters
    ----------
    prior : Prior
        The prior of the odd or the even part of a game.
    h : array
        Its fitted hyperparameters.
    distances : array, (M, M)
        The distances between the players on their graph.
    """
    near = NearSets.from_distances(distances, 2 if prior.data.parity == EVEN else 3)
    if not len(near.players):
        return prior, h
    strengths, of_components, *_ = prior.variances(h)
    components = slice(len(strengths), len(strengths) + len(of_components))
    first, best = prior.first(_DECIDING), (prior, h)
    most = first.evidence(h)[0] - _IN_FAVOUR
    for decay, variance, share in product(_DECAYS, _VARIANCES, _SHARES):
        variances = strengths[near.players].prod(axis=1) * decay**near.lengths
        sets = SparseSets(near.players, variance / variances.sum() * variances)
        of_others = h.copy()
        of_others[components] += np.log(share)
        evidence = replace(first, sparse=sets).evidence(of_others)[0]
        if evidence > most:
            most, best = evidence, (replace(prior, sparse=sets), of_others)
    return best

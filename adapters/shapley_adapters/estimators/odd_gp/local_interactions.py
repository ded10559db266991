"""Interactions of players that are near each other on a graph: words, pixels, atoms.

Strengths of players say nothing about which of the players interact with each other, and a graph
may: layers of a network join what is near. The interactions of two or three players get variances
of their own, the product of the players' strengths times a power of the length of the shortest path
or tree that joins them. Where the graph says nothing, the values of the game show it, and no
interaction gets any. A graph serves interactions of the size that counts most: three players for
the odd part, two for the even one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...array_types import BoolArray, DistanceArray, FloatArray, IntArray
from .kernels import Kernel, Prior
from .marginal_likelihood import Features, covariance_of, log_evidence, whiten
from .sparse_interactions import SparseInteractions, with_share

_LONGEST, _MOST_SETS = 5.0, 2000
"""The longest path or tree, and the largest number of sets: the longest ones are left out."""

_DECAYS = (0.2, 0.5)
"""Factors to try for the variance, for each further edge."""

_SHARES = ((0.3, 1.0), (1.0, 0.25), (1.0, 0.1))
"""Shares of the fitted variance of interactions to try: of those near each other, and of all."""

_IN_FAVOUR = 3.0
"""The log evidence that the user's graph has in advance. Measured at 4 evaluations for each atom of
molecules, of which few show anything: errors are .89 of those without it, .94 if it has none."""

_DECIDING = 400
"""Number of values whose evidence decides."""


@dataclass(frozen=True)
class NearSets:
    """Sets of two or three players that are near each other.

    Attributes
    ----------
    players : array, (T, 2) or (T, 3)
        The players of each.
    lengths : array, (T,)
        Edges between two; half of the sum of the distances between three, which is the length of
        the shortest tree that joins them on lines, trees and grids.
    """

    players: IntArray
    lengths: FloatArray

    @classmethod
    def from_distances(cls, distances: FloatArray, size: int) -> NearSets:
        """Return the nearest sets, given the distances between all players, (M, M)."""
        return _near_sets(np.ascontiguousarray(distances).tobytes(), len(distances), size)

    def interactions(self, strengths: FloatArray, decay: float) -> SparseInteractions:
        """Return them with variances that sum to 1."""
        variances = strengths[self.players].prod(axis=1) * decay**self.lengths
        return SparseInteractions(self.players, variances / variances.sum())


@lru_cache(maxsize=64)
def _near_sets(content: bytes, n_players: int, size: int) -> NearSets:
    distances = np.frombuffer(content).reshape(n_players, n_players)
    is_near = np.triu(distances <= _LONGEST, 1)
    first, second = np.nonzero(is_near)
    if size == 2:
        players = np.stack([first, second], axis=1)
        lengths = distances[first, second]
    else:
        pair, third = np.nonzero(is_near[first] & is_near[second])
        players = np.stack([first[pair], second[pair], third], axis=1)
        i, j, k = players.T
        lengths = (distances[i, j] + distances[j, k] + distances[i, k]) / 2
    longest = _longest(lengths)
    return NearSets(players[lengths <= longest], lengths[lengths <= longest])


def _longest(lengths: FloatArray) -> float:
    """Return the largest length for which there are not too many sets."""
    different, counts = np.unique(lengths[lengths <= _LONGEST], return_counts=True)
    n_kept = int((counts.cumsum() <= _MOST_SETS).sum())
    return float(different[n_kept - 1]) if n_kept else 0.0


def find_local_interactions(
    kernel: Kernel, targets: FloatArray, prior: Prior, distances: DistanceArray
) -> tuple[list[SparseInteractions], Prior]:
    """Return the local interactions of each game of a stack, and the prior of all others.

    Parameters
    ----------
    kernel : Kernel
        Between the coalitions, that of all players first, at fitted strengths, (R, M).
    targets : array, (R, n)
        The values of the coalitions.
    prior : Prior
        The fitted prior.
    distances : array of arrays, (R,)
        The distances between the players of each game, (M, M).
    """
    found, chosen = [SparseInteractions.empty(kernel.is_even) for _ in targets], prior
    near = [NearSets.from_distances(of_game, 2 if kernel.is_even else 3) for of_game in distances]
    games = np.flatnonzero([len(sets.players) > 0 for sets in near])
    if not len(games):
        return found, prior
    deciding, prior = kernel.subset_games(games).within(_DECIDING + 1), prior.subset_games(games)
    values = targets[games, : len(deciding.signs), None]
    most = _log_evidence(deciding, values, prior, None) - _IN_FAVOUR
    for decay in _DECAYS:
        of_graph = [near[game].interactions(kernel.strengths[game], decay) for game in games]
        for share, of_others in _SHARES:
            scales = share * prior.interactions
            local = [
                SparseInteractions(one.players, scale * one.variances)
                for one, scale in zip(of_graph, scales, strict=True)
            ]
            others = with_share(prior, of_others)
            evidence = _log_evidence(deciding, values, others, local)
            is_better: BoolArray = evidence > most
            most = np.where(is_better, evidence, most)
            for index in np.flatnonzero(is_better):
                found[games[index]] = local[index]
            chosen = chosen.with_games(games[is_better], others.subset_games(is_better))
    return found, chosen


def _log_evidence(
    kernel: Kernel, values: FloatArray, prior: Prior, local: list[SparseInteractions] | None
) -> FloatArray:
    features = None if local is None else Features([one.features(kernel.signs) for one in local])
    evidence: FloatArray = log_evidence(*whiten(covariance_of(kernel, prior, features), values))[
        :, 0
    ]
    return evidence

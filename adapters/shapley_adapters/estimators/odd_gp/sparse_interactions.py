"""Sparse interactions: those of three or two players that the fitted prior expects to be weaker.

Fitted strengths say how strongly each player takes part in interactions. Models such as trees have
few strong interactions among the players that take part. This module gives each of them a separate
variance, one after the other: the next is the one that raises the marginal likelihood most (Tipping
and Faul, Fast Marginal Likelihood Maximisation for Sparse Bayesian Models, 2003).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np

from ...array_types import FloatArray, IntArray
from ...interactions.result import pair_numbers, pairs_of
from .estimands import Estimand
from .factors import LowerFactors
from .kernels import Kernel, Prior
from .marginal_likelihood import TINY, Features, covariance_of
from .variances_of_features import variances_of_their_own

_CANDIDATES = 600
"""Number of candidates: the interactions with the most energy in the values."""

_LOOKS = 2
"""Number of searches for candidates. The second search includes the first sparse interactions."""

_SHARES = (0.5, 0.25, 0.1)
"""Factors to try for the variance of all other interactions, as long as the next is better."""


@dataclass(frozen=True)
class SparseInteractions:
    """Interactions with separate variances, of one game or of each game of a stack.

    Attributes
    ----------
    players : array, (..., k, 3) or (..., k, 2)
        The players of each interaction: three of an odd part, two of an even one.
    variances : array, (..., k)
        The variance of each coefficient, in addition to that of the prior. The variances of
        degree 1 sum to 1.
    """

    players: IntArray
    variances: FloatArray

    @classmethod
    def empty(cls, is_even: bool = False) -> SparseInteractions:
        """Return no interactions."""
        return cls(np.empty((0, 2 if is_even else 3), dtype=np.intp), np.empty(0))

    @classmethod
    def stack(cls, of_games: list[SparseInteractions]) -> SparseInteractions:
        """Return a stack. Games with fewer interactions get further ones of variance 0."""
        n_most = max(len(interactions.players) for interactions in of_games)
        size = of_games[0].players.shape[1]
        stack = cls(
            np.zeros((len(of_games), n_most, size), np.intp), np.zeros((len(of_games), n_most))
        )
        for game, interactions in enumerate(of_games):
            stack.players[game, : len(interactions.players)] = interactions.players
            stack.variances[game, : len(interactions.players)] = interactions.variances
        return stack

    def plus(self, others: SparseInteractions) -> SparseInteractions:
        """Return the interactions of one game and others of it."""
        return SparseInteractions(
            np.concatenate([self.players, others.players]),
            np.concatenate([self.variances, others.variances]),
        )

    def features(self, signs: FloatArray) -> FloatArray:
        """Return products of signs, (n, M), times standard deviations of interactions, (..., n, k).

        The players' signs are multiplied.
        """
        features = _products(np.ascontiguousarray(signs.T), self.players)
        features *= np.sqrt(self.variances)[..., None]
        return features.swapaxes(-1, -2)

    def maps(self, estimand: Estimand) -> FloatArray:
        """Return how interactions of one standard deviation count in the estimand, (m, k)."""
        return estimand.maps(self.players) * np.sqrt(self.variances)[:, None]


def find_sparse_interactions(
    kernel: Kernel,
    targets: FloatArray,
    prior: Prior,
    given: list[SparseInteractions] | None = None,
) -> tuple[list[SparseInteractions], Prior]:
    """Return the sparse interactions of each game of a stack, and the prior of all others.

    Parameters
    ----------
    kernel : Kernel
        Between the coalitions, that of all players first, at fitted strengths, (R, M).
    targets : array, (R, n)
        The values of the coalitions.
    prior : Prior
        The fitted prior.
    given : list of SparseInteractions, optional
        Interactions of each game that have separate variances already, and are not searched for.
    """
    interactions = [SparseInteractions.empty(kernel.is_even) for _ in targets]
    features = None if given is None else [own.features(kernel.signs) for own in given]
    size = 2 if kernel.is_even else 3
    players = watched_players(kernel.strengths, targets.shape[1], size)
    if players.shape[1] < size:
        return interactions, prior
    games, factors = (
        np.arange(len(targets)),
        LowerFactors.from_covariances(covariance_of(kernel, prior, _of_games(features))),
    )
    unexplained, of_games = factors.whitened(targets[:, None])[:, 0], kernel
    for _ in range(_LOOKS):
        earlier = [interactions[game] for game in games]
        found = search_once(of_games, factors, targets[games], unexplained, players[games], earlier)
        is_sparse = np.array([_size(of_game) > 0 for of_game in found])
        games, factors = games[is_sparse], factors.subset_games(is_sparse)
        if not len(games):
            break
        found = [of_game for of_game in found if _size(of_game)]
        for game, of_game in zip(games, found, strict=True):
            interactions[game] = of_game
        remaining = prior.subset_games(games), targets[games], found
        of_games = _kernel_of_games(kernel, games)
        own_features = _of_games(features, games)
        of_others, factors, unexplained = _with_less_of_others(
            of_games, factors, *remaining, own_features
        )
        prior = prior.with_games(games, of_others)
    return interactions, prior


def _of_games(features: list[FloatArray] | None, games: IntArray | None = None) -> Features | None:
    """Return the given features of some games, or of all."""
    if features is None:
        return None
    return Features(features if games is None else [features[game] for game in games])


def _kernel_of_games(kernel: Kernel, games: IntArray) -> Kernel:
    """Return the kernel of some games, which are not copied where these are all."""
    return kernel if len(games) == len(kernel.strengths) else kernel.subset_games(games)


def search_once(
    kernel: Kernel,
    factors: LowerFactors,
    targets: FloatArray,
    unexplained: FloatArray,
    players: IntArray,
    earlier: list[SparseInteractions],
) -> list[SparseInteractions]:
    """Return the sparse interactions; the ones from an earlier search are candidates again.

    `unexplained`, (R, n), are the whitened values that the earlier ones leave.
    """
    values = factors.whitened(targets[:, None])[:, 0]
    sets = all_sets(players.shape[1], 2 if kernel.is_even else 3)
    indices: IntArray = np.broadcast_to(np.arange(len(sets)), (len(targets), len(sets)))
    if len(sets) > _CANDIDATES:
        energies = _energies(kernel, factors, unexplained, players, earlier)
        largest = np.argpartition(-energies, _CANDIDATES - 1, axis=1)[:, :_CANDIDATES]
        indices = np.sort(largest, axis=1)
    candidates = np.take_along_axis(players[:, None], sets[indices], axis=2)  # (R, k, size)
    features = factors.whitened(_products(np.ascontiguousarray(kernel.signs.T), candidates))
    variances = variances_of_their_own(features, values, len(sets))
    return [
        SparseInteractions(players_of_game[positive > 0], positive[positive > 0])
        for players_of_game, positive in zip(candidates, variances, strict=True)
    ]


def _size(interactions: SparseInteractions) -> int:
    return len(interactions.players)


def _energies(
    kernel: Kernel,
    factors: LowerFactors,
    unexplained: FloatArray,
    players: IntArray,
    earlier: list[SparseInteractions],
) -> FloatArray:
    """Return the energy that each set finds in whitened values, (R, T).

    Infinite for the sparse interactions of an earlier search, which are candidates again.
    """
    solved = factors.whitened(unexplained[:, None], by_transpose=True)[:, 0]
    deviations = np.sqrt(np.take_along_axis(kernel.strengths, players, axis=1))
    of_players = np.ascontiguousarray(kernel.signs.T)[players] * deviations[:, :, None]
    sums = sums_of_pairs if kernel.is_even else sums_of_triples
    energies: FloatArray = sums(of_players, solved) ** 2
    for game, of_game in enumerate(earlier):
        energies[game, _indices_among(players[game], of_game.players)] = np.inf
    return energies


def _indices_among(players: IntArray, subset: IntArray) -> IntArray:
    """Return the indices of some sets, (k, size), among `all_sets` of some players."""
    if subset.shape[1] == 2:
        first, second = np.searchsorted(players, subset).T
        return pair_numbers(first, second, len(players))
    first, middle, last = np.searchsorted(players, subset).T
    n_after = len(players) - 1 - np.arange(len(players))
    ends = np.cumsum(n_after * n_after[::-1])  # of the triples with each middle player
    indices: IntArray = ends[middle] - (middle - first) * n_after[middle] + last - middle - 1
    return indices


@lru_cache(maxsize=8)
def all_sets(n_players: int, size: int) -> IntArray:
    """Return all sets of two players, or all of three by the middle player, then the first."""
    sets = np.array(list(combinations(range(n_players), size)))
    return sets if size == 2 else sets[np.lexsort(sets.T[[2, 0, 1]])]


def all_triples(n_players: int) -> IntArray:
    """Return all sets of three players, (T, 3), in order of the middle player, then the first."""
    return all_sets(n_players, 3)


def watched_players(strengths: FloatArray, n: int, size: int = 3) -> IntArray:
    """Return the players of the largest strengths, so few that a search of all sets is cheap."""
    limit = min(strengths.shape[1], int((4 * n * n) ** (1 / size)))
    return np.sort(np.argsort(-strengths, axis=1, kind="stable")[:, :limit], axis=1)


def _products(of_players: FloatArray, sets: IntArray) -> FloatArray:
    """Return the products of the signs, (M, n), of the players of each set, (..., k, n)."""
    products = of_players[sets[..., 0]]
    for place in range(1, sets.shape[-1]):
        products *= of_players[sets[..., place]]
    return products


def sums_of_pairs(of_players: FloatArray, values: FloatArray) -> FloatArray:
    """Return the inner products of `values`, (R, n), with the products of all pairs, (R, P)."""
    first, second = pairs_of(of_players.shape[1])
    forms: FloatArray = (of_players * values[:, None]) @ of_players.swapaxes(1, 2)
    return forms[:, first, second]


def sums_of_triples(of_players: FloatArray, values: FloatArray) -> FloatArray:
    """Return the inner products of `values`, (R, n), with the products of all triples, (R, T).

    `of_players`, (R, M, n), are the factors of each player. Triples have the order of
    `all_triples`.
    """
    forms = []
    for middle in range(1, of_players.shape[1] - 1):
        pairs = of_players[:, :middle] * (of_players[:, middle] * values)[:, None]
        with_last = pairs @ of_players[:, middle + 1 :].swapaxes(1, 2)
        forms.append(with_last.reshape(len(values), -1))
    return np.concatenate(forms, axis=1)


def _with_less_of_others(
    kernel: Kernel,
    factors: LowerFactors,
    prior: Prior,
    targets: FloatArray,
    sparse: list[SparseInteractions],
    given: Features | None,
) -> tuple[Prior, LowerFactors, FloatArray]:
    """Return the prior with the factor of all other interactions that explains the values best.

    The prior was fitted to all interactions, including the sparse ones. The noise is not changed.
    `factors` are those of the covariances without the sparse interactions. They are overwritten,
    and returned for the new prior, with the whitened values that sparse interactions leave.
    """
    best, signs = np.ones(len(targets)), kernel.signs
    evidence, unexplained = log_evidence_with(factors, targets, sparse, signs)
    is_rising, memory = np.ones(len(targets), dtype=bool), None
    for share in _SHARES:
        memory = covariance_of(kernel, with_share(prior, share), given, out=memory)
        of_others = LowerFactors.from_covariances(memory)
        of_share, left = log_evidence_with(of_others, targets, sparse, signs)
        is_rising &= of_share > evidence
        if not is_rising.any():
            break
        best[is_rising], evidence[is_rising] = share, of_share[is_rising]
        unexplained[is_rising] = left[is_rising]
        if is_rising.all():
            factors, memory = of_others, factors.transposed
        else:
            factors.transposed[is_rising] = of_others.transposed[is_rising]
    return with_share(prior, best), factors, unexplained


def log_evidence_with(
    factors: LowerFactors, values: FloatArray, sparse: list[SparseInteractions], signs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the log evidence, (R,), of values, (R, n), given sparse interactions.

    `factors` are those of the covariances without them. The second result, (R, n), are the whitened
    values without what the interactions explain. They give the energy without cancellation.
    """
    features = SparseInteractions.stack(sparse).features(signs).swapaxes(1, 2)
    whitened = factors.whitened(np.concatenate([values[:, None], features], axis=1))
    values, features = whitened[:, 0], whitened[:, 1:]
    inner = features @ features.swapaxes(1, 2) + np.eye(features.shape[1])
    coefficients = np.linalg.solve(inner, features @ values[:, :, None])
    left = values - (coefficients.swapaxes(1, 2) @ features)[:, 0]
    n, energy = values.shape[1], (left**2).sum(axis=1) + (coefficients**2).sum(axis=(1, 2))
    half = factors.half_log_determinants() + 0.5 * np.linalg.slogdet(inner)[1]
    evidence: FloatArray = -0.5 * n * np.log(energy / n + TINY) - half
    return evidence, left


def with_share(prior: Prior, share: float | FloatArray) -> Prior:
    """Return the prior with a share of the variance of interactions, and all of the noise."""
    return replace(prior, interactions=prior.interactions * share, noise=prior.noise / share)

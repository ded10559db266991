"""Interactions of three players that are expected, because their pairs interact.

Strengths of players say nothing about which of the players interact with each other. The pairs of
the even part do: where x and y, y and z, and x and z interact, an interaction of all three is more
likely. Such interactions of the odd part get a variance that is the geometric mean of the squared
coefficients of their three pairs, times a common factor. They take the place of sparse interactions
where the evidence of the values of the odd part prefers them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...array_types import FloatArray
from .kernels import OddKernel, Prior
from .marginal_likelihood import Features, covariance_of, log_evidence, whiten
from .pair_coefficients import pair_coefficients
from .sparse_triples import SparseInteractions, all_triples, watched_players, with_share

_MOST_TRIPLES = 600
"""Number of expected interactions, those of the largest variances. Games with at most so many
triples have none."""

_FEWEST_VALUES, _MOST_VALUES = 180, 400
"""Numbers of values whose evidence decides: with fewer, none are expected."""

_FACTORS = (0.3, 1.0)
"""Factors to try for the variance of the expected interactions, relative to that of all others."""

_SHARES = (1.0, 0.25, 0.1)
"""Factors to try for the variance of all others beside them, as long as the next is better."""

_COST_OF_SPARSE = 3.0
"""Each sparse interaction, chosen among thousands, lowers the log probability by this much."""

_LEAST_GAIN = 2.0
"""Interactions are expected only if the log probability gains more than this."""


def expected_triples(
    kernel: OddKernel,
    targets: FloatArray,
    fitted: Prior,
    prior: Prior,
    sparse: list[SparseInteractions],
    differences: FloatArray,
) -> dict[int, tuple[SparseInteractions, Prior]]:
    """Return expected interactions and the prior of all others, for the games that have any.

    Parameters
    ----------
    kernel : OddKernel
        Between the coalitions, that of all players first, at fitted strengths, (R, M).
    targets : array, (R, n)
        The odd part of the games at these coalitions.
    fitted, prior : Prior
        The fitted prior, and that of all others beside the sparse interactions.
    sparse : list of SparseInteractions
        The interactions of each game that have separate variances.
    differences : array, (R, n')
        The `even_differences` of the games, of n − 1 coalitions or more.
    """
    n_players, expected = kernel.signs.shape[1], {}
    is_listed = n_players * (n_players - 1) * (n_players - 2) <= 6 * _MOST_TRIPLES
    if is_listed or targets.shape[1] <= _FEWEST_VALUES:
        return {}
    deciding = kernel.within(_MOST_VALUES + 1)
    for game, of_game in enumerate(differences[:, : targets.shape[1] - 1]):
        of_pairs = pair_coefficients(kernel.signs, of_game, prior.strengths[game])
        if of_pairs is not None:
            one = np.array([game])
            evidence = _Evidence(
                deciding.subset_games(one), targets[one, : len(deciding.signs), None]
            )
            without = evidence.under(prior.subset_games(one), sparse[game])
            without -= _COST_OF_SPARSE * len(sparse[game].players)
            triples = _triples(of_pairs, targets.shape[1])
            best = evidence.best(fitted.subset_games(one), triples, without + _LEAST_GAIN)
            if best is not None:
                expected[game] = best
    return expected


def _triples(coefficients: FloatArray, n: int) -> SparseInteractions:
    """Return the triples of the largest expected variances, which sum to 1."""
    squares = coefficients**2
    players = watched_players(squares.sum(axis=1)[None], n)[0]
    squares = squares[np.ix_(players, players)]
    first, second, third = all_triples(len(players)).T
    products = squares[first, second] * squares[second, third] * squares[first, third]
    n_kept = min(_MOST_TRIPLES, len(products))
    kept = np.sort(np.argpartition(-products, n_kept - 1)[:n_kept])
    variances = np.cbrt(products[kept])
    triples = players[all_triples(len(players))[kept]]
    return SparseInteractions(triples, variances / max(variances.sum(), np.finfo(float).tiny))


class _Evidence:
    """The log evidence of one game, as a stack with kernel (1, n, n) and values (1, n, 1)."""

    def __init__(self, kernel: OddKernel, values: FloatArray) -> None:
        self.kernel, self.values = kernel, values

    def under(self, prior: Prior, interactions: SparseInteractions) -> float:
        """Return that of a prior with interactions of separate variances."""
        return self._with_features(prior, self._features(interactions))

    def best(
        self, fitted: Prior, triples: SparseInteractions, least: float
    ) -> tuple[SparseInteractions, Prior] | None:
        """Return the triples and the prior of all others with more than the least evidence.

        The variances of the triples sum to 1. They get the best factor.
        """
        best, variance = None, float(fitted.interactions[0])
        for factor in _FACTORS:
            scaled = replace(triples, variances=factor * variance * triples.variances)
            features, before = self._features(scaled), -np.inf
            for share in _SHARES:
                prior = with_share(fitted, share)
                evidence = self._with_features(prior, features)
                if evidence < before:
                    break
                if evidence > least:
                    best, least = (scaled, prior), evidence
                before = evidence
        return best

    def _features(self, interactions: SparseInteractions) -> Features:
        return Features([interactions.features(self.kernel.signs)])

    def _with_features(self, prior: Prior, features: Features) -> float:
        covariances = covariance_of(self.kernel, prior, features)
        return float(log_evidence(*whiten(covariances, self.values))[0, 0])

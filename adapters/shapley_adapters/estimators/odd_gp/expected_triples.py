"""Interactions of three players that are expected, because their pairs interact.

Strengths of players say nothing about which of the players interact with each other. The pairs of
the even part do: where x and y, y and z, and x and z interact, an interaction of all three is more
likely. Such interactions of the odd part get a variance that is the geometric mean of the squared
coefficients of their three pairs, times a common factor. They take the place of sparse interactions
where the evidence of the values of the odd part prefers them.

The even part, which the Shapley values do not need, comes from the same evaluations. Its pairs have
more variance than the triples of the odd part, and there are fewer of them. The coefficients are
posterior means under a prior of the even part, in which pairs that stand out have a separate
variance; see `kernels` and `sparse_interactions`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...array_types import FloatArray
from .factors import LowerFactors
from .kernels import Kernel, Prior, bounded_strengths, log_norm
from .marginal_likelihood import (
    Features,
    covariance_of,
    log_evidence,
    whiten,
)
from .sparse_interactions import (
    SparseInteractions,
    all_triples,
    log_evidence_with,
    search_once,
    watched_players,
    with_share,
)

_NOISE, _LEVEL = 0.03, 1.0
"""Variance of the noise, over that of the interactions, and the sum of the strengths: mostly pairs.
Fitted ones take a third more time, and lead to the same errors of Shapley values."""

_LEAST_STRENGTH = 0.2
"""Added to the strengths, in units of their root mean square."""

_LEARNED_FROM, _MOST_VALUES = 240, 720
"""Numbers of values that give the strengths, and at most the coefficients. With 1,024 values
instead of 720, errors of Shapley values are a few percent smaller, and take a tenth more time."""


def even_differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the even part of games less its value at all players together, (R, n, K).

    It is multiplied by a power of two that brings it near 1. The games without an even part have 0,
    not rounding errors.

    Parameters
    ----------
    first, second : arrays, (R, n + 1, K)
        The values of coalitions and of their complements, those of all players together first.
    """
    values = (first + second) / 2
    differences: FloatArray = values[:, 1:] - values[:, :1]
    largest = np.maximum(np.abs(first), np.abs(second)).max(axis=1, keepdims=True)
    rounding = 4 * np.finfo(float).eps * largest
    most = np.abs(differences).max(axis=1, keepdims=True)
    # Products of six coefficients must be numbers. A power of two rounds nothing.
    return np.where(most > rounding, np.ldexp(differences, -np.frexp(most)[1]), 0.0)


def pair_coefficients(
    signs: FloatArray, differences: FloatArray, strengths: FloatArray
) -> FloatArray | None:
    """Return the coefficients of the products of two signs in a game, (M, M), or None.

    They are in the units of the differences. There are none if the game has no even part.

    Parameters
    ----------
    signs : array, (n + 1, M)
        The coalitions, that of all players first.
    differences : array, (n,)
        The `even_differences` of the game.
    strengths : array, (M,)
        The strengths of the odd part.
    """
    signs, differences = signs[: _MOST_VALUES + 1], differences[:_MOST_VALUES]
    if not differences[:_LEARNED_FROM].any():
        return None
    first_signs, first = signs[: _LEARNED_FROM + 1], differences[:_LEARNED_FROM]
    sizes = np.sqrt((_coefficients(first_signs, first, strengths) ** 2).sum(axis=1))
    learned = sizes + _LEAST_STRENGTH * np.sqrt((sizes**2).mean())
    return _coefficients(signs, differences, learned, has_sparse=True)


def _coefficients(
    signs: FloatArray, differences: FloatArray, strengths: FloatArray, has_sparse: bool = False
) -> FloatArray:
    """Return posterior means of the coefficients, (M, M), for strengths in these ratios.

    Pairs that stand out get separate variances, if asked for.
    """
    t = bounded_strengths(_LEVEL * strengths / strengths.sum())[None]
    prior = Prior(t, np.ones(1), np.full(1, _NOISE), is_even=True)
    kernel = Kernel.at(signs, t, is_even=True)
    factors = LowerFactors.from_covariances(covariance_of(kernel, prior))
    values = np.concatenate([[0.0], differences])[None]
    whitened = factors.whitened(values[:, None])[:, 0]
    variances = np.exp(-log_norm(t[0], True)) * np.outer(t[0], t[0])
    if has_sparse:
        none, players = SparseInteractions.empty(is_even=True), np.arange(len(strengths))[None]
        sparse = search_once(kernel, factors, values, whitened, players, [none])[0]
        first, second = sparse.players.T
        variances[first, second] += sparse.variances
        variances[second, first] += sparse.variances
        _, whitened = log_evidence_with(factors, values, [sparse], signs)
    solved = factors.whitened(whitened[:, None], by_transpose=True)[0, 0]
    coefficients: FloatArray = variances * (signs.T @ (signs * solved[:, None]))
    np.fill_diagonal(coefficients, 0.0)
    return coefficients


_MOST_TRIPLES = 600
"""Number of expected interactions, those of the largest variances. Games with at most so many
triples have none."""

_FEWEST_DECIDING, _MOST_DECIDING = 180, 400
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
    kernel: Kernel,
    targets: FloatArray,
    fitted: Prior,
    prior: Prior,
    sparse: list[SparseInteractions],
    differences: FloatArray,
    given: list[SparseInteractions] | None = None,
) -> dict[int, tuple[SparseInteractions, Prior]]:
    """Return expected interactions and the prior of all others, for the games that have any.

    Parameters
    ----------
    kernel : Kernel
        Between the coalitions, that of all players first, at fitted strengths, (R, M).
    targets : array, (R, n)
        The odd part of the games at these coalitions.
    fitted, prior : Prior
        The fitted prior, and that of all others beside the sparse interactions.
    sparse : list of SparseInteractions
        The interactions of each game that have separate variances.
    differences : array, (R, n')
        The `even_differences` of the games, of n − 1 coalitions or more.
    given : list of SparseInteractions, optional
        Interactions of each game beside the sparse ones, which were not searched for. Expected ones
        take their place, too.
    """
    n_players, expected = kernel.signs.shape[1], {}
    is_listed = n_players * (n_players - 1) * (n_players - 2) <= 6 * _MOST_TRIPLES
    if is_listed or targets.shape[1] <= _FEWEST_DECIDING:
        return {}
    deciding = kernel.within(_MOST_DECIDING + 1)
    for game, of_game in enumerate(differences[:, : targets.shape[1] - 1]):
        of_pairs = pair_coefficients(kernel.signs, of_game, prior.strengths[game])
        if of_pairs is not None:
            one = np.array([game])
            evidence = _Evidence(
                deciding.subset_games(one), targets[one, : len(deciding.signs), None]
            )
            separate = sparse[game] if given is None else given[game].plus(sparse[game])
            without = evidence.under(prior.subset_games(one), separate)
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

    def __init__(self, kernel: Kernel, values: FloatArray) -> None:
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

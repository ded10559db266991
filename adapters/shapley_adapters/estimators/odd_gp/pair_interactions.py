"""Interactions of pairs: errors of main effects, and the odd part of Shapley–Taylor interactions.

The values of a coalition and its complement give the odd part of the game by their difference, and
the even part by their sum. The Shapley values come from the odd part, the interactions of pairs
from the even part: no further evaluation is needed.

The Shapley–Taylor interaction of a pair is its Shapley interaction, which the even part gives,
less the sum of 4 c_T / |T| over the odd sets that hold the pair. The main effect of a player is
v(i) − v(∅): where the pair of a single player and its complement is evaluated, the interactions of
the player have a known sum.
"""

from __future__ import annotations

import numpy as np

from ...array_types import AttributionArray, BoolArray, CoalitionArray, FloatArray, IntArray
from ...interactions.result import PairSolution, membership, pairs_of
from .kernels import FEWEST_PLAYERS
from .posterior import Posterior

MOST_VALUES_OF_PAIRS = 2048
"""Number of pairs of complements that the interactions are given: the first, if there are more."""

_MATRICES = 12
"""Number of matrices, (n, P), that a game needs at once."""


def memory_of_pairs(n_players: int, n_values: int) -> int:
    """Return the bytes that the interactions of a game need, from so many values."""
    n_pairs = n_players * (n_players - 1) // 2
    n_values = min(n_values, MOST_VALUES_OF_PAIRS)
    return 8 * n_pairs * (_MATRICES * n_values + n_players)


def differences_of_evens(values: FloatArray) -> FloatArray:
    """Return the even part of games, (R, n, K), less its first value; 0 where it is rounding."""
    differences = values - values[:, :1]
    sizes = np.sqrt((differences[:, 1:] ** 2).mean(axis=1, keepdims=True))
    rounding = 2 * np.finfo(float).eps * np.abs(values).max(axis=1, keepdims=True)
    return np.where(sizes > rounding, differences, 0.0)


def pair_solution(posterior: Posterior, errors: AttributionArray) -> PairSolution:
    """Return interactions and their standard errors, from those of pairs and of sums by player.

    Parameters
    ----------
    posterior : Posterior
        Of the `PairInteractions` of all rows and outputs.
    errors : array, (R, M, K)
        Standard errors of the attributions, which the odd part gives independently.
    """
    n_pairs = posterior.means.shape[1] - errors.shape[1]
    of_pairs, of_sums = np.split(posterior.variances, [n_pairs], axis=1)
    main_errors = np.sqrt(errors**2 + of_sums / 4)
    return PairSolution(posterior.means[:, :n_pairs], np.sqrt(of_pairs), main_errors)


def with_odd_part(
    solution: PairSolution,
    members: CoalitionArray,
    values: FloatArray,
    odd: Posterior,
    attributions: AttributionArray,
    errors: AttributionArray,
) -> PairSolution:
    """Return Shapley–Taylor interactions, from those of the even part.

    Parameters
    ----------
    solution : PairSolution
        The Shapley interactions, and errors of the main effects by the even part alone.
    members : array, (n, M)
        One coalition of each pair of complements.
    values : array, (R, n + 1, K)
        The odd part of each game, at all players together first.
    odd : Posterior
        Of the `TaylorPart` of all rows and outputs.
    attributions, errors : arrays, (R, M, K)
        The Shapley values and their standard errors.
    """
    n_players = members.shape[1]
    if n_players < FEWEST_PLAYERS:
        return solution
    means, variances = odd.means, odd.variances
    is_single, singles = _singles(members)
    main_effects = values[:, :1] + np.take(values, 1 + singles, axis=1)  # of the odd part
    excess = 2 * (attributions - main_effects) - _sums_of_players(means, n_players)
    excess[:, ~is_single] = 0.0
    odd_errors = errors + _sums_of_players(np.sqrt(variances), n_players) / 2
    odd_errors[:, is_single] = 0.0
    return PairSolution(
        solution.values + means + _spread(excess),
        np.sqrt(solution.standard_errors**2 + variances),
        np.sqrt(solution.main_errors**2 + odd_errors**2),
    )


def _singles(members: CoalitionArray) -> tuple[BoolArray, IntArray]:
    """Return which players are evaluated alone, (M,), and the numbers of these coalitions.

    One coalition of each pair is a member here; of a single player, it is the player itself.
    """
    is_alone = members.sum(axis=1) == 1
    alone = np.flatnonzero(is_alone)
    numbers = np.zeros(members.shape[1], dtype=np.intp)
    numbers[members[alone].argmax(axis=1)] = alone
    is_single = np.asarray(members[alone].any(axis=0))
    return is_single, numbers


def _sums_of_players(of_pairs: FloatArray, n_players: int) -> FloatArray:
    """Return the sums over the pairs of each player, (R, M, K), of (R, P, K)."""
    sums: FloatArray = membership(n_players).T @ of_pairs
    return sums


def _spread(excess: FloatArray) -> FloatArray:
    """Return the least changes of interactions, (R, P, K), with these sums by player, (R, M, K)."""
    n_players = excess.shape[1]
    total = excess.sum(axis=1, keepdims=True) / (2 * n_players - 2)
    of_players = (excess - total) / (n_players - 2)
    first, second = pairs_of(n_players)
    spread: FloatArray = of_players[:, first] + of_players[:, second]
    return spread

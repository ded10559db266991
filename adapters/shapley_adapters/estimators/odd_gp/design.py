"""Pairs of coalitions chosen to leave little posterior variance in the Shapley values.

With equal weights of the players, that variance depends on the coalitions only, not on the game:
a good set belongs to a number of players, and is found once.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np

from ...array_types import CoalitionArray, FloatArray, IntArray
from ...coalitions.sizes import random_subsets
from ...coalitions.tables import first_occurrences, pack
from .attribution_covariances import interaction_covariances, shapley_weights
from .kernels import OddKernel, bounded_strengths

_INTERACTIONS, _LEVEL, _MOST_LEVEL, _NOISE = 0.3, 4.0, 0.9, 0.3
"""Prior for which the coalitions are chosen: the variance of interactions, the players' strength
times their number, its bound, and the noise. Where interactions of all sizes are expected, the
coalitions are of all sizes, too, so that errors are known in any game."""

_LISTED_PLAYERS = 13
"""Up to here, all pairs of coalitions are candidates."""

_CHOSEN_PER_PLAYER = 16
"""Where all pairs are candidates, half of those beyond so many a player are of all sizes alike:
what the choice leaves out may matter, and errors are to be known."""

_COUNTED_PLAYERS = 24
"""Up to here, a budget may ask for a good part of all pairs."""

_FEWEST_CANDIDATES = 2048
_MOST_CHOSEN = 1024
"""Beyond this, choosing costs more than it gains, and pairs are drawn."""

_HALVES_PER_PLAYER, _MOST_HALVES, _FEWEST_HALVES = 12, 768, 4
"""What is chosen are single players and halves of all, by which a game is known that has no
interactions of many players. Where not all pairs are candidates, so many pairs a player are of
these, but no more than 768, unless that is less than 4 a player; those beyond are of all sizes
alike, so that errors go on falling in any game."""

_FEW = 6
"""Pairs a player below which single players come first."""

_NOTHING = 1e-9
"""Posterior variance of a value, where that of degree 1 is 1, which is rounding."""

_WATCHED = 128
"""How many players' variances the choice looks at, at most."""


def spread_pairs(n_players: int, n_pairs: int, rng: np.random.Generator) -> CoalitionArray:
    """Return one coalition of each of n pairs, (n, M), the most telling ones first.

    The players are relabelled at random, so that none is favoured.
    """
    n_there = 2 ** (n_players - 1) - 1 if n_players < 60 else n_pairs
    n_pairs = min(n_pairs, n_there)
    n_spread = min(n_pairs, _most_spread(n_players))
    if n_players <= _LISTED_PLAYERS:
        n_spread = min(n_spread, (n_pairs + _CHOSEN_PER_PLAYER * n_players) // 2)
    n_chosen = min(n_spread, _MOST_CHOSEN)
    # Powers of two, so that few sets are made; a part of a greedy choice is a greedy choice.
    n_made = min(1 << (n_chosen - 1).bit_length(), n_there, _MOST_CHOSEN)
    chosen = _chosen(n_players, n_made, n_pairs < _FEW * n_players)
    pairs = chosen[:n_chosen][:, rng.permutation(n_players)]
    if n_players > _LISTED_PLAYERS:
        pairs = _with_halves(pairs, n_spread, rng)
    return _topped_up(pairs, n_pairs, rng, 1)


def _most_spread(n_players: int) -> int:
    """Return how many pairs are chosen, or drawn from what would be."""
    if n_players <= _LISTED_PLAYERS:
        return _MOST_CHOSEN
    at_most = max(_MOST_HALVES, _FEWEST_HALVES * n_players)
    return min(_HALVES_PER_PLAYER * n_players, at_most)


@lru_cache(maxsize=64)
def _chosen(n_players: int, n_pairs: int, singles_first: bool) -> CoalitionArray:
    """Choose greedily what lowers the sum of the posterior variances most.

    For small budgets that comes to single players too late: each alone tells less than half of the
    players do, but together they tell all that is linear.
    """
    n_first = n_players if singles_first else 0
    candidates = _candidates(n_players, n_pairs)
    # All players together come first: their value is known.
    signs = np.where(np.concatenate([np.ones((1, n_players), bool), candidates]), 1.0, -1.0)
    of_product, strengths = _kernel_by_product(n_players)
    # Of many players, some speak for all.
    of_interactions, _ = interaction_covariances(signs, strengths)
    own = np.full(len(signs), _INTERACTIONS * _NOISE)
    own[0] = 0.0
    covariances = 2 * signs / n_players + _INTERACTIONS * of_interactions
    covariances += own[:, None] * shapley_weights(signs)
    covariances = np.ascontiguousarray(covariances.T[:_WATCHED])
    variances = 1.0 + _INTERACTIONS * (n_players >= 3) + own
    factors = np.zeros((len(signs), n_pairs + 1))  # of the kernel, a column for each choice
    order: list[int] = []
    for step in range(n_pairs + 1):
        if step <= n_first:
            best = step
        else:
            gains = (covariances**2).sum(axis=0) / np.maximum(variances, _NOTHING)
            gains[order] = -1.0
            best = int(gains.argmax())
        if variances[best] < _NOTHING:  # the Shapley values are known; any pairs will do
            order.extend(np.setdiff1d(np.arange(len(signs)), order)[: n_pairs + 1 - step])
            break
        products = (signs @ signs[best]).astype(np.intp)
        column = of_product[products + n_players] - factors[:, :step] @ factors[best, :step]
        column[best] += own[best]
        column /= np.sqrt(column[best])
        factors[:, step] = column
        covariances -= np.outer(covariances[:, best] / np.sqrt(variances[best]), column)
        variances -= column**2
        order.append(best)
    chosen: CoalitionArray = candidates[np.array(order[1:]) - 1]
    return chosen


def _kernel_by_product(n_players: int) -> tuple[FloatArray, FloatArray]:
    """Return the kernel of equal strengths by z · z′ + M, and these strengths, (M,)."""
    level = min(_LEVEL / n_players, _MOST_LEVEL)
    strengths = bounded_strengths(np.full(n_players, level))
    ladder = np.where(np.arange(n_players) < np.arange(n_players + 1)[:, None], 1.0, -1.0)
    kernel = OddKernel.at(ladder, strengths, np.ones((1, n_players)))
    of_size = (kernel.degree_one + _INTERACTIONS * kernel.interactions)[:, 0]
    by_product = np.zeros(2 * n_players + 1)
    by_product[::2] = of_size
    return by_product, strengths


def _candidates(n_players: int, n_pairs: int) -> CoalitionArray:
    """Return one coalition of each candidate pair: single players, then all others or some."""
    singles = np.eye(n_players, dtype=bool)
    if n_players <= _LISTED_PLAYERS:
        both = np.concatenate([singles, _all_pairs(n_players)])
        return both[_first_of_each_pair(both)]
    twos = np.array(list(itertools.combinations(range(min(n_players, 32)), 2)))
    doubles = np.zeros((len(twos), n_players), dtype=bool)
    np.put_along_axis(doubles, twos, True, axis=1)
    some = np.concatenate([singles, doubles])
    # Of fixed randomness: the set is part of the method, not of a run.
    rng = np.random.default_rng(n_players)
    return _with_halves(some, len(some) + max(_FEWEST_CANDIDATES, 3 * n_pairs), rng)


def _all_pairs(n_players: int) -> CoalitionArray:
    """Return one coalition of each pair but that of all players."""
    places = np.arange(1, 2 ** (n_players - 1))
    every: CoalitionArray = (places[:, None] >> np.arange(n_players)) % 2 == 1
    return every


def _with_halves(pairs: CoalitionArray, n_pairs: int, rng: np.random.Generator) -> CoalitionArray:
    """Add random coalitions of about half of the players that make new pairs."""
    return _topped_up(pairs, n_pairs, rng, max(1, pairs.shape[1] // 2 - 2))


def _topped_up(
    pairs: CoalitionArray, n_pairs: int, rng: np.random.Generator, lowest: int
) -> CoalitionArray:
    """Add random coalitions that make new pairs, of sizes from `lowest` to half of the players.

    From all pairs alike where so many are wanted that there may be too few of some size.
    """
    n_players = pairs.shape[1]
    if len(pairs) == n_pairs:
        return pairs
    if n_players <= _COUNTED_PLAYERS and 4 * n_pairs > 2 ** (n_players - 1):
        both = np.concatenate([pairs, rng.permutation(_all_pairs(n_players), axis=0)])
        return both[_first_of_each_pair(both)][:n_pairs]
    found = pairs
    while len(found) < n_pairs:
        n_more = 2 * (n_pairs - len(found)) + 8
        sizes = rng.integers(lowest, n_players // 2 + 1, size=n_more)
        both = np.concatenate([found, random_subsets(sizes, n_players, rng)])
        found = both[_first_of_each_pair(both)]
    return found[:n_pairs]


def _first_of_each_pair(coalitions: CoalitionArray) -> IntArray:
    """Return where each different pair of complements stands first, in order."""
    same_side = coalitions ^ coalitions[:, :1]
    first = first_occurrences(pack(same_side)[None])[0]
    return np.flatnonzero(first == np.arange(len(coalitions)))

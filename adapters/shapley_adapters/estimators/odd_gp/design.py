"""The choice of pairs of coalitions that make the posterior variances of Shapley values small.

If all players have equal weights, these variances depend on the coalitions only, not on the game.
So the choice depends on the number of players, and is computed once for each number.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np

from ...array_types import CoalitionArray, FloatArray, IntArray
from ...coalitions.tables import (
    first_occurrences,
    pack,
    random_subsets,
    ranks_within_sizes,
    smaller_sizes,
)
from .attribution_covariances import interaction_covariances, shapley_weights
from .kernels import FEWEST_PLAYERS, Kernel, bounded_strengths

_INTERACTIONS, _LEVEL, _MOST_LEVEL, _NOISE = 0.3, 4.0, 0.9, 0.3
"""Prior for which the coalitions are chosen: the variance of interactions, the players' strength
times their number, its bound, and the noise. This prior expects interactions of all sizes. So the
choice has coalitions of all sizes, and the errors can be estimated in any game."""

_LISTED_PLAYERS = 13
"""Up to here, all pairs of coalitions are candidates."""

_FEW_PLAYERS = 8
"""Up to here, coalitions of one and two players and their complements are more than a quarter of
all. Where a budget pays for them, they are all chosen. Measured with 6 to 8 players: the errors of
most games become smaller, by a factor of 3 in the mean."""

_FEWEST_BEFORE_CHOICE, _MOST_BEFORE_CHOICE, _MOST_OVER_SMALL = 2, 2.5, 1.6
"""Pairs per player that say whether a game is smooth, at least and at most, and a bound on all
pairs over the coalitions of one and two players; see `n_pairs_before_choice`."""

_CHOSEN_PER_PLAYER = 16
"""If all pairs are candidates, so many pairs per player are chosen, and half of any further pairs.
The other half is drawn from all sizes alike, because pairs that are not chosen may matter, and the
errors must be estimated."""

_COUNTED_PLAYERS = 24
"""Up to here, a budget may ask for a good part of all pairs."""

_DRAWN_CANDIDATES, _DRAWN_PER_CHOICE = 1000, 1.5
"""Number of candidates that are halves of all players: a minimum, and a number per chosen pair. As
many further candidates have all sizes."""

_MOST_CHOSEN = 1024
"""Beyond this, choosing costs more than it gains, and pairs are drawn."""

_CHOSEN_OF_MANY, _MOST_OF_MANY, _FEWEST_OF_MANY = 12, 768, 4
"""If not all pairs are candidates, so many pairs per player are chosen: 12, but at most 768 in all,
or 4 per player if that is more. Further pairs are drawn from all sizes alike, so that errors go on
falling in any game."""

_FEW = 6
"""With fewer pairs per player than this, single players come first."""

_NOTHING = 1e-9
"""A posterior variance below this is rounding, where the prior variance of degree 1 is 1."""

_EQUAL = 1e-6
"""Gains closer than this, relatively, are equal. Many are, by symmetry, and rounding makes another
one of them the largest on another machine."""

_WATCHED = 128
"""The choice lowers the variances of at most so many players."""


def spread_pairs(n_players: int, n_pairs: int, rng: np.random.Generator) -> CoalitionArray:
    """Return one coalition of each of n pairs, (n, M), the most informative ones first.

    The players are relabelled at random, so that no player is favoured.
    """
    n_there = 2 ** (n_players - 1) - 1 if n_players < 60 else n_pairs
    n_pairs = min(n_pairs, n_there)
    if n_players <= _FEW_PLAYERS:
        order = _chosen(n_players, n_there, n_pairs < _FEW * n_players)
        order = _with_sizes_in_turn(order, 2 * n_players)
        if n_pairs >= n_players * (n_players + 1) // 2:
            order = _with_all_small(order, n_pairs)
        return order[:n_pairs, rng.permutation(n_players)]
    n_spread = min(n_pairs, _most_spread(n_players))
    if n_players <= _LISTED_PLAYERS:
        n_spread = min(n_spread, (n_pairs + _CHOSEN_PER_PLAYER * n_players) // 2)
    n_chosen = min(n_spread, _MOST_CHOSEN)
    # Powers of two, so that few sets are made; a part of a greedy choice is a greedy choice.
    n_made = min(1 << (n_chosen - 1).bit_length(), n_there, _MOST_CHOSEN)
    choice = _chosen(n_players, n_made, n_pairs < _FEW * n_players)
    pairs = choice[:n_chosen][:, rng.permutation(n_players)]
    if n_players > _LISTED_PLAYERS:
        pairs = _with_halves(pairs, n_spread, rng)
        if n_players <= _COUNTED_PLAYERS and _are_many(n_pairs, n_players):
            return _with_all_sizes(pairs, n_pairs, rng)
    return _topped_up(pairs, n_pairs, rng, 1)


def _with_all_small(order: CoalitionArray, n_pairs: int) -> CoalitionArray:
    """Return pairs in their order: all of one and two players, and the first ones of the others."""
    is_small = smaller_sizes(order) <= 2
    n_others = n_pairs - np.count_nonzero(is_small)
    chosen: CoalitionArray = order[is_small | (np.cumsum(~is_small) <= n_others)]
    return chosen


def _with_sizes_in_turn(order: CoalitionArray, n_first: int) -> CoalitionArray:
    """Return pairs in an order in which, after the first ones, sizes above two take turns.

    With eight players, the search takes no coalition of three before all of four. Votes then err
    more with more evaluations, because coalitions of three are a third of all.
    """
    sizes, ordered = smaller_sizes(order), order.copy()
    later = np.flatnonzero((sizes > 2) & (np.arange(len(order)) >= n_first))
    in_turn = np.argsort(ranks_within_sizes(sizes[later]), kind="stable")
    ordered[later] = order[later[in_turn]]
    return ordered


def n_pairs_before_choice(n_players: int, n_pairs: int) -> int:
    """Return how many first pairs say whether a game is smooth, if the others depend on it, or 0.

    They do where the other pairs are just enough for all coalitions of two players. With more
    pairs, `spread_pairs` has most of these anyway.
    """
    n_small = n_players * (n_players + 1) // 2
    n_first = min(n_pairs - comb(n_players, 2), int(_MOST_BEFORE_CHOICE * n_players))
    has_choice = _FEW_PLAYERS < n_players <= _LISTED_PLAYERS
    has_choice &= (
        n_first >= _FEWEST_BEFORE_CHOICE * n_players and n_pairs <= _MOST_OVER_SMALL * n_small
    )
    return n_first if has_choice else 0


def pairs_for_smooth_games(pairs: CoalitionArray, n_first: int) -> CoalitionArray:
    """Return pairs, (n, M), with all coalitions of two players after the first ones."""
    twos = _twos(pairs.shape[1], pairs.shape[1])
    ordered = np.concatenate([pairs[:n_first], twos, pairs[n_first:]])
    return ordered[first_of_each_pair(ordered)][: len(pairs)]


def _most_spread(n_players: int) -> int:
    """Return how many pairs are chosen by the search, or drawn among halves of all players."""
    if n_players <= _LISTED_PLAYERS:
        return _MOST_CHOSEN
    at_most = max(_MOST_OF_MANY, _FEWEST_OF_MANY * n_players)
    return min(_CHOSEN_OF_MANY * n_players, at_most)


@lru_cache(maxsize=64)
def _chosen(n_players: int, n_pairs: int, singles_first: bool) -> CoalitionArray:
    """Choose greedily the pairs that lower the sum of the posterior variances most.

    With a small budget, the greedy search would choose single players too late. A single player
    gives less information than a coalition of half of the players, but all single players together
    determine the linear part of the game. `singles_first` puts them first.
    """
    candidates = _candidates(n_players, n_pairs)
    search = _Search.before_any(candidates, n_pairs + 1)
    order: list[int] = []
    for step in range(n_pairs + 1):
        # The coalition of all players comes first: its value is known.
        is_given = step <= (n_players if singles_first else 0)
        best = step if is_given else search.best(order)
        if search.variances[best] < _NOTHING:  # all values are determined: take any pairs
            unused = np.setdiff1d(np.arange(len(candidates) + 1), order)
            order.extend(unused[: n_pairs + 1 - step])
            break
        search.add(best, step)
        order.append(best)
    choice: CoalitionArray = candidates[np.array(order[1:]) - 1]
    return choice


@dataclass
class _Search:
    """The posterior of the values of N candidates, given the choices so far.

    Attributes
    ----------
    signs : array, (N, M)
        The candidates, after the coalition of all players.
    kernel_by_product : array, (2 M + 1,)
        The prior covariance of two values, by z · z′ + M.
    own_variances : array, (N,)
        Prior variances of the noise, which is independent for each value.
    covariances : array, (P, N)
        Prior covariances of the Shapley values of some players, in place of all, and the values.
    variances : array, (N,)
        Posterior variances of the values.
    squares : array, (N,)
        Sums over the players of the squares of the posterior covariances.
    factors : array, (n, N)
        Rows of the kernel's factor, one for each choice.
    directions : array, (n, P)
        Covariances of the Shapley values with the value of each choice, given the earlier choices,
        over the standard deviation of that value.
    """

    signs: FloatArray
    kernel_by_product: FloatArray
    own_variances: FloatArray
    covariances: FloatArray
    variances: FloatArray
    squares: FloatArray
    factors: FloatArray
    directions: FloatArray

    @classmethod
    def before_any(cls, candidates: CoalitionArray, n_choices: int) -> _Search:
        """Return the search before the first choice."""
        n_players = candidates.shape[1]
        members = np.concatenate([np.ones((1, n_players), bool), candidates])
        signs = np.where(members, 1.0, -1.0)
        kernel_by_product, strengths = _kernel_by_product(n_players)
        of_interactions, _ = interaction_covariances(signs, strengths)
        own_variances = np.full(len(signs), _INTERACTIONS * _NOISE)
        own_variances[0] = 0.0
        covariances = 2 * signs / n_players + _INTERACTIONS * of_interactions
        covariances += own_variances[:, None] * shapley_weights(signs)
        watched = np.ascontiguousarray(covariances.T[:_WATCHED])
        return cls(
            signs=signs,
            kernel_by_product=kernel_by_product,
            own_variances=own_variances,
            covariances=watched,
            variances=1.0 + _INTERACTIONS * (n_players >= FEWEST_PLAYERS) + own_variances,
            squares=(watched**2).sum(axis=0),
            factors=np.zeros((n_choices, len(signs))),
            directions=np.zeros((n_choices, len(watched))),
        )

    def best(self, order: list[int]) -> int:
        """Return the candidate that lowers the variances of the Shapley values most."""
        gains = self.squares / np.maximum(self.variances, _NOTHING)
        gains[order] = -1.0
        return int(np.argmax(gains >= (1 - _EQUAL) * gains.max()))

    def add(self, best: int, step: int) -> None:
        """Add a candidate to the choices."""
        products = (self.signs @ self.signs[best]).astype(np.intp)
        factors, directions = self.factors[:step], self.directions[:step]
        prior = self.kernel_by_product[products + self.signs.shape[1]]
        prior[best] += self.own_variances[best]
        to_best = factors[:, best]
        direction = self.covariances[:, best] - to_best @ directions
        direction /= np.sqrt(prior[best] - to_best @ to_best)
        less, along = np.stack([to_best, directions @ direction]) @ factors
        row = (prior - less) / np.sqrt(prior[best] - to_best @ to_best)
        along = direction @ self.covariances - along
        self.squares -= 2 * along * row - (direction @ direction) * row**2
        self.variances -= row**2
        self.factors[step], self.directions[step] = row, direction


def _kernel_by_product(n_players: int) -> tuple[FloatArray, FloatArray]:
    """Return the kernel of equal strengths by z · z′ + M, and these strengths, (M,)."""
    level = min(_LEVEL / n_players, _MOST_LEVEL)
    strengths = bounded_strengths(np.full(n_players, level))
    ladder = np.where(np.arange(n_players) < np.arange(n_players + 1)[:, None], 1.0, -1.0)
    kernel = Kernel.at(ladder, strengths, np.ones((1, n_players)))
    of_size = (kernel.base + _INTERACTIONS * kernel.interactions)[:, 0]
    by_product = np.zeros(2 * n_players + 1)
    by_product[::2] = of_size
    return by_product, strengths


def _candidates(n_players: int, n_pairs: int) -> CoalitionArray:
    """Return one coalition of each candidate pair: single players, then all or some of the others.

    If only some are candidates, these are coalitions of two players, halves of all players, and
    coalitions of all sizes alike.
    """
    # The seed is fixed: the candidates are part of the method, not of a run. Their order is random,
    # because the first one is taken where several gain the same.
    rng = np.random.default_rng(n_players)
    singles = np.eye(n_players, dtype=bool)
    if n_players <= _LISTED_PLAYERS:
        others = rng.permutation(_all_pairs(n_players), axis=0)
        candidates = np.concatenate([singles, others])
        return candidates[first_of_each_pair(candidates)]
    small = np.concatenate([singles, _twos(n_players, min(n_players, 32))])
    n_drawn = max(_DRAWN_CANDIDATES, int(_DRAWN_PER_CHOICE * n_pairs))
    candidates = _with_halves(small, len(small) + n_drawn, rng)
    return _topped_up(candidates, len(candidates) + n_drawn, rng, 1)


def _twos(n_players: int, n_first: int) -> CoalitionArray:
    """Return all coalitions of two of the first players."""
    twos = np.array(list(itertools.combinations(range(n_first), 2)))
    coalitions = np.zeros((len(twos), n_players), dtype=bool)
    np.put_along_axis(coalitions, twos, True, axis=1)
    return coalitions


def _all_pairs(n_players: int) -> CoalitionArray:
    """Return one coalition of each pair but that of all players."""
    codes = np.arange(1, 2 ** (n_players - 1))
    coalitions: CoalitionArray = (codes[:, None] >> np.arange(n_players)) % 2 == 1
    return coalitions


def _with_halves(pairs: CoalitionArray, n_pairs: int, rng: np.random.Generator) -> CoalitionArray:
    """Add random coalitions of about half of the players that make new pairs."""
    return _topped_up(pairs, n_pairs, rng, max(1, pairs.shape[1] // 2 - 2))


def _topped_up(
    pairs: CoalitionArray, n_pairs: int, rng: np.random.Generator, lowest: int
) -> CoalitionArray:
    """Add random coalitions that make new pairs, of sizes from `lowest` to half of the players.

    If so many pairs are needed that some size may have too few, all pairs have the same chance.
    """
    n_players = pairs.shape[1]
    if len(pairs) == n_pairs:
        return pairs
    if n_players <= _COUNTED_PLAYERS and _are_many(n_pairs, n_players):
        return _with_all_pairs(pairs, rng)[:n_pairs]
    distinct = pairs
    while len(distinct) < n_pairs:
        n_more = 2 * (n_pairs - len(distinct)) + 8
        sizes = rng.integers(lowest, n_players // 2 + 1, size=n_more)
        shuffled = np.concatenate([distinct, random_subsets(sizes, n_players, rng)])
        distinct = shuffled[first_of_each_pair(shuffled)]
    return distinct[:n_pairs]


def _are_many(n_pairs: int, n_players: int) -> bool:
    """Return whether some size may have fewer pairs than are drawn of each."""
    return bool(4 * n_pairs > 2 ** (n_players - 1))


def _with_all_sizes(
    pairs: CoalitionArray, n_pairs: int, rng: np.random.Generator
) -> CoalitionArray:
    """Add as many random pairs of each size, and of sizes that have no more, all pairs.

    Without this, most of the added pairs would be halves of the players.
    """
    more = _with_all_pairs(pairs, rng)[len(pairs) :]
    ranks = ranks_within_sizes(smaller_sizes(more))
    added = more[np.argsort(ranks, kind="stable")[: n_pairs - len(pairs)]]
    return np.concatenate([pairs, added])


def _with_all_pairs(pairs: CoalitionArray, rng: np.random.Generator) -> CoalitionArray:
    """Return pairs, and all others in random order."""
    shuffled = np.concatenate([pairs, rng.permutation(_all_pairs(pairs.shape[1]), axis=0)])
    return shuffled[first_of_each_pair(shuffled)]


def first_of_each_pair(coalitions: CoalitionArray) -> IntArray:
    """Return the index of the first coalition of each distinct pair of complements, in order."""
    same_side = coalitions ^ coalitions[:, :1]
    first = first_occurrences(pack(same_side)[None])[0]
    return np.flatnonzero(first == np.arange(len(coalitions)))

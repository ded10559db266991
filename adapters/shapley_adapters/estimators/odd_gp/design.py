"""Which coalitions are evaluated.

Below two evaluations a player, halves of the players come first, and say whether further ones would
say anything:

* they would: from one evaluation a player on, every eighth has a random size, because halves alone
  do not say how far effects depend on it;
* they would not, as in games that change only where few or nearly all players are present: all
  players are shared out into as many small blocks as find room with their complements.

With two, the ends included, halves have their complements, which make games of pairs nearly exact.
Drawn games with 6 to 120 players err .7 times as much as with an order and its reverse, fitted
models .9 times; .7 times as much as with halves alone, but 1.5 to 3 times in sigmoids that have no
even part.

From two on, coalitions have their complements: single players first, which make games of pairs
exact. With more pairs, the first ones are single players and halves, and say whether the effects of
single players are those in halves:

* they are alike, or halves say as little as above: single players come first;
* they are not, as in texts, votes or maxima: halves come first, until there is room for both.

For semivalues that give small and large coalitions little weight, such as Banzhaf values, come as
many halves as players; then every fourth pair has a random size, which tells effects of sizes.

Further pairs are those that lower the posterior variances most; see `search`. Where there is room
for all coalitions of two players and hardly more, the even part of the first pairs says whether
larger sets matter: if not, all of these come next.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ...array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from ...coalitions.tables import random_subsets, ranks_within_sizes, smaller_sizes
from ...interactions.indices import Index
from .search import MOST, first_of_each_pair, searched_pairs

_DECIDING = 4
"""Pairs of halves, and of single players, that decide which of them come first: a quarter of the
players if there is room, and no fewer than so many."""

_FIRST_HALVES, _FEWEST_BLOCKS = 6, 3
"""Halves alone that decide whether blocks follow, and blocks that must find room. Two blocks would
be the complements of each other."""

_FLAT = 0.04
"""Variance of values at halves, over the least that effects without interactions have, below which
halves say little. In games that saturate at a third of the players it mostly is, at half of them
often; elsewhere it is mostly above 1, but for conjunctions of few players, where blocks and halves
err alike. In games that saturate, blocks have .2 to .7 of the errors of halves, from one
evaluation a player on, and single players, from two on, .04 to .4."""

_BOTH = 1.5
"""Pairs a player from which there is room for all single players and for halves. Measured on texts
with 31 and 60 players: single players first have .8 to 1.7 of the error of halves there."""

_LEAST_SQUARES, _MOST_SQUARES = 0.25, 16.0
"""Mean square of the odd part at halves, over that which the effects of single players expect. In
texts, attention, maxima and unanimity it is mostly less, in votes far more, else between."""

_FIRST_OF_TWOS, _MOST_OF_TWOS = 1.5, 1.6
"""Pairs a player that say whether all coalitions of two follow; and pairs, over all single players
and coalitions of two, up to which they may: with more, the search errs less. Measured with 8, 10
and 13 players: .4 to .9 of the errors where sets of two say most, 1.1 to 2 times where they do not.
"""

_LITTLE = 0.1
"""Weight of the ends in a semivalue, where it is 1 in Shapley values, below which halves come
first. With single players first, Banzhaf values of games that saturate err up to eight times as
much, at one evaluation a player, which is more than no values at all. Of 12 players, Beta(3, 3),
where it is .15, has about as large errors with both (.95 to 1.3 from 3 evaluations each on)."""

_HALVES_EACH = 3
"""Halves for each pair of a random size, once there are as many halves as players. Measured for
Banzhaf values of nine kinds of games with 13 and 30 players, at 4 and 8 evaluations each: single
players in place of both have 2.3 and 1.4 times the errors; 2 and 7 halves, 1.0 to 1.4 times."""

_HALVES_ALONE = 7
"""Halves for each coalition of a random size, below two evaluations a player. Without these, 95 %
intervals hold .4 to .9 in attention and contexts of 30 to 200 players; with them, .88 to 1.0, and
errors are .98 to 1.05 times as large, in attention 1.1 times. With one half for each, up to 1.6
times. In pairs, from two evaluations on, they raise errors by .94 to 1.14, for intervals that are
mostly as before."""

_COUNTED = 24
"""Number of players up to which a budget may ask for a good part of all pairs."""


def chosen_values(n_players: int, n_values: int, rng: np.random.Generator) -> CoalitionArray:
    """Return coalitions, (n, M): halves, and then some of a random size, or all complements."""
    halves = chosen_halves(n_players, n_values, rng)
    if have_complements(n_players, n_values):
        halves = _most_different(halves, halves[:0])[: (n_values + 1) // 2]
        group = np.tile(np.arange(len(halves)) // _FIRST_HALVES, 2)
        return np.concatenate([halves, ~halves])[np.argsort(group, kind="stable")][:n_values]
    begin = n_players + _HALVES_ALONE
    members = _with_random_sizes(halves, begin, _HALVES_ALONE, n_players - 1, rng)
    return members[first_of_each_pair(members)][:n_values]


def chosen_blocks(n_players: int, n_blocks: int, rng: np.random.Generator) -> CoalitionArray:
    """Return coalitions among which all players are shared out, (n, M)."""
    block_of = rng.permutation(np.arange(n_players) * n_blocks // n_players)
    blocks: CoalitionArray = block_of == np.arange(n_blocks)[:, None]
    return blocks


def chosen_halves(n_players: int, n_values: int, rng: np.random.Generator) -> CoalitionArray:
    """Return halves of the players, (n, M): rows of Hadamard matrices.

    Any two players are on the same side in a half of them.
    """
    length = 1 << n_players.bit_length()
    rows = np.zeros((0, n_players), dtype=bool)
    for _ in range(2 + 4 * n_values // length):
        numbers = rng.permutation(length)[:, None] & (1 + rng.permutation(length - 1)[:n_players])
        for shift in (16, 8, 4, 2, 1):
            numbers = numbers ^ (numbers >> shift)
        more = (numbers & 1).astype(bool) ^ (rng.random((length, 1)) < 0.5)
        rows = np.concatenate([rows, more[more.any(axis=1) & ~more.all(axis=1)]])
        rows = rows[first_of_each_pair(rows)]
        if len(rows) >= n_values:
            break
    return rows[:n_values]


def have_complements(n_players: int, n_values: int) -> bool:
    """Return whether so many evaluations, with the ends, pay for a half and its complement each."""
    return n_values + 2 >= 2 * n_players


def are_pairs(n_players: int, n_values: int) -> bool:
    """Return whether so many evaluations, beside the ends, pay for a pair for each player."""
    return n_values >= 2 * n_players


def n_before_blocks(n_values: int) -> int:
    """Return how many halves say whether blocks follow them; 0 where these find no room."""
    return _FIRST_HALVES * (n_values >= _FIRST_HALVES + 2 * _FEWEST_BLOCKS)


def may_take_twos(n_players: int, n_pairs: int) -> bool:
    """Return whether all coalitions of two players may follow the first pairs."""
    n_twos = n_players * (n_players - 1) // 2
    is_enough = n_pairs - n_twos >= _FIRST_OF_TWOS * n_players
    is_few = n_pairs <= _MOST_OF_TWOS * (n_players + n_twos) and 2 * n_pairs < 2**n_players
    return is_enough and is_few


def n_before_choice(n_players: int, n_pairs: int) -> int:
    """Return how many pairs say which others follow them; 0 where nothing is chosen."""
    if may_take_twos(n_players, n_pairs):
        return min(n_pairs - n_players * (n_players - 1) // 2, 2 * n_players)
    return 2 * n_deciding(n_players, n_pairs) * (n_pairs < _BOTH * n_players)


def n_deciding(n_players: int, n_pairs: int) -> int:
    """Return how many of the first pairs are halves, and how many are single players.

    0 where only single players find room: games of pairs are then exact.
    """
    if n_pairs < n_players + _DECIDING:
        return 0
    return min(max(_DECIDING, n_players // 4), n_pairs - n_players, n_players)


def halves_count_most(index: Index) -> bool:
    """Return whether a semivalue weighs the ends less than Shapley values do, as Banzhaf's."""
    return bool(index.shares_of_sizes[[0, -1]].max() < _LITTLE / index.n_players)


def chosen_pairs(
    n_players: int,
    n_pairs: int,
    rng: np.random.Generator,
    has_choice: bool = False,
    are_mostly_halves: bool = False,
) -> CoalitionArray:
    """Return one coalition of each of n pairs, (n, M), in the order of their evaluation.

    Parameters
    ----------
    n_players, n_pairs : int
        M and n.
    rng : Generator
        The source of the order of the players, and of halves.
    has_choice : bool
        Whether the first pairs say that others follow than those that mostly do: all coalitions of
        two players if there is room for these, else halves.
    are_mostly_halves : bool
        Whether halves come first, as many as players, and then a pair of a random size after every
        third half. No pairs say which others follow.
    """
    n_all = 2 ** (n_players - 1) - 1 if n_players < 60 else n_pairs
    n_pairs = min(n_pairs, n_all)
    n_first = n_deciding(n_players, n_pairs)
    # Before the halves, whose number changes what is drawn later: a larger design begins as this.
    order, order_of_singles = rng.permutation(n_players), rng.permutation(n_players)
    singles = np.eye(n_players, dtype=bool)[order_of_singles]
    halves = chosen_halves(n_players, max(n_pairs, n_players), rng)
    first = np.concatenate([halves[:n_first], singles[:n_first]])
    if are_mostly_halves:
        pairs = _most_different(halves, first[:0])
        pairs = _with_random_sizes(pairs, n_players, _HALVES_EACH, n_players // 2, rng)
    elif has_choice and not may_take_twos(n_players, n_pairs):
        pairs = np.concatenate([first, _most_different(halves[n_first:], first)])
    else:
        n_chosen = min(n_pairs, MOST)
        # Powers of two, so that few sets are made; a part of a greedy choice is a greedy choice.
        chosen = searched_pairs(n_players, min(1 << (n_chosen - 1).bit_length(), MOST))
        pairs = np.concatenate([first, singles, halves[:n_players], chosen[:n_chosen, order]])
    pairs = pairs[first_of_each_pair(pairs)]
    if has_choice and may_take_twos(n_players, n_pairs):
        one, other = np.triu_indices(n_players, 1)
        twos = singles[one] | singles[other]
        pairs = np.insert(pairs, n_before_choice(n_players, n_pairs), twos, axis=0)
        pairs = pairs[first_of_each_pair(pairs)]
    while len(pairs) < n_pairs:
        if n_players <= _COUNTED and 4 * n_pairs > n_all:  # some size may have no more
            codes = rng.permutation(np.arange(1, 2 ** (n_players - 1)))
            more = (codes[:, None] >> np.arange(n_players)) % 2 == 1
            more = more[np.argsort(ranks_within_sizes(smaller_sizes(more)), kind="stable")]
        else:
            sizes = rng.integers(1, n_players // 2 + 1, size=n_pairs)
            more = random_subsets(sizes, n_players, rng)
        pairs = np.concatenate([pairs, more])
        pairs = pairs[first_of_each_pair(pairs)]
    return pairs[:n_pairs]


def effects_are_alike(
    halves: ValueArray, singles: ValueArray, total: ValueArray, n_players: int
) -> BoolArray:
    """Return whether the effects of single players are those in halves, for each row, (R,).

    Parameters
    ----------
    halves, singles, total : arrays, (R, n, K), (R, m, K) and (R, 1, K)
        The odd part of the game at halves, at single players and at all players.
    n_players : int
        M.
    """
    # Where players do not interact, the odd part is half of the sum of the effects of the members,
    # less that of the others.
    expected = n_players / 4 * ((singles + total) ** 2).mean(axis=1)
    found = (halves**2).mean(axis=1)
    are_alike = (found >= _LEAST_SQUARES * expected) & (found <= _MOST_SQUARES * expected)
    return are_alike.mean(axis=1) >= 0.5


def halves_say_little(halves: ValueArray, ends: ValueArray, n_players: int) -> BoolArray:
    """Return whether values at halves hardly differ, so that effects show elsewhere, (R,).

    Parameters
    ----------
    halves, ends : arrays, (R, n, K) and (R, 2, K)
        The values of the game at halves, and at no and all players.
    n_players : int
        M.
    """
    # Where players do not interact, the variance is least if their effects are equal.
    least = ((ends - halves.mean(axis=1, keepdims=True)) ** 2).mean(axis=1) / n_players
    is_flat = halves.var(axis=1, ddof=1) < _FLAT * least
    # Constant outputs, which are neither, do not count.
    return is_flat.any(axis=1) & (is_flat.sum(axis=1) >= 0.5 * (least > 0).sum(axis=1))


def _with_random_sizes(
    rows: CoalitionArray, begin: int, step: int, most: int, rng: np.random.Generator
) -> CoalitionArray:
    """Return coalitions with one of a random size, at most `most`, before each `step` others."""
    places = np.arange(begin, len(rows), step)
    sizes = rng.integers(1, most + 1, size=len(places))
    return np.insert(rows, places, random_subsets(sizes, rows.shape[1], rng), axis=0)


def _most_different(rows: CoalitionArray, first: CoalitionArray) -> CoalitionArray:
    """Return rows in an order in which the next is farthest from the span of those before.

    As many pairs as players then determine games of single players and pairs.
    """
    n_players = rows.shape[1]
    before = np.where(np.concatenate([np.ones((1, n_players), dtype=bool), first]), 1.0, -1.0)
    signs = np.where(rows, 1.0, -1.0)
    basis = scipy.linalg.orth(before.T)
    left = signs - (signs @ basis) @ basis.T
    order: IntArray = scipy.linalg.qr(left.T, mode="r", pivoting=True)[1]
    return rows[order]

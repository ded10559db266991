"""Coalitions for few evaluations of many players: halves of the players, and all sizes.

The value of a single player says something about one player, with all its interactions. The value
of a half says something about all players, as a weighing of many things on a balance does: the
variance of each effect falls with the number of values. The best weighings are the rows of a
Hadamard matrix, in which any two players agree in half of the rows. One value in four is of a
coalition of any size, so that the values show how effects change with the size.

A complement cancels interactions of even numbers of players. But as long as there are about as many
values as players, another half is worth more. So complements come later: first values without
them, then the complements of these, then pairs. The first coalitions are always a smaller design.
"""

from __future__ import annotations

import numpy as np

from ...array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from ...coalitions.tables import random_subsets
from .design import first_of_each_pair, spread_pairs
from .marginal_likelihood import mean_squares
from .values_posterior import posterior_of_values

_ALONE_PER_PLAYER = 2
"""So many values of each player come before the first complement. Measured on reviews of 200 words
and on digits of 196 patches: with 1, errors at 2 evaluations a player are 1.3 to 1.6 times as
large; with 1.5 or 2 they are equal, also later."""

_FEW_PLAYERS, _FEW_PER_PLAYER, _CHOICE_PER_PLAYER = 30, 16, 6
"""More players than the first, with fewer values each than the second, have this design; with at
least the third, only if single players say little. Measured with 50 to 200 players at 6 values of
each, errors of pairs over those of this design: .43 to .48 on sums of small games of few players
and on contexts, .79 to 1.09 on dense sums, attention and pooling; at 4, 1.1 to 1.7 on the last."""

_SEARCHED_PLAYERS, _MOST_PLAYERS_WITH_CHOICE = 60, 500
"""Up to the first, pairs are searched for. With more players, drawn ones are better below 16 values
of each. Measured at 8, 12 and 16 on pooling, attention and sums of small games with 80 and 100
players: errors are .71 to 1.02 times as large, .84 in the mean. Up to the second, values choose
between designs; beyond, weights that are learned from pairs take longer than they gain."""

_ANY_SIZE_OF_PAIRS = 2
"""After single players, one pair of so many has any size. With one of four, errors of attention are
1.3 times as large, and those of other games equal."""

N_SINGLES = 12
"""Single players, and their complements, that show whether they say much."""

_ANY_SIZE = 4
"""One coalition of so many has any size. With one of two, errors are 1.1 times as large; with none,
95 % intervals hold .7 to .9, because halves do not show how effects change with the size."""

_MOST_DIFFERENCE = 3.0
"""Bound on the squared differences, over the squared attributions. Measured: 12 to 25 on reviews of
200 words, less than 1 on digits and networks, and up to 1.3 on sums of small games, of which a few
players may be most of the sum."""

_GOLDEN = (5**0.5 - 1) / 2
"""Multiples of the golden ratio, modulo 1, are spread evenly, whatever their number."""


def are_few(n_players: int, n_values: int) -> bool:
    """Return whether there are few evaluations for many players."""
    return n_players > _FEW_PLAYERS and n_values < _FEW_PER_PLAYER * n_players


def n_before_singles(n_players: int, n_values: int) -> int:
    """Return how many values come before a choice between this design and pairs; 0 for no choice.

    They are as many as players. Half of that says too little about the attributions.
    """
    has_choice = n_players <= _MOST_PLAYERS_WITH_CHOICE
    return n_players if has_choice and n_values >= _CHOICE_PER_PLAYER * n_players else 0


def with_singles(
    coalitions: CoalitionArray, n_before: int, rng: np.random.Generator
) -> CoalitionArray:
    """Return coalitions with a few single players and their complements after the first ones."""
    n_players = coalitions.shape[1]
    singles = np.eye(n_players, dtype=bool)[rng.permutation(n_players)[:N_SINGLES]]
    return np.concatenate([coalitions[:n_before], singles, ~singles, coalitions[n_before:]])


def singles_say_much(members: CoalitionArray, values: ValueArray) -> BoolArray:
    """Return of which rows, (R,), single players and their complements say much.

    They say (v({i}) − v(∅) + v(N) − v(N∖{i})) / 2 about φ_i, with all interactions of i in it. The
    other values say it, too. If the squares of the differences are several times those of the
    attributions, few or almost all players are a world of their own: a text of one word is like no
    other text.

    Parameters
    ----------
    members : array, (n, M)
        Coalitions, the empty one first, then that of all players, some others, and the last ones
        some single players and then their complements.
    values : array, (R, n, K)
        Their values.
    """
    n_rows, n, n_outputs = values.shape
    first = n - 2 * N_SINGLES
    targets = np.ascontiguousarray(values.transpose(1, 0, 2)).reshape(n, -1)
    found = posterior_of_values(members[:first], targets[:first], n_outputs=n_outputs)
    players = members[first : first + N_SINGLES].argmax(axis=1)
    alone, without = targets[first : first + N_SINGLES], targets[first + N_SINGLES :]
    effects = (alone - targets[0] + targets[1] - without) / 2
    differences = mean_squares(effects - found.means[players])
    sizes = mean_squares(found.means) + np.ascontiguousarray(found.variances.T).mean(axis=1)
    # Halves of independent players vary by a quarter of the sum of the squares.
    spread = 4 * np.ascontiguousarray(targets[2:first].T).var(axis=1) / members.shape[1]
    sizes = np.maximum(sizes, spread)
    of_rows = [(array.reshape(n_rows, n_outputs)).sum(axis=1) for array in (differences, sizes)]
    much: BoolArray = of_rows[0] < _MOST_DIFFERENCE * of_rows[1]
    return much


def spread_values(n_players: int, n_values: int, rng: np.random.Generator) -> CoalitionArray:
    """Return coalitions, (n, M), in the order of their evaluation."""
    n_alone = min(n_values, _ALONE_PER_PLAYER * n_players)
    n_paired = max(0, n_values - 2 * n_alone)
    first = _weighings(n_players, n_alone + (n_paired + 1) // 2, rng)
    alone, later = first[:n_alone], first[n_alone:]
    pairs = np.stack([later, ~later], axis=1).reshape(-1, n_players)
    return np.concatenate([alone, ~alone, pairs])[:n_values]


def pairs_after_singles(n_players: int, n_pairs: int, rng: np.random.Generator) -> CoalitionArray:
    """Return one coalition of each of n pairs, (n, M): single players, then halves and all sizes.

    Of few players, they are chosen by a search.
    """
    if n_players <= _SEARCHED_PLAYERS:
        return spread_pairs(n_players, n_pairs, rng)
    singles = np.eye(n_players, dtype=bool)[rng.permutation(n_players)]
    n_drawn = n_pairs + n_pairs // 8  # some sizes have few coalitions, which are drawn twice
    pairs = np.concatenate([singles, _weighings(n_players, n_drawn, rng, _ANY_SIZE_OF_PAIRS)])
    return pairs[first_of_each_pair(pairs)][:n_pairs]


def _weighings(
    n_players: int, n: int, rng: np.random.Generator, any_size: int = _ANY_SIZE
) -> CoalitionArray:
    """Return n coalitions of halves, and of any size in every fourth place, or every other."""
    sizes = np.floor((np.arange(n) * _GOLDEN + rng.random()) % 1 * (n_players - 1)).astype(int)
    coalitions = random_subsets(1 + sizes, n_players, rng)
    are_halves = np.arange(n) % any_size != 0
    coalitions[are_halves] = _balanced_halves(n_players, int(are_halves.sum()), rng)
    return coalitions


def _balanced_halves(n_players: int, n: int, rng: np.random.Generator) -> BoolArray:
    """Return n rows of Hadamard matrices with a random column for each player.

    The matrices have 2^k rows, whose entry (i, j) is the parity of the bits that i and j share.
    Their rows have a random order, and are replaced by their complements at random.
    """
    order = 1 << n_players.bit_length()
    blocks = [np.empty((0, n_players), dtype=bool)]
    while sum(map(len, blocks)) < n:
        columns = 1 + rng.permutation(order - 1)[:n_players]
        rows = rng.permutation(order)[: n + 2]
        halves = _parities(rows[:, None] & columns) ^ (rng.random((len(rows), 1)) < 0.5)
        is_part = halves.any(axis=1) & ~halves.all(axis=1)
        blocks.append(halves[is_part])
    return np.concatenate(blocks)[:n]


def _parities(numbers: IntArray) -> BoolArray:
    """Return whether the number of bits of each number, below 2^32, is odd."""
    folded = numbers
    for shift in (16, 8, 4, 2, 1):
        folded = folded ^ (folded >> shift)
    odd: BoolArray = (folded & 1).astype(bool)
    return odd

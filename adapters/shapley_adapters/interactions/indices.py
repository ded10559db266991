"""Indices of the interaction of two players, by name.

Each is an average of v(S ∪ ij) − v(S ∪ i) − v(S ∪ j) + v(S) over the coalitions S of the other
players. They differ in the weight of a coalition, which depends on its size only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from ..arguments import checked_choice
from ..array_types import FloatArray, IntArray

INDICES = ("shapley", "shapley_taylor", "banzhaf")


def checked_index(name: str, value: Any) -> str | None:
    """Return the name of an index; None for False, and "shapley" for True."""
    if value is False:
        return None
    return "shapley" if value is True else checked_choice(name, value, INDICES)


def weights_of_sizes(index: str, n_players: int) -> FloatArray:
    """Return the weight of a coalition of 0, …, M − 2 other players, (M − 1,)."""
    sizes = np.arange(n_players - 1)
    if index == "banzhaf":
        return np.full(n_players - 1, 0.5 ** (n_players - 2))
    if index == "shapley_taylor":
        return np.asarray(2 / n_players / scipy.special.comb(n_players - 1, sizes))
    counts = scipy.special.comb(n_players - 2, sizes)
    return np.asarray(1 / (n_players - 1) / counts)


def weights_of_members(index: str, n_players: int) -> FloatArray:
    """Return the weight of v(S) by the size of S, 0 to M, and the members of the pair in it.

    Returns
    -------
    array, (3, M + 1)
        The weights if S has none, one, or both of the players.
    """
    of_others = weights_of_sizes(index, n_players)
    weights = np.zeros((3, n_players + 1))
    for n_inside, sign in enumerate((1.0, -1.0, 1.0)):
        weights[n_inside, n_inside : n_inside + n_players - 1] = sign * of_others
    return weights


def sum_of_squares(of_members: FloatArray) -> float:
    """Return the sum of squared weights over all coalitions, of weights as `weights_of_members`.

    The numbers of coalitions may exceed the largest floating-point number, so that products with
    them are computed by logarithms.
    """
    n_others = of_members.shape[1] - 3
    n_inside, sizes = np.nonzero(of_members)
    outside = sizes - n_inside  # members other than the pair
    log_counts = scipy.special.gammaln(n_others + 1) + np.log(np.array([1, 2, 1]))[n_inside]
    log_counts -= scipy.special.gammaln(outside + 1) + scipy.special.gammaln(n_others - outside + 1)
    log_weights = np.log(np.abs(of_members[n_inside, sizes]))
    return float(np.exp(log_counts + 2 * log_weights).sum())


def pairs_of(n_players: int) -> tuple[IntArray, IntArray]:
    """Return the first and the second player of each pair, in the order of all arrays of pairs."""
    first, second = np.triu_indices(n_players, 1)
    return first, second


def membership(n_players: int) -> FloatArray:
    """Return 1 for both players of each pair and 0 for the others, (P, M)."""
    first, second = pairs_of(n_players)
    members = np.zeros((len(first), n_players))
    numbers = np.arange(len(first))
    members[numbers, first] = members[numbers, second] = 1.0
    return members


def pair_numbers(first: IntArray, second: IntArray, n_players: int) -> IntArray:
    """Return the numbers of pairs of players, in any order, among all pairs of `n_players`."""
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    numbers: IntArray = lower * n_players - lower * (lower + 1) // 2 + upper - lower - 1
    return numbers

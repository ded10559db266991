"""Owen values of all levels as weighted sums of the values of coalitions."""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial

import numpy as np

from ...array_types import CoalitionArray, FloatArray
from ...coalitions.tables import all_coalitions
from ...hierarchies.player_tree import Unions


def n_coalitions(unions: Unions) -> int:
    """Return how many coalitions all orders meet in which the players of each union are together.

    Within a union of k parts, these are all sets of whole parts; and, for each part, the coalitions
    within it beside each of the 2^(k − 1) sets of the other parts.
    """
    inside = [0] * len(unions.starts)
    for union in range(len(inside) - 1, -1, -1):
        parts = unions.parts(union).tolist()
        if parts:
            below = sum(inside[part] for part in parts)
            inside[union] = 2 ** len(parts) - 2 + 2 ** (len(parts) - 1) * below
    return inside[0] + 2


def owen_terms(unions: Unions) -> Iterator[tuple[int, CoalitionArray, FloatArray]]:
    """Yield the terms of each player's value: coalitions without the player, and their weights.

    The value is the weighted sum of what the player adds to these coalitions. In a union of k
    parts, a set of a parts comes before another part with probability a! (k − 1 − a)! / k!, and
    the probabilities of all levels multiply (Winter, 1989; for two levels, Owen, 1977, Eq. 4).

    Yields
    ------
    int, array (n, M), array (n,)
        A player, coalitions without it, and the probability of each.
    """
    n_players = len(unions.order)
    waiting = [(0, np.zeros((1, n_players), dtype=bool), np.ones(1))]
    while waiting:
        union, before, weights = waiting.pop()
        parts = unions.parts(union)
        if not len(parts):
            yield int(unions.players(union)[0]), before, weights
            continue
        members = np.zeros((len(parts), n_players), dtype=bool)
        for row, part in enumerate(parts):
            members[row, unions.players(part)] = True
        k = len(parts)
        of_size = np.array([factorial(a) * factorial(k - 1 - a) / factorial(k) for a in range(k)])
        others = all_coalitions(k - 1)  # sets of the other parts
        of_others = of_size[others.sum(axis=1)]
        for row, part in enumerate(parts):
            beside = others @ np.delete(members, row, axis=0)  # (2^(k−1), M)
            both = (before[:, None] | beside).reshape(-1, n_players)
            waiting.append((int(part), both, np.outer(weights, of_others).ravel()))

"""Asymmetric Shapley values straight from their definition, sharing no code with the package."""

from functools import cache
from itertools import permutations

import numpy as np


def linear_extensions(n_players, edges):
    """Yield all orders of the players in which the first of each edge comes before the second."""
    for order in permutations(range(n_players)):
        if all(order.index(cause) < order.index(effect) for cause, effect in edges):
            yield order


def edges_of_layers(layers):
    """Return the edges from all players of each list to all of the lists after it."""
    return [
        (cause, effect)
        for place, later in enumerate(layers)
        for earlier in layers[:place]
        for cause in earlier
        for effect in later
    ]


def asymmetric_values(n_players, edges, value):
    """Return the mean contribution of each player over these orders, (M, …).

    Frye, Rowat and Feige (2020), with equal weights of all orders.
    """
    contributions = []
    for order in linear_extensions(n_players, edges):
        of_order, before = {}, frozenset()
        for player in order:
            after = before | {player}
            of_order[player] = np.asarray(value(after), float) - np.asarray(value(before), float)
            before = after
        contributions.append([of_order[player] for player in range(n_players)])
    return np.mean(contributions, axis=0)


def split_values(n_players, edges, value):
    """Return the direct and the indirect parts of the players, (2, M).

    Heskes, Sijben, Bucur and Claassen (2020). `value(shown, given)` is the value where
    the model sees the players in `shown`, and the others follow those in `given`.
    """
    value, direct, indirect = cache(value), [], []
    for order in linear_extensions(n_players, edges):
        of_direct, of_indirect, before = np.zeros(n_players), np.zeros(n_players), frozenset()
        for player in order:
            after = before | {player}
            of_direct[player] = value(after, before) - value(before, before)
            of_indirect[player] = value(after, after) - value(after, before)
            before = after
        direct.append(of_direct)
        indirect.append(of_indirect)
    return np.array([np.mean(direct, axis=0), np.mean(indirect, axis=0)])

"""Owen values of a hierarchy straight from their definition, sharing no code with the package.

Hierarchies are nested lists of the players 0, …, M − 1; games are functions of a set of players.
"""

from itertools import permutations, product

import numpy as np


def consistent_orders(nested):
    """Yield all orders of the players in which those of each list come one after the other."""
    if isinstance(nested, int):
        yield (nested,)
        return
    for parts in permutations(nested):
        for orders in product(*(list(consistent_orders(part)) for part in parts)):
            yield sum(orders, ())


def owen_values(nested, value):
    """Return the mean contribution of each player over all these orders."""
    totals, n_orders = {}, 0
    for order in consistent_orders(nested):
        n_orders += 1
        before = frozenset()
        for player in order:
            after = before | {player}
            gain = np.asarray(value(after), dtype=float) - np.asarray(value(before))
            totals[player] = totals.get(player, 0.0) + gain
            before = after
    return np.array([totals[player] / n_orders for player in sorted(totals)])

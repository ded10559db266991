"""Averages of the effects of sets of players by enumeration, sharing no code with the package."""

from itertools import combinations

import numpy as np
from scipy.integrate import quad
from scipy.stats import beta


def all_sets(n_players):
    """Return all sets of players, the smallest first."""
    sizes = range(n_players + 1)
    return [set_ for size in sizes for set_ in combinations(range(n_players), size)]


def members_of(sets, n_players):
    """Return sets of players as rows of true and false."""
    return np.array([[player in set_ for player in range(n_players)] for set_ in sets])


def products_of(signs, sets):
    """Return the products of the signs, (n, M), of the players of each set, (n, sets)."""
    return np.stack([signs[:, list(set_)].prod(axis=1) for set_ in sets], axis=1)


def chance_of(family, n_others, size):
    """Return how likely one coalition of a size is, if each player is in it by a drawn chance.

    The chance has a Beta distribution of these two parameters; infinite ones stand for a half.
    """
    if family == (np.inf, np.inf):
        return 0.5**n_others
    density = beta(*family).pdf
    return quad(lambda q: q**size * (1 - q) ** (n_others - size) * density(q), 0, 1)[0]


def averages(n_players, value, order, family):
    """Return the mean discrete derivative of each set of `order` players, (k,).

    Averaged over the coalitions of the other players, of which each has the chance of its size.
    """
    n_others, found = n_players - order, []
    chances = [chance_of(family, n_others, size) for size in range(n_others + 1)]
    for players in combinations(range(n_players), order):
        total = 0.0
        for coalition in all_sets(n_players):
            if not set(players) & set(coalition):
                for part in all_sets(order):
                    joined = frozenset(coalition) | {players[place] for place in part}
                    total += (-1) ** (order - len(part)) * chances[len(coalition)] * value(joined)
        found.append(total)
    return np.array(found)

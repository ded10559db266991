"""Interactions of sets from their definitions, sharing no code with the package."""

from itertools import combinations
from math import comb

import numpy as np
from scipy.special import bernoulli, binom


def pair_interactions(index, n_players, value):
    """Return the interaction of each pair, {(i, j): …}, of a game of sets of players.

    The discrete derivative v(S ∪ ij) − v(S ∪ i) − v(S ∪ j) + v(S), averaged over the coalitions S
    of the other players.
    """
    interactions = {}
    for pair in combinations(range(n_players), 2):
        others = [player for player in range(n_players) if player not in pair]
        total = 0.0
        for size in range(n_players - 1):
            for members in combinations(others, size):
                total = total + _weight(index, n_players, size) * _derivative(value, members, pair)
        interactions[pair] = total
    return interactions


def set_interactions(name, order, n_players, value):
    """Return the interactions of all sets of up to `order` players, {(i, …): …}, of a game.

    By the definitions: weighted means of discrete derivatives (SII, BII, STII), their aggregation
    by Bernoulli numbers, order after order (k-SII; Bordt and von Luxburg, 2023, Definition 5), and
    the best approximations in least squares (FSII, FBII; Tsai, Yeh and Ravikumar, 2023).
    """
    value = {s: float(np.squeeze(value(frozenset(s)))) for s in _sets(n_players, n_players)}
    wanted = [s for s in _sets(n_players, order) if s]
    if name == "Moebius":
        return {s: _difference(value, (), s) for s in wanted}
    if name in ("FSII", "FBII"):
        return _best_approximation(name, order, n_players, value)
    if name == "k-SII":
        of_order = {}
        for k in range(1, order + 1):
            mean = {s: _mean(value, "SII", k, n_players, s) for s in wanted if len(s) == k}
            for s in of_order:
                above = sum(mean[t] for t in mean if set(s) < set(t))
                of_order[s] += float(bernoulli(k)[k - len(s)]) * above
            of_order |= mean
        return {s: of_order[s] for s in wanted}
    return {s: _mean(value, name, order, n_players, s) for s in wanted}


def semivalues_by_sizes(shares, n_players, value):
    """Return the mean contribution of each player to coalitions whose sizes have these shares."""
    found = []
    for player in range(n_players):
        others = [other for other in range(n_players) if other != player]
        total = 0.0
        for size, share in enumerate(shares):
            for members in combinations(others, size):
                step = np.asarray(value(frozenset((*members, player))))
                total = total + share * (step - value(frozenset(members))) / comb(len(others), size)
        found.append(total)
    return np.array(found)


def _mean(value, name, order, n_players, players):
    """Return the weighted mean of the discrete derivatives of a set."""
    others = [player for player in range(n_players) if player not in players]
    size, total = len(players), 0.0
    for places in _sets(len(others), len(others)):
        without = tuple(others[place] for place in places)
        if name == "BII":
            weight = 0.5 ** len(others)
        elif name == "SII":
            weight = 1 / ((len(others) + 1) * comb(len(others), len(without)))
        elif size < order:
            weight = float(not without)
        else:
            weight = order / (n_players * comb(n_players - 1, len(without)))
        total += weight * _difference(value, without, players)
    return total


def _difference(value, without, players):
    """Return the discrete derivative of a set of players at a coalition of others."""
    return sum(
        (-1) ** (len(players) - len(part)) * value[tuple(sorted((*without, *part)))]
        for size in range(len(players) + 1)
        for part in combinations(players, size)
    )


def _best_approximation(name, order, n_players, value):
    """Return the coefficients of the sum over subsets that is nearest to the game.

    All coalitions count alike (FBII), or by the Shapley kernel, exact at none and all (FSII).
    """
    coalitions, sets = _sets(n_players, n_players), _sets(n_players, order)
    contains = np.array([[set(s) <= set(c) for s in sets] for c in coalitions], dtype=float)
    values = np.array([value[c] for c in coalitions])
    if name == "FBII":
        solved = np.linalg.lstsq(contains, values, rcond=None)[0]
    else:
        inner = slice(1, -1)
        sizes = np.array([len(c) for c in coalitions[inner]])
        weights = 1 / (binom(n_players, sizes) * sizes * (n_players - sizes))
        left = (contains[inner].T * weights) @ contains[inner]
        ends = contains[[0, -1]]
        system = np.block([[left, ends.T], [ends, np.zeros((2, 2))]])
        right = np.concatenate([(contains[inner].T * weights) @ values[inner], values[[0, -1]]])
        solved = np.linalg.lstsq(system, right, rcond=None)[0]
    return dict(zip(sets[1:], solved[1:], strict=False))


def _sets(n_players, most):
    """Return all sets of up to `most` players, the smallest first."""
    return [s for size in range(most + 1) for s in combinations(range(n_players), size)]


def matrix_of(n_players, interactions, shapley_values):
    """Return shap's matrix, (M, M, …): halves of interactions, and rows that sum to the values."""
    shapley_values = np.asarray(shapley_values)
    matrix = np.zeros((n_players, n_players, *shapley_values.shape[1:]))
    for (first, second), interaction in interactions.items():
        matrix[first, second] = matrix[second, first] = interaction / 2
    for player in range(n_players):
        matrix[player, player] = shapley_values[player] - matrix[player].sum(axis=0)
    return matrix


def _derivative(value, members, pair):
    first, second = pair
    without = frozenset(members)
    return (
        np.asarray(value(without | {first, second}))
        - np.asarray(value(without | {first}))
        - np.asarray(value(without | {second}))
        + np.asarray(value(without))
    )


def _weight(index, n_players, size):
    if index == "banzhaf":
        return 1 / 2 ** (n_players - 2)
    if index == "shapley_taylor":
        return 2 / (n_players * comb(n_players - 1, size))
    return 1 / ((n_players - 1) * comb(n_players - 2, size))

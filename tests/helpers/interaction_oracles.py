"""Interactions of pairs from their definitions, sharing no code with the package."""

from itertools import combinations, permutations
from math import comb

import numpy as np


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


def shapley_taylor_by_orders(n_players, value):
    """Return Shapley–Taylor interactions of pairs by the mean over all orders of the players.

    In each order, a pair has its derivative at the players before both (Sundararajan, Dhamdhere and
    Agarwal, The Shapley Taylor Interaction Index, 2020, Section 2).
    """
    totals = dict.fromkeys(combinations(range(n_players), 2), 0.0)
    orders = list(permutations(range(n_players)))
    for order in orders:
        for pair in totals:
            first = min(order.index(player) for player in pair)
            totals[pair] = totals[pair] + _derivative(value, order[:first], pair) / len(orders)
    return totals


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

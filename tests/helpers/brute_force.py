"""The oracle: Shapley values straight from their definition, sharing no code with the package."""

from functools import cache
from itertools import combinations
from math import factorial

import numpy as np


def shapley_values(n_players, value):
    """Return the Shapley values, (M, …), of the game `value`, a function of a set of players.

    Eq. 3 of the SHEAR paper, one coalition at a time. The formula names each coalition once per
    player; its value is computed once.
    """
    value = cache(value)
    contributions = []
    for player in range(n_players):
        others = [other for other in range(n_players) if other != player]
        total = 0.0
        for size in range(n_players):
            weight = factorial(size) * factorial(n_players - size - 1) / factorial(n_players)
            for members in combinations(others, size):
                without = frozenset(members)
                step = np.asarray(value(without | {player})) - np.asarray(value(without))
                total = total + weight * step
        contributions.append(total)
    return np.array(contributions)


def masked_model_values(model, row, background):
    """Return the game of a model: absent columns take the background's values, averaged."""

    def value(coalition):
        masked = np.array(background, dtype=np.result_type(row, background, float), copy=True)
        for column in coalition:
            masked[:, column] = row[column]
        return np.mean(np.asarray(model(masked), dtype=float), axis=0)

    return value


def game_shapley_values(game):
    """Return the Shapley values, (R, M, K), of all rows of a `TableGame`."""
    return np.moveaxis(shapley_values(game.n_players, game_of_rows(game)), 0, 1)


def game_of_rows(game):
    """Return the games of all rows of a `TableGame` as one, whose values are (R, K)."""
    of_rows = [game.value_of(row) for row in range(game.n_rows)]
    return lambda coalition: np.stack([value(coalition) for value in of_rows])


def conditional_values(model, row, table):
    """Return the game of a model whose absent columns follow their distribution given the present.

    The distribution is that of the rows of `table`, each as likely as the others.
    """
    outputs = np.asarray(model(table), dtype=float)

    def value(coalition):
        agrees = np.ones(len(table), dtype=bool)
        for column in coalition:
            agrees &= table[:, column] == row[column]
        return outputs[agrees].mean(axis=0)

    return value

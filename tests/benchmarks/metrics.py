"""The four measures of Wang et al. (ICML 2022), §5.2 and §5.3, one number for each row."""

from __future__ import annotations

import numpy as np
from coalition_games import FloatArray, Game, IntArray


def absolute_error(values: FloatArray, exact: FloatArray) -> FloatArray:
    """Return AE, the sum of the absolute errors of all players, (R,); less is better."""
    error: FloatArray = np.abs(values - exact).sum(axis=1)
    return error


def ranking_accuracy(values: FloatArray, exact: FloatArray) -> FloatArray:
    """Return ACC, the share of places m of the ranking that are right, weighted by 1/m, (R,)."""
    weights = 1 / np.arange(1, exact.shape[1] + 1)
    hits = _descending(values) == _descending(exact)
    accuracy: FloatArray = hits @ weights / weights.sum()
    return accuracy


def faithfulness(values: FloatArray, game: Game) -> FloatArray:
    """Return the correlation of the values with what v(N) loses without each player, (R,).

    Values that are all equal correlate with nothing: 0.
    """
    n_players = values.shape[1]
    lacking_one = ~np.eye(n_players, dtype=bool)
    everyone = np.ones((1, n_players), dtype=bool)
    losses = game(everyone[None]) - game(lacking_one[None])  # (R, M)
    centred = [x - x.mean(axis=1, keepdims=True) for x in (losses, values)]
    covariance = (centred[0] * centred[1]).sum(axis=1)
    norms = np.linalg.norm(centred[0], axis=1) * np.linalg.norm(centred[1], axis=1)
    correlation: FloatArray = covariance / np.where(norms > 0, norms, 1.0)
    return correlation


def monotonicity(values: FloatArray, game: Game) -> FloatArray:
    """Return how often the next player adds no more than the one before, (R,).

    Players join in the order of their values, the largest first.
    """
    order = _descending(values)
    place = np.argsort(order, axis=1)  # of each player in the order
    n_joined = np.arange(values.shape[1] + 1)
    coalitions = place[:, None, :] < n_joined[:, None]  # (R, M + 1, M)
    gains = np.diff(game(coalitions), axis=1)  # (R, M)
    fraction: FloatArray = (gains[:, :-1] >= gains[:, 1:]).mean(axis=1)
    return fraction


def _descending(values: FloatArray) -> IntArray:
    return np.argsort(-values, axis=1, kind="stable")

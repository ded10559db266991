"""Means of the answers of a random model, and the variance of an answer."""

from __future__ import annotations

import numpy as np

from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from .background_means import POOLED, DrawnUnits
from .value_errors import ValueErrors

_SHARE_OF_FREEDOM = 0.5
"""Degrees of freedom of the variances of a random model's answers, for each answer beyond the first
of a coalition, or for each label. Where noise depends on the coalition, squares differ more than
those of equal noise: measured on noise that grows with the coalition, .3 to .5."""

_LEAST_RATIO = 0.1
"""Least variance of an answer over the mean variance, by a regression that may go below 0."""

MOST_COMPARED = 256
"""Values of a row that are compared with a fit: its costs grow with their square."""

_PLAYERS_AT_ONCE = 4096
"""Players whose signs are in memory at once, where there are more of them than coalitions."""


def repeated_means(units: DrawnUnits) -> tuple[tuple[FloatArray, ...], float]:
    """Return the means of independent draws, the variances of both parts and their covariance.

    And the degrees of freedom of these. Answers are most of all equal by chance where they are one
    of two labels. Their variance then follows from the chance of each, which all answers tell.
    """
    drawn = units.drawn_coalitions
    shares = drawn / np.maximum(drawn.sum(axis=1, keepdims=True), 1)
    means = (units.games * shares).sum(axis=2)
    around = (units.games - means[..., None]) * drawn
    freedom = np.maximum(drawn.sum(axis=1) - 1.0, 0.0)
    spread = (around**2).sum(axis=2)  # (G, C)
    expected = _variances_by_players(spread, freedom, units.coalitions)
    n_known = np.full(len(units.games), freedom[2:].sum())
    for game, answers in enumerate(units.games):
        low, high = answers[drawn].min(), answers[drawn].max()
        if low < high and np.isin(answers[drawn], (low, high)).all():
            n_known[game] = drawn[2:].sum()
            chances = _chances(drawn, (means[game] - low) / (high - low), units.coalitions)
            expected[game] = (high - low) ** 2 * chances * (1 - chances)
    pooled = np.where(np.arange(len(freedom)) < 2, 1.0, POOLED)  # the ends have many answers
    each = (spread + pooled * expected) / (freedom + pooled)
    variances = each * (shares**2).sum(axis=1)
    of_first, of_second = variances[:, units.first], variances[:, units.second]
    is_paired = units.second >= 0
    odd = np.where(is_paired, (of_first + of_second) / 4, of_first)
    one, other = means[:, units.first], means[:, units.second]
    even = np.where(is_paired, (one + other) / 2, 0.0)
    known = max(1.0, _SHARE_OF_FREEDOM * float(n_known.min()))
    covariances = (of_first - of_second) / 4
    return units.arranged(one - even, even, odd, odd, covariances), known


def equal_errors(variance: FloatArray, n_pairs: int, shape: tuple[int, ...]) -> ValueErrors:
    """Return errors of values of a shape, (R, C, K), by a variance, (K,), that n pairs tell."""
    half = np.broadcast_to(variance / 2, shape)
    return ValueErrors(half, half, np.zeros(shape), max(1.0, _SHARE_OF_FREEDOM * n_pairs))


def _variances_by_players(
    squares: FloatArray, freedom: FloatArray, coalitions: CoalitionArray
) -> FloatArray:
    """Return the variance of an answer that is expected for each coalition, (G, C).

    Noise may grow with the players that are present: a ridge regression of the sums of squares,
    (G, C), over the mean variance. The square of a normal error has a relative variance of 2, which
    is the penalty if each of M players may change the variance by its M-th part.
    """
    is_inner = np.arange(len(freedom)) >= 2  # the ends have many answers, and are unlike others
    if freedom[is_inner].any():
        freedom = freedom * is_inner
    mean = (squares * (freedom > 0)).sum(axis=1, keepdims=True) / max(1.0, float(freedom.sum()))
    relative = np.divide(squares, mean, out=np.zeros_like(squares), where=mean > 0)
    ratios = relative / np.where(freedom > 0, freedom, 1.0)
    return mean * np.maximum(1 + _ridge_predictions(ratios - 1, freedom, coalitions), _LEAST_RATIO)


def _chances(drawn: BoolArray, shares: FloatArray, coalitions: CoalitionArray) -> FloatArray:
    """Return the chance of the larger of two answers that is expected for each coalition, (C,).

    Answers that are equal by chance do not make it 0 or 1: each player takes one answer of those
    that tell the chances, to which half an answer of both kinds is added.

    Parameters
    ----------
    drawn : array, (C, D)
        The answers of each coalition.
    shares : array, (C,)
        The share of the larger one among them.
    """
    counts = drawn.sum(axis=1).astype(float)
    inner = counts * (np.arange(len(counts)) >= 2)
    mean = float(inner @ shares / max(1.0, inner.sum()))
    found = mean + _ridge_predictions((shares - mean)[None], inner, coalitions)[0]
    number = inner.sum() / (coalitions.shape[1] + 1)
    return (number * np.clip(found, 0.0, 1.0) + 0.5) / (number + 1)


def most_surprising(
    values: ValueArray, coalitions: CoalitionArray, counts: IntArray, n_each: int
) -> IntArray:
    """Return inner coalitions of each row, (R, n), those whose values differ most from a fit.

    Among the first ones, `MOST_COMPARED`.

    Parameters
    ----------
    values : array, (R, C, K)
    coalitions : array, (1 or R, C, M)
        Those of no and of all players first.
    counts : array, (1 or R,)
        How many first coalitions each row has.
    n_each : int
        n, at most two less than the counts.
    """
    parts = [slice(None)] if len(coalitions) == 1 else [slice(r, r + 1) for r in range(len(values))]
    found = []
    for of_part, members, count in zip(
        parts, coalitions, np.minimum(counts, 2 + MOST_COMPARED), strict=True
    ):
        inner = values[of_part, 2:count].transpose(0, 2, 1)  # (P, K, C − 2)
        largest = np.abs(inner).max(axis=(1, 2), keepdims=True)
        inner = inner / np.maximum(largest, 1e-300)  # squares overflow
        around = inner - inner.mean(axis=2, keepdims=True)
        targets = around.reshape(-1, inner.shape[2])
        predicted = _ridge_predictions(targets, np.ones(inner.shape[2]), members[2:count])
        sizes = np.sqrt((around**2).mean(axis=2, keepdims=True))
        left = np.abs(around - predicted.reshape(around.shape))
        relative = np.divide(left, sizes, out=np.zeros_like(left), where=sizes > 0)
        found.append(np.argsort(-relative.sum(axis=1), axis=1, kind="stable")[:, :n_each])
    return 2 + np.concatenate(found)


def _ridge_predictions(
    targets: FloatArray, weights: FloatArray, coalitions: CoalitionArray
) -> FloatArray:
    """Return a ridge regression of targets, (G, C), with weights, (C,), on the players present.

    The penalty is for targets with a variance of 2 where their expectation is 1.
    """
    n_coalitions, n_players = coalitions.shape
    if n_coalitions < n_players:  # the same with a matrix of coalitions; images are many players
        gram = np.zeros((n_coalitions, n_coalitions))
        for start in range(0, n_players, _PLAYERS_AT_ONCE):
            part = np.where(coalitions[:, start : start + _PLAYERS_AT_ONCE], 1.0, -1.0)
            gram += part @ part.T
        gram *= weights
        kept = np.linalg.solve(gram + 2.0 * n_players * np.eye(n_coalitions), targets.T)
        return (gram @ kept).T
    signs = np.where(coalitions, 1.0, -1.0)
    weighted = signs * weights[:, None]
    moments = weighted.T @ signs + 2.0 * n_players * np.eye(n_players)
    return (signs @ np.linalg.solve(moments, weighted.T @ targets.T)).T

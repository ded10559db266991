"""Errors of a fitted distribution: how values change where it is fitted to other rows.

By the multiplier bootstrap: each row of the data counts 1 + ξ times, with standard normal numbers
ξ. To first order, the value of a coalition then changes by the covariance, over its draws, of the
model's output and the logarithm of the ratio of the densities. So no further evaluations are
needed. These changes are values of games, too, whose Shapley values are the changes of the
attributions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..array_types import AttributionArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ..games.game import WrappedGame

N_FITS = 10
"""Fits to other rows, whose errors of errors are 22 %."""

_N_HALVED = 3
"""Fits of which both halves of the draws are told apart, to know the noise of the covariances."""

N_CHANGES = N_FITS + _N_HALVED
"""Changes of each output."""

_LEAST_SHARE = 0.25
"""The least share that is left: Sobol points have less noise than their halves tell."""

FEWEST_DRAWS = 4
"""Draws from which on both halves have a covariance."""


@dataclass
class RefittedGame(WrappedGame):
    """Repetitions of draws whose values, (P, K), are followed by their changes by other fits.

    Attributes
    ----------
    game : Game
        The repetitions, with `log_ratios`.
    """

    game: Any

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return values and changes, (P, (1 + N_CHANGES) · K)."""
        n_draws = self.n_backgrounds
        found = self.game.reduced(rows, coalitions, partial(_values_and_draws, n_draws))
        n_outputs = found.shape[1] // (1 + n_draws)
        draws = found[:, n_outputs:].reshape(len(rows), n_draws, n_outputs)
        ratios = self.game.log_ratios(rows, coalitions)  # (P, D, F), of the draws that were made
        half = n_draws // 2
        first, second = (
            _covariances(ratios[:, part], draws[:, part])
            for part in (slice(half), slice(half, None))
        )
        halved = (first - second)[:, :_N_HALVED] / 2
        changes = np.concatenate([(first + second) / 2, halved], axis=1)
        return np.concatenate([found[:, :n_outputs], changes.reshape(len(rows), -1)], axis=1)


def moments_of_fits(centred: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return how means and covariances, (F, D) and (F, D, D), of rows, (N, D), change."""
    n_rows, n_columns = centred.shape
    more = rng.normal(size=(N_FITS, n_rows))
    more -= more.mean(axis=1, keepdims=True)
    # Errors of slopes on half of the columns are about N / (N − D / 2) times those to first order.
    # Of 6 features, 95 % intervals hold .94 with 8 rows and .95 with 10; without it, .83 and .87.
    more *= n_rows / (n_rows - n_columns / 2)
    squares = np.array([(centred.T * of_fit) @ centred for of_fit in more])
    return more @ centred / n_rows, squares / n_rows


def _values_and_draws(n_draws: int, outputs: FloatArray, _: IntArray) -> ValueArray:
    """Return the means of draws, (P, K), and all draws, (P, D · K)."""
    n_pairs, _, n_outputs = outputs.shape  # a single one where all features are present
    draws = np.broadcast_to(outputs, (n_pairs, n_draws, n_outputs))
    return np.concatenate([outputs.mean(axis=1), draws.reshape(n_pairs, -1)], axis=1)


def _covariances(ratios: FloatArray, outputs: FloatArray) -> FloatArray:
    """Return the covariances over draws, (P, F, K), of arrays, (P, D, F) and (P, D, K)."""
    centred = outputs - outputs.mean(axis=1, keepdims=True)
    covariances: FloatArray = ratios.swapaxes(1, 2) @ centred / (ratios.shape[1] - 1)
    return covariances


def errors_of_fits(changes: AttributionArray) -> AttributionArray:
    """Return the standard errors of attributions over fits, (R, M, K), by (R, M, N_CHANGES · K).

    The noise of the draws in them is taken off: its share, over all players of a row, is that of
    half of the differences between halves.
    """
    n_rows, n_players, _ = changes.shape
    by_fit = changes.reshape(n_rows, n_players, N_CHANGES, -1)
    largest = np.abs(by_fit).max(axis=(1, 2), keepdims=True)
    scale = np.where(largest > 0, largest, 1)  # squares of changes need not be numbers
    means, halved = np.split(by_fit / scale, [N_FITS], axis=2)
    variances = (means**2).mean(axis=2)
    all_players = variances.sum(axis=1, keepdims=True)
    noise = (halved**2).mean(axis=2).sum(axis=1, keepdims=True)
    noise /= np.where(all_players > 0, all_players, 1)
    errors: AttributionArray = np.sqrt(variances * np.maximum(1 - noise, _LEAST_SHARE))
    return errors * scale[:, 0]

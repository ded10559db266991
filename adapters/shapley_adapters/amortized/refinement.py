"""Attributions of a network, refined by evaluations of the model.

The network's attributions are the prior mean of the additive part in Gaussian-process regression:
the values of the game less the additive game of the prediction are regressed, and the prediction is
added to the result. The stated errors of the network decide how far it is used. A prediction whose
error is as large as itself is not used at all, and the result is averaged with the prediction as
long as the evaluations are too few to be better.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..array_types import (
    AttributionArray,
    BoolArray,
    CoalitionArray,
    FloatArray,
    IntArray,
    ValueArray,
)
from ..estimators.odd_gp.estimator import OddGP
from ..estimators.protocol import Solution
from ..games.game import Game, SomeRows
from ..pipeline.estimate import estimate
from ..pipeline.result import Estimate
from ..pipeline.settings import Settings, Tolerance

_TRUSTED = 0.25
"""Up to this ratio of the squared error to the square of the prediction, all of it is used."""

_LEAST_VARIANCE = 0.8
"""The variance of an average, relative to the smaller one of its two parts, is at least this."""


@dataclass(frozen=True)
class RefiningGP(OddGP):
    """The regression for differences from a prediction: any number of evaluations is useful."""

    def useful_budget(self, n_players: int) -> int:
        """Return 0: without evaluations, the prediction remains."""
        del n_players
        return 0


@dataclass
class RemainingGame(SomeRows):
    """Some rows of a game, less the additive games of attributions.

    Attributes
    ----------
    additive_part : array, (R, M, K)
        The attributions.
    empty, grand : arrays, (R, K)
        v(∅) and v(N), which are not evaluated again.
    """

    additive_part: AttributionArray = field()  # not the default of all games
    empty: ValueArray
    grand: ValueArray

    # The values at both ends are known, so that draws are not repeated.
    draws_values = answers_at_random = is_in_training_mode = False

    def __post_init__(self) -> None:
        self._active = super().active_players()

    def active_players(self) -> BoolArray:
        """Return which players can change the value."""
        return self._active

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return values, (P, K); those of no and of all players are known."""
        players = coalitions & self._active[rows]
        is_empty = ~players.any(axis=1)
        is_full = (players == self._active[rows]).all(axis=1) & ~is_empty
        values = np.where(is_full[:, None], self.grand[rows], self.empty[rows])
        others = np.flatnonzero(~is_empty & ~is_full)
        if len(others):
            values[others] = super().__call__(rows[others], coalitions[others])
        additive = np.einsum("pm,pmk->pk", players.astype(float), self.additive_part[rows])
        return values - additive


def refined(game: Game, predicted: Estimate, settings: Settings) -> Estimate:
    """Return the predictions of all rows, refined within the budget of `settings`.

    The predicted attributions sum to v(N) − v(∅). With a tolerance, rows whose predictions meet it
    are not evaluated any further.
    """
    needs_more = np.ones(game.n_rows, dtype=bool)
    if settings.tolerance is not None:
        needs_more = settings.tolerance.excess(_solution(predicted)) > 1
    rows = np.flatnonzero(needs_more)
    if not len(rows):
        return predicted
    part = predicted.subset_rows(rows)
    additive = _used_share(part)[:, None] * part.values
    remaining = RemainingGame(game, rows, additive, part.empty_values, part.grand_values)
    estimated = estimate(remaining, RefiningGP(), settings)
    regressed = replace(
        estimated,
        values=estimated.values + additive,
        empty_values=part.empty_values,
        grand_values=part.grand_values,
        prior_shares=np.zeros(len(rows)),
    )
    averaged = _averaged(regressed, part)
    if settings.tolerance is not None:
        averaged = _within(settings.tolerance, averaged, regressed)
    for position, row in enumerate(rows.tolist()):
        predicted.set_rows(row, row + 1, averaged.subset_rows([position]))
    return replace(
        predicted,
        seed=settings.seed,
        budget=settings.budget,
        rounding=estimated.rounding,
        method="trained network, refined by OddGP",
        check_evaluations=estimated.check_evaluations,
    )


def _within(tolerance: Tolerance, averaged: Estimate, regressed: Estimate) -> Estimate:
    """Return the averages, but the regression of the rows where only this meets the tolerance.

    The average has one weight for all players of a row, so that the errors of some may grow.
    """
    meets = [tolerance.excess(_solution(estimated)) <= 1 for estimated in (averaged, regressed)]
    for row in np.flatnonzero(meets[1] & ~meets[0]).tolist():
        averaged.set_rows(row, row + 1, regressed.subset_rows([row]))
    return averaged


def _solution(estimated: Estimate) -> Solution:
    return Solution(estimated.values, estimated.standard_errors, estimated.degrees_of_freedom)


def _used_share(prediction: Estimate) -> FloatArray:
    """Return how much of each prediction is used, (R, K): 1 unless its errors are large."""
    sizes = (prediction.values**2).sum(axis=1)
    errors = (prediction.standard_errors**2).sum(axis=1)
    ratios = np.divide(errors, sizes, out=np.ones_like(sizes), where=sizes > 0)
    return np.clip((1 - ratios) / (1 - _TRUSTED), 0.0, 1.0)


def _averaged(regressed: Estimate, prediction: Estimate) -> Estimate:
    """Return the average of the attributions by regression and of the prediction.

    The mean square error of a weighted mean is the weighted mean of the two errors, less the
    product of the weights and the squared distance between the two (Krogh & Vedelsby, 1995).
    """
    difference = regressed.values - prediction.values
    freedom = float(prediction.degrees_of_freedom.flat[0])
    own, other = regressed.standard_errors**2, prediction.standard_errors**2
    squared = (difference**2).sum(axis=1)
    expected = freedom / (freedom - 2) * other.sum(axis=1)
    # The regression starts at the prediction. With few values it states too large errors, but
    # values do not make it worse than the prediction.
    own_sum = np.minimum(own.sum(axis=1), expected)
    # If the values show that the prediction is worse than stated, they are right.
    other_sum = np.maximum(expected, squared - own_sum)
    weight = np.ones_like(squared)
    np.divide(other_sum + squared - own_sum, 2 * squared, out=weight, where=squared > 0)
    weight = np.where(regressed.enumerated[:, None], 1.0, np.clip(weight, 0.0, 1.0))[:, None]
    variances = (1 - weight) * other + weight * own - weight * (1 - weight) * difference**2
    variances = np.maximum(variances, _LEAST_VARIANCE * np.minimum(own, other))
    variances = np.where(weight == 1, own, variances)
    return replace(
        regressed,
        values=np.where(weight == 1, regressed.values, prediction.values + weight * difference),
        standard_errors=np.sqrt(variances),
        degrees_of_freedom=np.where(weight < 0.5, freedom, regressed.degrees_of_freedom),
    )

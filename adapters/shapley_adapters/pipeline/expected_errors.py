"""Which estimator errs less with which budget: what `best` assumes before it knows the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.exact import MAX_PLAYERS
from ..estimators.least_squares.regression import LeastSquares
from ..estimators.odd_gp.estimator import OddGP
from ..estimators.protocol import Estimator

_EVALUATIONS_EACH = np.array([2.3, 4, 8, 16, 32, 64, 128])
"""Evaluations per player of the tables below."""

_LEARNED = np.array([0.16, 0.10, 0.048, 0.024, 0.0080, 0.0032, 0.0014])
_EQUAL = np.array([0.16, 0.10, 0.055, 0.037, 0.0170, 0.0075, 0.0035])
_LEAST_SQUARES = np.array([0.18, 0.18, 0.109, 0.067, 0.043, 0.028, 0.018])
"""Sum of absolute errors relative to that of the attributions: geometric means over networks with
13 features, and boosted trees with 13, 30 and 60. Only their order matters, and how fast they
fall."""


def expected_error(estimator: Estimator[Any], n_players: int, budget: int) -> float:
    """Return the relative error to expect of a row with so many players; 0 of an exact one."""
    if n_players <= MAX_PLAYERS and budget >= 2**n_players:
        return 0.0
    errors = _LEAST_SQUARES if isinstance(estimator, LeastSquares) else _LEARNED
    if isinstance(estimator, OddGP) and estimator.weights == "equal":
        errors = _EQUAL
    x, xs, ys = np.log(budget / n_players), np.log(_EVALUATIONS_EACH), np.log(errors)
    if x > xs[-1]:  # as the root of the budget, like all errors of random draws
        return float(np.exp(ys[-1] - (x - xs[-1]) / 2))
    return float(np.exp(np.interp(x, xs, ys)) - min(0.0, x - xs[0]))

"""Which estimator errs less with which budget: what `best` assumes before it knows the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.exact import MAX_PLAYERS
from ..estimators.odd_gp.estimator import OddGP
from ..estimators.protocol import Estimator

_N_PLAYERS = np.log([8, 13, 30, 60, 200])
_EVALUATIONS_EACH = np.log([2.3, 4, 8, 16, 32, 64, 128])
"""Numbers of players, and evaluations per player, of the tables below."""

_LEARNED = [
    [0.047, 0.025, 0.0076, 0.0035, 0.0016, 0.0008, 0.0004],
    [0.057, 0.029, 0.0060, 0.0005, 0.000015, 0.0000037, 0.0000021],
    [0.10, 0.066, 0.012, 0.0028, 0.00021, 0.00007, 0.00004],
    [0.076, 0.055, 0.020, 0.0032, 0.00050, 0.00034, 0.00020],
    [0.17, 0.11, 0.058, 0.039, 0.020, 0.010, 0.005],
]
_EQUAL = [
    [0.047, 0.025, 0.015, 0.0030, 0.0015, 0.0008, 0.0004],
    [0.057, 0.031, 0.016, 0.0088, 0.0028, 0.00037, 0.00005],
    [0.094, 0.075, 0.045, 0.030, 0.021, 0.012, 0.0076],
    [0.076, 0.065, 0.038, 0.029, 0.021, 0.014, 0.0095],
    [0.13, 0.13, 0.084, 0.066, 0.046, 0.032, 0.022],
]
_RANDOM_ORDER = [
    [0.078, 0.053, 0.032, 0.020, 0.014, 0.010, 0.007],
    [0.083, 0.054, 0.036, 0.023, 0.015, 0.010, 0.0068],
    [0.12, 0.080, 0.058, 0.039, 0.028, 0.017, 0.013],
    [0.097, 0.066, 0.048, 0.030, 0.021, 0.015, 0.011],
    [0.13, 0.091, 0.062, 0.044, 0.032, 0.024, 0.017],
]
"""Sum of absolute errors relative to that of the attributions, (players, evaluations): geometric
means over boosted trees and sums of waves of four features, whose seeds no benchmark uses. Where
all coalitions or too much time would be needed, the fall of the numbers before goes on more slowly.
Only the order of the numbers matters, and how fast they fall."""


def expected_error(estimator: Estimator[Any], n_players: int, budget: int) -> float:
    """Return the relative error to expect of a row with so many players; 0 of an exact one."""
    if n_players <= MAX_PLAYERS and budget >= 2**n_players:
        return 0.0
    table = _RANDOM_ORDER
    if isinstance(estimator, OddGP):
        table = _EQUAL if estimator.weights == "equal" else _LEARNED
    x, last = np.log(budget / n_players), _EVALUATIONS_EACH[-1]
    of_sizes = [np.interp(x, _EVALUATIONS_EACH, np.log(errors)) for errors in table]
    error = float(np.exp(np.interp(np.log(n_players), _N_PLAYERS, of_sizes)))
    if x > last:  # as the root of the budget, like all errors of random draws
        return error * float(np.exp((last - x) / 2))
    return error - float(min(0.0, x - _EVALUATIONS_EACH[0]))

"""What the model's output does as features come and go in the order of their attributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import checked_choice, checked_count
from ..array_types import CoalitionArray, FloatArray
from ..errors import InvalidArgumentError
from ..games.game import Game
from .game_values import attributions_of_game, own_values
from .orders import ORDERS, counts_of_steps, first_features

_LEAST_PROBABILITY = 1e-15
"""Probabilities count as this far from 0 and 1 at least, which keeps log-odds finite."""


@dataclass(frozen=True)
class Curve:
    """The output against the share of features that came or went.

    Attributes
    ----------
    fractions : array, (T,)
        Shares of the features, from 0 to 1.
    values : array, (R, T) or (R, K, T)
        The output, or what the curve shows of it, for each row.
    """

    fractions: FloatArray
    values: FloatArray

    @property
    def area(self) -> FloatArray:
        """The area under the curve by trapezoids, (R,) or (R, K): a mean of the values."""
        middle = (self.values[..., 1:] + self.values[..., :-1]) / 2
        areas: FloatArray = middle @ np.diff(self.fractions)
        return areas

    @property
    def mean(self) -> FloatArray:
        """The mean over rows, (T,) or (K, T)."""
        means: FloatArray = self.values.mean(axis=0)
        return means

    @property
    def standard_error(self) -> FloatArray:
        """The standard error of that mean; NaN for a single row."""
        n_rows = len(self.values)
        if n_rows == 1:
            return np.full(self.values.shape[1:], np.nan)
        errors: FloatArray = self.values.std(axis=0, ddof=1) / np.sqrt(n_rows)
        return errors


def insertion_curve(
    attributions: Any, game: Game, *, n_steps: int | None = None, order: str = "value"
) -> Curve:
    """Return the output as features come in, the largest attributions first.

    Parameters
    ----------
    attributions : array, tensor or Explanation, (R, M) or (R, K, M)
        Attributions of the game's players, and of all its K outputs.
    game : Game
        The games of the R rows.
    n_steps : int, optional
        In how many steps of about equal size they come; one by one by default.
    order : {"value", "magnitude"}
        What features are ordered by.

    Returns
    -------
    Curve
        Its area is large where few features bring the output up.

    Notes
    -----
    Costs T evaluations for each row and output, T − 1 the number of steps.
    """
    return _curve(attributions, game, n_steps, order, lambda first: first)


def deletion_curve(
    attributions: Any, game: Game, *, n_steps: int | None = None, order: str = "value"
) -> Curve:
    """Return the output as features go, the largest attributions first.

    Parameters and cost are those of `insertion_curve`. The area is small where few features carry
    the output.
    """
    return _curve(attributions, game, n_steps, order, np.logical_not)


def masked_log_odds(
    attributions: Any,
    log_probabilities: Game,
    *,
    n_steps: int | None = None,
    order: str = "value",
) -> Curve:
    """Return the change in log-odds of a class as its largest attributions are masked.

    The measure of Chen et al. (L-Shapley and C-Shapley, ICLR 2019, 5): ln p/(1 − p) of the class
    with the first features masked, less that of the whole row. Lower is better; 0 at the start.

    Parameters
    ----------
    attributions : array, tensor or Explanation, (R, M) or (R, 1, M)
        Attributions of the class.
    log_probabilities : Game
        Games whose one value is the logarithm of the probability of the class, as
        `ValueFunction("log_probability")` makes it.
    n_steps, order
        As in `insertion_curve`.

    Returns
    -------
    Curve
        Probabilities nearer than 10⁻¹⁵ to 0 or 1 count as that near.
    """
    curve = _curve(attributions, log_probabilities, n_steps, order, np.logical_not)
    if (curve.values > 1e-6).any():
        raise InvalidArgumentError(
            f"log_probabilities returned {curve.values.max():.6g}, which is no logarithm of a "
            "probability."
        )
    logs = np.clip(curve.values, np.log(_LEAST_PROBABILITY), 0.0)
    others = np.maximum(-np.expm1(logs), _LEAST_PROBABILITY)
    odds = logs - np.log(others)
    return Curve(curve.fractions, odds - odds[..., :1])


def _curve(attributions: Any, game: Game, n_steps: int | None, order: str, shown: Any) -> Curve:
    values, is_single = attributions_of_game(attributions, game)
    checked_choice("order", order, ORDERS)
    if n_steps is not None:
        checked_count("n_steps", n_steps)
    n_players = values.shape[2]
    counts = counts_of_steps(n_players, n_steps)
    coalitions: CoalitionArray = shown(first_features(values, counts, order))
    found = own_values(game, coalitions)  # (R, K, T)
    return Curve(counts / n_players, found[:, 0] if is_single else found)

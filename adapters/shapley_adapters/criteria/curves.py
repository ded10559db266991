"""Insertion and deletion curves: the output while features join or leave by their attributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import checked_choice, checked_count
from ..array_types import CoalitionArray, FloatArray
from ..errors import InvalidArgumentError
from ..games.game import Game
from .accuracy import ORDERS, counts_of_steps, first_features
from .faithfulness import attributions_of_game, own_values

_LEAST_PROBABILITY = 1e-15
"""Probabilities closer to 0 or 1 than this are clipped to it, which keeps log-odds finite."""


@dataclass(frozen=True)
class Curve:
    """The output against the share of features that joined or left.

    Attributes
    ----------
    fractions : array, (T,)
        Shares of the features, from 0 to 1.
    values : array, (R, T) or (R, K, T)
        The output, or the log-odds, per row.
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
    """Return the output while features join, the largest attributions first.

    Parameters
    ----------
    attributions : array, tensor or Explanation, (R, M) or (R, K, M)
        Attributions of the game's players, and of all its K outputs.
    game : Game
        The games of the R rows.
    n_steps : int, optional
        Number of steps, of about equal size; by default one per feature.
    order : {"value", "magnitude"}
        Whether features are ordered by their attributions or by the absolute values.

    Returns
    -------
    Curve
        Its area is large if a few features raise the output.

    Notes
    -----
    Costs T evaluations per row and output, where T − 1 is the number of steps.
    """
    return _curve(attributions, game, n_steps, order, lambda first: first)


def deletion_curve(
    attributions: Any, game: Game, *, n_steps: int | None = None, order: str = "value"
) -> Curve:
    """Return the output while features leave, the largest attributions first.

    Parameters and cost are those of `insertion_curve`. The area is small if the output depends on
    a few features.
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
    with the first features masked, minus that of the whole row. Lower is better; 0 at the start.

    Parameters
    ----------
    attributions : array, tensor or Explanation, (R, M) or (R, 1, M)
        Attributions of the class.
    log_probabilities : Game
        Games with one value, the logarithm of the probability of the class, such as those of
        `ValueFunction("log_probability")`.
    n_steps, order
        As in `insertion_curve`.

    Returns
    -------
    Curve
        Probabilities are clipped to the range from 10⁻¹⁵ to 1 − 10⁻¹⁵.
    """
    curve = _curve(attributions, log_probabilities, n_steps, order, np.logical_not)
    if (curve.values > 1e-6).any():
        raise InvalidArgumentError(
            f"log_probabilities returned {curve.values.max():.6g}, which is not the logarithm of "
            "a probability."
        )
    logs = np.clip(curve.values, np.log(_LEAST_PROBABILITY), 0.0)
    complements = np.maximum(-np.expm1(logs), _LEAST_PROBABILITY)
    odds = logs - np.log(complements)
    return Curve(curve.fractions, odds - odds[..., :1])


def _curve(
    attributions: Any, game: Game, n_steps: int | None, order: str, to_coalitions: Any
) -> Curve:
    values, is_single = attributions_of_game(attributions, game)
    checked_choice("order", order, ORDERS)
    if n_steps is not None:
        checked_count("n_steps", n_steps)
    n_players = values.shape[2]
    counts = counts_of_steps(n_players, n_steps)
    coalitions: CoalitionArray = to_coalitions(first_features(values, counts, order))
    output_values = own_values(game, coalitions)  # (R, K, T)
    return Curve(counts / n_players, output_values[:, 0] if is_single else output_values)

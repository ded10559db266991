"""Whether attributions agree with the change of the output when features are removed.

By correlations, by the output along a path of removals, and by the area under this curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from ..arguments import checked_choice, checked_count, checked_seed
from ..array_types import CoalitionArray, FloatArray, ValueArray
from ..coalitions.tables import CoalitionTable
from ..errors import InvalidArgumentError
from ..games.evaluation import Evaluator, Request
from ..games.game import Game
from ..workers import one_blas_thread
from .attribution_arrays import ORDERS, checked_attributions, counts_of_steps, first_features

_LEAST_PROBABILITY = 1e-15
"""Probabilities closer to 0 or 1 than this are clipped to it, which keeps log-odds finite."""


def attributions_of_game(attributions: Any, game: Game) -> tuple[FloatArray, bool]:
    """Return the attributions of a game's players as (R, K, M), and whether they had no axis K.

    Raises
    ------
    InvalidArgumentError
        If they are not those of the game's rows and players.
    """
    values = checked_attributions("attributions", attributions)
    is_single = values.ndim == 2
    outputs = values[:, None] if is_single else values
    if outputs.ndim != 3 or (len(outputs), outputs.shape[2]) != (game.n_rows, game.n_players):
        raise InvalidArgumentError(
            f"attributions have shape {values.shape}; the model is explained for {game.n_rows} "
            f"rows and {game.n_players} features, so that ({game.n_rows}, {game.n_players}) is "
            "needed, or outputs between these two."
        )
    return outputs, is_single


def own_values(game: Game, coalitions: CoalitionArray) -> ValueArray:
    """Return the values, (R, K, C), of coalitions, (R, K, C, M), of each row and output."""
    n_rows, n_outputs, n_coalitions, n_players = coalitions.shape
    of_rows = coalitions.reshape(n_rows, n_outputs * n_coalitions, n_players)
    table = CoalitionTable(of_rows, np.full(n_rows, of_rows.shape[1]))
    values = _checked(_evaluated(game, table), n_outputs)
    by_output = values.reshape(n_rows, n_outputs, n_coalitions, n_outputs)
    return np.einsum("rkck->rkc", by_output)


def _evaluated(game: Game, table: CoalitionTable) -> ValueArray:
    (values,) = Evaluator(game)([Request(np.arange(game.n_rows), table)])
    return values


def _checked(values: ValueArray, n_outputs: int) -> ValueArray:
    if values.shape[2] != n_outputs:
        raise InvalidArgumentError(
            f"attributions are of {n_outputs} outputs, but the model has {values.shape[2]}. Pass "
            "the attributions of all outputs, or a model that returns the explained one."
        )
    return values


def faithfulness(
    attributions: Any,
    game: Game,
    *,
    subset_size: int | None = None,
    n_subsets: int = 100,
    seed: int | None = 0,
) -> FloatArray:
    """Return how well sums of attributions correlate with losses of output; higher is better.

    μ_F of Bhatt, Weller and Moura: the Pearson correlation, over random subsets S of one size, of
    Σ_{i∈S} φ_i and v(N) − v(N∖S). With `subset_size=1` the subsets are the single features: SHEAR's
    faithfulness (Wang et al., ICML 2022, 5.3). It is exact if `n_subsets` covers all subsets. The
    exact Shapley values do not reach 1, unless the model is additive.

    Parameters
    ----------
    attributions : array, tensor or Explanation, (R, M) or (R, K, M)
        Attributions of the game's players, and of all its K outputs.
    game : Game
        The games of the R rows.
    subset_size : int, optional
        How many features are removed at a time, from 1 to M − 1; a quarter of them by default.
    n_subsets : int
        How many different subsets are drawn. All rows share them, so that the result of a row does
        not depend on the other rows.
    seed : int or None
        Seed of the draws.

    Returns
    -------
    array, (R,) or (R, K)
        From −1 to 1. It is 0 if all sums or all losses are equal, where no correlation is defined.

    Raises
    ------
    InvalidArgumentError
        If the attributions are not those of the game's players, or no subset has the size.

    Notes
    -----
    Costs `n_subsets` + 1 evaluations per row, at most C(M, size) + 1.
    """
    values, is_single = attributions_of_game(attributions, game)
    n_outputs = values.shape[1]
    subsets, losses = removal_losses(
        game, n_outputs, subset_size=subset_size, n_subsets=n_subsets, seed=checked_seed(seed)
    )
    with one_blas_thread():
        correlations = pearson(values @ subsets.T.astype(float), losses)
    return correlations[:, 0] if is_single else correlations


def monotonicity(attributions: Any, game: Game) -> FloatArray:
    """Return how often a feature adds no more than the feature before it; higher is better.

    SHEAR's monotonicity (Wang et al., ICML 2022, 5.3). Features join in the order of their
    attributions, the largest first. Each gain of v is compared with the next one, M − 1 times. The
    result is the share of comparisons in which the earlier gain is at least as large, up to
    rounding. The exact Shapley values need not reach 1.

    Parameters
    ----------
    attributions : array, tensor or Explanation, (R, M) or (R, K, M)
        Attributions of the game's players, at least two, and of all its K outputs.
    game : Game
        The games of the R rows.

    Returns
    -------
    array, (R,) or (R, K)
        From 0 to 1.

    Notes
    -----
    Costs M + 1 evaluations per row and output.
    """
    values, is_single = attributions_of_game(attributions, game)
    n_players = values.shape[2]
    if n_players < 2:
        raise InvalidArgumentError("attributions are of 1 feature; monotonicity compares several.")
    coalitions = first_features(values, counts_of_steps(n_players, None))
    coalition_values = own_values(game, coalitions)  # (R, K, M + 1)
    gains = np.diff(coalition_values, axis=2)
    shares: FloatArray = (gains[..., 1:] - gains[..., :-1] <= _rounding(coalition_values)).mean(
        axis=2
    )
    return shares[:, 0] if is_single else shares


def removal_losses(
    game: Game,
    n_outputs: int,
    *,
    subset_size: int | None = None,
    n_subsets: int = 100,
    seed: int = 0,
) -> tuple[CoalitionArray, FloatArray]:
    """Return random subsets, (n, M), and the loss of output without each, (R, K, n)."""
    n_players = game.n_players
    if n_players < 2:
        raise InvalidArgumentError("attributions are of 1 feature; faithfulness compares several.")
    size = max(1, n_players // 4) if subset_size is None else subset_size
    checked_count("subset_size", size)
    checked_count("n_subsets", n_subsets, minimum=2)
    if size >= n_players:
        raise InvalidArgumentError(
            f"subset_size must be less than the number of features, {n_players}; got {size}. "
            "There is only one subset of all features, and one point has no correlation."
        )
    subsets = subsets_of_size(n_players, size, n_subsets, seed)
    coalitions = np.concatenate([np.ones((1, n_players), dtype=bool), ~subsets])
    table = CoalitionTable(coalitions[None], np.array([len(coalitions)]))
    values = _checked(_evaluated(game, table), n_outputs)
    losses: FloatArray = np.moveaxis(values[:, :1] - values[:, 1:], 1, 2)
    return subsets, losses


def subsets_of_size(n_players: int, size: int, n_subsets: int, seed: int) -> CoalitionArray:
    """Return different subsets of one size, (n, M): all where `n_subsets` covers them."""
    total = comb(n_players, size)
    rng = np.random.default_rng(seed)
    if total <= 2 * n_subsets:
        members = np.array(list(combinations(range(n_players), size)))
        every_subset = np.zeros((total, n_players), dtype=bool)
        np.put_along_axis(every_subset, members, True, axis=1)
        if total <= n_subsets:
            return every_subset
        return every_subset[rng.permutation(total)[:n_subsets]]
    subsets: CoalitionArray = np.zeros((0, n_players), dtype=bool)
    # At most half of all subsets are needed, so that at least every other draw is a new one.
    while len(subsets) < n_subsets:
        ranks = rng.random((n_subsets, n_players)).argsort(axis=1)
        subsets = _distinct(np.concatenate([subsets, ranks < size]))
    return subsets[:n_subsets]


def pearson(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the correlation along the last axis; 0 where one side is constant."""
    centred = [x - x.mean(axis=-1, keepdims=True) for x in (a, b)]
    norms = [np.linalg.norm(x, axis=-1) for x in centred]
    # Equal numbers differ by rounding after centring; this does not count as variation.
    rounding = 16 * np.finfo(float).eps
    sizes = [np.linalg.norm(x, axis=-1) * rounding for x in (a, b)]
    varies = (norms[0] > sizes[0]) & (norms[1] > sizes[1])
    products = np.where(varies, norms[0] * norms[1], 1.0)
    correlation: FloatArray = np.where(varies, (centred[0] * centred[1]).sum(axis=-1), 0) / products
    return np.clip(correlation, -1.0, 1.0)


def _rounding(values: FloatArray) -> FloatArray:
    """Return a bound of the rounding error of differences along the last axis, (…, 1).

    If all numbers fit into single precision, the model computes in single precision.
    """
    with np.errstate(over="ignore"):
        is_single = (values == values.astype(np.float32)).all(axis=-1, keepdims=True)
    precision = np.where(is_single, np.finfo(np.float32).eps, np.finfo(np.float64).eps)
    return 16 * precision * np.abs(values).max(axis=-1, keepdims=True)


def _distinct(subsets: CoalitionArray) -> CoalitionArray:
    _, first = np.unique(subsets, axis=0, return_index=True)
    return subsets[np.sort(first)]


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
        return middle @ np.diff(self.fractions)

    @property
    def mean(self) -> FloatArray:
        """The mean over rows, (T,) or (K, T)."""
        return self.values.mean(axis=0)

    @property
    def standard_error(self) -> FloatArray:
        """The standard error of that mean; NaN for a single row."""
        n_rows = len(self.values)
        if n_rows == 1:
            return np.full(self.values.shape[1:], np.nan)
        return self.values.std(axis=0, ddof=1) / np.sqrt(n_rows)


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

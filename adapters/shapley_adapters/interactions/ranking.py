"""Which pairs interact in a data set, and in which rows, with a bounded rate of false discoveries.

Each row gives each pair a p-value: how likely a posterior mean so far from 0 would be, in units of
its standard error, without an interaction. Student's distribution gives it, as it gives the
intervals, and it is 1 for an interaction that may be rounding. A pair interacts if it does so in
some row. Its p-value is the smallest of its rows times their number (Bonferroni), which is right
however the errors of the rows depend on each other, as they do if rows share coalitions. Benjamini
and Hochberg, Controlling the False Discovery Rate, 1995, turn p-values into q-values.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # which loads its submodules where they are used

from ..arguments import checked_probability
from ..array_types import BoolArray, FloatArray, IntArray
from ..errors import InvalidArgumentError
from .result import pairs_of

_ROUNDING = 1e-9
"""Interactions below this, relative to the values of the game, are rounding of our own work."""

_MODEL_ROUNDINGS = 32.0
"""The same for the rounding of the model, as a multiple of its relative rounding error."""


@dataclass(frozen=True)
class PairRanking:
    """Pairs of features, those with the strongest interactions first.

    Attributes
    ----------
    names : list of tuples of str
        The names of both features of each pair.
    pairs : array, (P, 2)
        Their numbers.
    mean_absolute, mean, standard_errors : arrays, (P,)
        The means over rows of the interaction's size and of the interaction, and the standard
        error of the latter. The errors of the rows may have any dependence.
    p_values, q_values : arrays, (P,)
        The p-value of no interaction in any row, and the q-value: the smallest rate of false
        discoveries at which the pair is among the discoveries.
    rate : float
        The rate of false discoveries at which rows are discovered.
    in_rows : array, (P, R)
        In which rows the pair interacts, at this rate over all pairs and rows.
    """

    names: list[tuple[str, str]]
    pairs: IntArray
    mean_absolute: FloatArray
    mean: FloatArray
    standard_errors: FloatArray
    p_values: FloatArray
    q_values: FloatArray
    rate: float
    in_rows: BoolArray

    @property
    def n_discoveries(self) -> int:
        """The number of pairs that interact in some row, at the rate of false discoveries."""
        return int((self.q_values <= self.rate).sum())

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each pair."""
        pandas = importlib.import_module("pandas")
        return pandas.DataFrame(
            {
                "first": [first for first, _ in self.names],
                "second": [second for _, second in self.names],
                "mean_absolute": self.mean_absolute,
                "mean": self.mean,
                "standard_error": self.standard_errors,
                "p_value": self.p_values,
                "q_value": self.q_values,
                "n_rows": self.in_rows.sum(axis=1),
            }
        )


def rank_pairs(
    values: FloatArray,
    standard_errors: FloatArray,
    names: Sequence[str] | None = None,
    rate: float = 0.05,
    *,
    freedom: FloatArray,
    rounding: FloatArray,
) -> PairRanking:
    """Rank pairs by the mean size of their interaction over rows.

    Parameters
    ----------
    values, standard_errors : arrays, (R, P)
        The interactions of all pairs, in the order of `PairInteractions`, and their errors.
    names : sequence of str, optional
        Names of the M players.
    rate : float
        The rate of false discoveries, between 0 and 1.
    freedom : array, (R, P)
        Degrees of freedom of the standard errors; infinite for normal errors.
    rounding : array, (R,)
        The size up to which an interaction of a row may be rounding; see `rounding_of_rows`.

    Returns
    -------
    PairRanking
        The pairs in the order of their mean size; none for one player.
    """
    checked_probability("rate", rate)
    n_players = round((1 + float(np.sqrt(1 + 8 * values.shape[1]))) / 2)  # that have so many pairs
    if names is not None and len(names) != n_players:
        raise InvalidArgumentError(
            f"names holds {len(names)} names, but the interactions are those of {n_players} "
            "players."
        )
    labels = [f"Feature {player}" for player in range(n_players)] if names is None else names
    mean_absolute = np.abs(values).mean(axis=0)
    order = np.argsort(-mean_absolute, kind="stable")
    of_rows = _p_values(values, standard_errors, freedom, rounding)[:, order]
    of_pairs = np.minimum(1.0, len(values) * of_rows.min(axis=0))
    pairs = np.stack(pairs_of(n_players), axis=1)[order]
    return PairRanking(
        names=[(str(labels[first]), str(labels[second])) for first, second in pairs],
        pairs=pairs,
        mean_absolute=mean_absolute[order],
        mean=values.mean(axis=0)[order],
        standard_errors=standard_errors.mean(axis=0)[order],
        p_values=of_pairs,
        q_values=_q_values(of_pairs),
        rate=rate,
        in_rows=(_q_values(of_rows) <= rate).T,
    )


def rounding_of_rows(
    attributions: FloatArray, empty_values: FloatArray, relative: float
) -> FloatArray:
    """Return the size up to which an interaction of each row may be rounding, (R,).

    An interaction is a difference of values, so that its rounding has their size, not its own. In
    an additive game, all interactions are rounding.

    Parameters
    ----------
    attributions : array, (R, M)
        The attributions of each row.
    empty_values : array, (R,)
        The value of the empty coalition of each row.
    relative : float
        The relative rounding error of the model's output; 0 where it is unknown.
    """
    # In an additive game, no value is larger than this sum.
    sizes = np.abs(empty_values) + np.abs(attributions).sum(axis=1)
    return max(_ROUNDING, _MODEL_ROUNDINGS * relative) * sizes


def _p_values(
    values: FloatArray, standard_errors: FloatArray, freedom: FloatArray, rounding: FloatArray
) -> FloatArray:
    """Return the two-sided p-value of each interaction, (R, P)."""
    if np.isnan(standard_errors).any():
        raise InvalidArgumentError(
            "The interactions have no standard errors, so that they have no p-values. Pass a "
            "budget with which the estimator has errors, or use the algorithm 'oddgp'."
        )
    sizes = np.abs(values)
    is_exact = standard_errors == 0
    distances = sizes / np.where(is_exact, 1.0, standard_errors)
    is_normal = np.isinf(freedom)
    tails = np.where(
        is_normal,
        scipy.special.ndtr(-distances),
        scipy.special.stdtr(np.where(is_normal, 1.0, freedom), -distances),
    )
    p_values = np.where(is_exact, 0.0, 2 * tails)
    return np.where(sizes <= rounding[:, None], 1.0, p_values)


def _q_values(p_values: FloatArray) -> FloatArray:
    """Return the q-values of all entries together, in the shape of the p-values."""
    if not p_values.size:
        return p_values
    q_values: FloatArray = scipy.stats.false_discovery_control(p_values.ravel())
    return q_values.reshape(p_values.shape)

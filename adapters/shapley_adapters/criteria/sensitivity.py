"""How much explanations differ among neighbours that the model treats alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..arguments import checked_choice, checked_count, checked_flag, checked_seed
from ..array_types import FloatArray
from ..errors import InvalidArgumentError
from .attribution_arrays import check_same_shape, checked_attributions
from .neighbourhoods import NORM_ORDERS, Neighbourhood, explained_neighbours

Distance: TypeAlias = str | Callable[[FloatArray, FloatArray], FloatArray]
"""A norm of the difference, or a function of two arrays (…, M) that returns (…)."""


@dataclass(frozen=True)
class Sensitivity:
    """How far the explanations of neighbours lie from those of the rows.

    Attributes
    ----------
    maximum, average : array, (R,) or (R, K)
        μ_M and μ_A; NaN for rows without neighbours.
    n_neighbours : array, (R,)
        How many neighbours there were.
    """

    maximum: FloatArray
    average: FloatArray
    n_neighbours: Any


def sensitivity(
    attributions: Any,
    of_neighbours: Any,
    kept: Any = None,
    *,
    distance: Distance = "l2",
    relative: bool = False,
) -> Sensitivity:
    """Return the largest and the mean distance from explanations to those of neighbours.

    Max and average sensitivity of Bhatt, Weller and Moura, μ_M and μ_A; less is better.

    Parameters
    ----------
    attributions : array, tensor or Explanation, (R, M) or (R, K, M)
        Explanations of the rows.
    of_neighbours : array or tensor, (R, n, M) or (R, n, K, M)
        Those of n neighbours of each.
    kept : array of bool, (R, n), optional
        Which neighbours count; all by default.
    distance : {"l2", "l1", "linf"} or callable
        The distance between explanations; a function gets two arrays (…, M) and returns (…).
    relative : bool
        Whether distances are divided by the size of the row's explanation, as
        `captum.metrics.sensitivity_max` does: its distance from zero.

    Returns
    -------
    Sensitivity
        In the units of the attributions, unless `relative`. No evaluations of the model.
    """
    values = checked_attributions("attributions", attributions)
    others = checked_attributions("of_neighbours", of_neighbours)
    checked_flag("relative", relative)
    check_same_shape("attributions", values, "of_neighbours[:, 0]", others[:, 0])
    counted = np.ones(others.shape[:2], dtype=bool) if kept is None else np.asarray(kept)
    if counted.shape != others.shape[:2] or counted.dtype != bool:
        raise InvalidArgumentError(
            f"kept must be bools of shape {others.shape[:2]}; got {counted.shape} of "
            f"{counted.dtype}."
        )
    measure = distance_function(distance)
    here = values[:, None]
    away = measure(np.broadcast_to(here, others.shape), others)  # (R, n) or (R, n, K)
    if relative:
        away = away / _sizes(measure, values)[:, None]
    mask = counted.reshape(counted.shape + (1,) * (away.ndim - 2))
    n_kept = counted.sum(axis=1)
    share = n_kept.reshape((-1,) + (1,) * (away.ndim - 2))
    with np.errstate(invalid="ignore"):  # 0 / 0 of rows without neighbours is NaN, as announced
        average = np.where(mask, away, 0.0).sum(axis=1) / share
    maximum = np.where(share > 0, np.where(mask, away, -np.inf).max(axis=1), np.nan)
    return Sensitivity(maximum, average, n_kept)


def measured_sensitivity(
    explain: Callable[..., Any],
    predict: Callable[[FloatArray], Any],
    rows: Any,
    neighbourhood: Neighbourhood,
    *,
    distance: Distance = "l2",
    relative: bool = False,
    seed: int | None = 0,
    rows_per_call: int = 1000,
    with_owners: bool = False,
) -> Sensitivity:
    """Find neighbours, explain those that keep the prediction, and return the sensitivity.

    Parameters
    ----------
    explain : callable
        Rows (n, …) to explanations (n, M) or (n, K, M).
    predict : callable
        Rows (n, …) to outputs (n,) or (n, K), by which neighbours are kept.
    rows : array, (R, …)
        The rows.
    neighbourhood : Neighbourhood
        Where and how neighbours are found.
    distance, relative
        As in `sensitivity`.
    seed : int or None
        Seed of the draws.
    rows_per_call : int
        How many rows `explain` gets at once; all counted neighbours are explained.
    with_owners : bool
        Whether `explain` gets a second argument, (n,): of which of the R rows each is a neighbour,
        to be explained for the same target.

    Returns
    -------
    Sensitivity
        Rows without neighbours get NaN, with a warning.

    Notes
    -----
    Costs the explanations of R rows and of their neighbours.
    """
    found = explained_neighbours(
        explain,
        predict,
        rows,
        neighbourhood,
        seed=checked_seed(seed),
        rows_per_call=checked_count("rows_per_call", rows_per_call),
        with_owners=with_owners,
    )
    return sensitivity(*found, distance=distance, relative=relative)


def distance_function(distance: Distance) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Return the function of two arrays (…, M) that a user names or passes."""
    if callable(distance):
        return distance
    order = NORM_ORDERS[checked_choice("distance", distance, tuple(NORM_ORDERS))]

    def norm(a: FloatArray, b: FloatArray) -> FloatArray:
        lengths: FloatArray = np.linalg.norm(a - b, ord=order, axis=-1)
        return lengths

    return norm


def _sizes(
    measure: Callable[[FloatArray, FloatArray], FloatArray], values: FloatArray
) -> FloatArray:
    sizes = measure(values, np.zeros_like(values))
    if (sizes == 0).any():
        raise InvalidArgumentError(
            f"relative=True divides by the size of each explanation, but that of row "
            f"{int(np.argwhere(sizes == 0)[0][0])} is zero. Pass relative=False."
        )
    return sizes

"""How much explanations differ between neighbours with the same prediction."""

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
    """Distances between the explanations of rows and those of their neighbours.

    Attributes
    ----------
    maximum, average : array, (R,) or (R, K)
        μ_M and μ_A; NaN for rows without neighbours.
    n_neighbours : array, (R,)
        Number of neighbours.
    """

    maximum: FloatArray
    average: FloatArray
    n_neighbours: Any


def sensitivity(
    attributions: Any,
    of_neighbours: Any,
    is_neighbour: Any = None,
    *,
    distance: Distance = "l2",
    relative: bool = False,
) -> Sensitivity:
    """Return the largest and the mean distance from explanations to those of neighbours.

    Max and average sensitivity of Bhatt, Weller and Moura, μ_M and μ_A; lower is better.

    Parameters
    ----------
    attributions : array, tensor or Explanation, (R, M) or (R, K, M)
        Explanations of the rows.
    of_neighbours : array or tensor, (R, n, M) or (R, n, K, M)
        Explanations of n neighbours of each row.
    is_neighbour : array of bool, (R, n), optional
        Which of them count; all by default.
    distance : {"l2", "l1", "linf"} or callable
        The distance between explanations; a function takes two arrays (…, M) and returns (…).
    relative : bool
        Whether distances are divided by the distance of the row's explanation from zero, as
        `captum.metrics.sensitivity_max` does.

    Returns
    -------
    Sensitivity
        In the units of the attributions, unless `relative`. No evaluations of the model.
    """
    values = checked_attributions("attributions", attributions)
    neighbour_values = checked_attributions("of_neighbours", of_neighbours)
    checked_flag("relative", relative)
    check_same_shape(values, "of_neighbours[:, 0]", neighbour_values[:, 0])
    is_counted = (
        np.ones(neighbour_values.shape[:2], dtype=bool)
        if is_neighbour is None
        else np.asarray(is_neighbour)
    )
    if is_counted.shape != neighbour_values.shape[:2] or is_counted.dtype != bool:
        raise InvalidArgumentError(
            f"is_neighbour must be bools of shape {neighbour_values.shape[:2]}; got "
            f"{is_counted.shape} of {is_counted.dtype}."
        )
    measure = distance_function(distance)
    row_values = values[:, None]
    distances = measure(
        np.broadcast_to(row_values, neighbour_values.shape), neighbour_values
    )  # (R, n) or (R, n, K)
    if relative:
        distances = distances / _sizes(measure, values)[:, None]
    mask = is_counted.reshape(is_counted.shape + (1,) * (distances.ndim - 2))
    n_neighbours = is_counted.sum(axis=1)
    share = n_neighbours.reshape((-1,) + (1,) * (distances.ndim - 2))
    with np.errstate(invalid="ignore"):  # 0 / 0 of rows without neighbours is NaN, as documented
        average = np.where(mask, distances, 0.0).sum(axis=1) / share
    maximum = np.where(share > 0, np.where(mask, distances, -np.inf).max(axis=1), np.nan)
    return Sensitivity(maximum, average, n_neighbours)


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
    """Draw neighbours, explain those that keep the prediction, and return the sensitivity.

    Parameters
    ----------
    explain : callable
        Takes rows (n, …), returns explanations (n, M) or (n, K, M).
    predict : callable
        Takes rows (n, …), returns outputs (n,) or (n, K). They decide which neighbours count.
    rows : array, (R, …)
        The rows.
    neighbourhood : Neighbourhood
        How neighbours are drawn, and which of them count.
    distance, relative
        As in `sensitivity`.
    seed : int or None
        Seed of the draws.
    rows_per_call : int
        How many rows are passed to `explain` at once.
    with_owners : bool
        Whether `explain` takes a second argument, (n,): the index of the row whose neighbour each
        point is. A neighbour must be explained for the same target as its row.

    Returns
    -------
    Sensitivity
        Rows without neighbours get NaN, with a warning.

    Notes
    -----
    Costs the explanations of R rows and of their neighbours.
    """
    explanations = explained_neighbours(
        explain,
        predict,
        rows,
        neighbourhood,
        seed=checked_seed(seed),
        rows_per_call=checked_count("rows_per_call", rows_per_call),
        with_owners=with_owners,
    )
    return sensitivity(*explanations, distance=distance, relative=relative)


def distance_function(distance: Distance) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Return the distance as a function of two arrays (…, M)."""
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
            f"relative=True divides by the size of each explanation, but the explanation of row "
            f"{int(np.argwhere(sizes == 0)[0][0])} is zero. Pass relative=False."
        )
    return sizes

"""How much explanations differ between neighbours with the same prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..arguments import (
    check_unmasked,
    checked_choice,
    checked_count,
    checked_flag,
    checked_number,
    checked_seed,
)
from ..array_types import BoolArray, FloatArray
from ..errors import InvalidArgumentError, ModelOutputError, warn_user
from ..torch_support.tensor_arrays import array_of
from .attribution_arrays import check_same_shape, checked_attributions

NORM_ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}


@dataclass(frozen=True)
class Neighbourhood:
    """Which points count as neighbours of a row, N_r of Bhatt, Weller and Moura.

    Attributes
    ----------
    radius : float
        The largest distance of a neighbour.
    norm : {"linf", "l2"}
        The norm of the distance: neighbours are drawn uniformly from a cube or a ball.
    n_draws : int
        How many points are drawn per row; all rows share the same steps.
    keep : "class", "all", or float
        Which points count. `"class"`: those with the same largest output as the row. A number:
        those for which no output differs from the row's by more than this. `"all"`: all.
    columns : array of bool, optional
        Which numbers of a row, flattened, may change; all by default. Set the columns of
        categories to False.
    points : array, (D, …), optional
        Points to use instead of draws. Those within the radius are the neighbours, except the row
        itself.
    """

    radius: float
    norm: str = "linf"
    n_draws: int = 10
    keep: Any = "class"
    columns: Any = None
    points: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        what = "positive and finite"
        checked_number("radius", self.radius, what, lambda radius: 0 < radius < np.inf)
        checked_choice("norm", self.norm, ("linf", "l2"))
        checked_count("n_draws", self.n_draws)
        if isinstance(self.keep, str):
            checked_choice("keep", self.keep, ("class", "all"))
        else:
            what = (
                "'class', 'all', or the largest difference of outputs that is still the same "
                "prediction, not negative"
            )
            checked_number("keep", self.keep, what, lambda difference: difference >= 0)

    def around(self, rows: FloatArray, seed: int) -> tuple[FloatArray, BoolArray]:
        """Return points around rows, (R, F), as (R, n, F), and which lie within the radius."""
        if self.points is not None:
            return self._points_within(rows)
        steps = self._steps(rows.shape[1], np.random.default_rng(seed))
        return rows[:, None] + steps, np.ones((len(rows), self.n_draws), dtype=bool)

    def keeps_prediction(self, outputs: FloatArray, of_neighbours: FloatArray) -> BoolArray:
        """Return which neighbours keep the prediction, (R, n), by outputs (R, K) and (R, n, K)."""
        if self.keep == "all":
            return np.ones(of_neighbours.shape[:2], dtype=bool)
        if self.keep == "class":
            if outputs.shape[1] == 1:
                raise InvalidArgumentError(
                    "keep='class' needs an output for each class, but the model has one output. "
                    "Pass the largest difference of outputs that is still the same prediction, "
                    "such as keep=0.1, or pass keep='all'."
                )
            return of_neighbours.argmax(axis=2) == outputs.argmax(axis=1)[:, None]
        return (np.abs(of_neighbours - outputs[:, None]) <= self.keep).all(axis=2)

    def _steps(self, n_numbers: int, rng: np.random.Generator) -> FloatArray:
        movable = np.ones(n_numbers, dtype=bool)
        if self.columns is not None:
            movable = np.asarray(self.columns)
            if movable.dtype != bool or movable.shape != (n_numbers,) or not movable.any():
                raise InvalidArgumentError(
                    f"columns must be {n_numbers} bools, at least one of them True; got shape "
                    f"{movable.shape} of {movable.dtype}."
                )
        steps = np.zeros((self.n_draws, n_numbers))
        n_movable = int(movable.sum())
        if self.norm == "linf":
            steps[:, movable] = rng.uniform(-1, 1, size=(self.n_draws, n_movable))
        else:
            direction = rng.normal(size=(self.n_draws, n_movable))
            direction /= np.linalg.norm(direction, axis=1, keepdims=True)
            steps[:, movable] = direction * rng.random((self.n_draws, 1)) ** (1 / n_movable)
        return float(self.radius) * steps

    def _points_within(self, rows: FloatArray) -> tuple[FloatArray, BoolArray]:
        check_unmasked("points", self.points)
        points = np.asarray(self.points, dtype=np.float64)
        points = points.reshape(len(points), -1)
        if points.shape[1] != rows.shape[1]:
            raise InvalidArgumentError(
                f"points hold {points.shape[1]} numbers each, but rows hold {rows.shape[1]}."
            )
        order = NORM_ORDERS[self.norm]
        distances = np.array([np.linalg.norm(points - row, ord=order, axis=1) for row in rows])
        is_within = (distances <= self.radius) & (distances > 0)
        n_most = max(1, int(is_within.sum(axis=1).max()))
        # Points within the radius first; the rest is padding.
        indices = np.argsort(~is_within, axis=1, kind="stable")[:, :n_most]
        return points[indices], np.take_along_axis(is_within, indices, axis=1)


class ExplainedNeighbours(NamedTuple):
    """Explanations of rows and of their neighbours.

    Attributes
    ----------
    rows : array, (R, …)
        Explanations of the rows.
    neighbours : array, (R, n, …)
        Explanations of their neighbours; 0 for points that do not count.
    is_neighbour : array, (R, n)
        Which points count.
    """

    rows: FloatArray
    neighbours: FloatArray
    is_neighbour: BoolArray


def explained_neighbours(
    explain: Callable[..., Any],
    predict: Callable[[FloatArray], Any],
    rows: Any,
    neighbourhood: Neighbourhood,
    *,
    seed: int,
    rows_per_call: int = 1000,
    with_owners: bool = False,
) -> ExplainedNeighbours:
    """Explain rows and those neighbours that keep the prediction; see `measured_sensitivity`."""
    row_array = np.asarray(rows, dtype=np.float64)
    if row_array.ndim < 2 or not row_array.size:
        raise InvalidArgumentError(
            f"rows have the shape {row_array.shape}; rows and features are needed. For one row "
            "pass X[None]."
        )
    drawn_points, is_neighbour = _neighbours(predict, row_array, neighbourhood, seed)

    def explained_in_parts(points: FloatArray, owners: Any) -> list[FloatArray]:
        starts = range(0, len(points), rows_per_call)
        explanations = []
        for part in [slice(start, start + rows_per_call) for start in starts]:
            batch = points[part].copy()  # models may write into their input
            attributions = explain(batch, owners[part]) if with_owners else explain(batch)
            explanations.append(checked_attributions("explanations", attributions))
        return explanations

    explained = np.concatenate(explained_in_parts(row_array, np.arange(len(row_array))))
    neighbours = drawn_points[is_neighbour].reshape(-1, *row_array.shape[1:])
    neighbour_values = np.zeros((*drawn_points.shape[:2], *explained.shape[1:]))
    of_neighbours = explained_in_parts(neighbours, np.nonzero(is_neighbour)[0])
    if of_neighbours:
        neighbour_values[is_neighbour] = np.concatenate(of_neighbours)
    return ExplainedNeighbours(explained, neighbour_values, is_neighbour)


def _neighbours(
    predict: Callable[[FloatArray], Any],
    rows: FloatArray,
    neighbourhood: Neighbourhood,
    seed: int,
) -> tuple[FloatArray, BoolArray]:
    """Return points, (R, n, F), and which of them count; warn about rows without neighbours."""
    flat = rows.reshape(len(rows), -1)
    points, is_neighbour = neighbourhood.around(flat, seed)
    if neighbourhood.keep != "all":
        shaped = points.reshape(-1, *rows.shape[1:])
        of_points = _outputs(predict, shaped).reshape(*points.shape[:2], -1)
        outputs = _outputs(predict, rows)
        is_neighbour = is_neighbour & neighbourhood.keeps_prediction(outputs, of_points)
    rows_without = np.flatnonzero(~is_neighbour.any(axis=1))
    if len(rows_without):
        warn_user(
            f"{len(rows_without)} of {len(rows)} rows, such as row {rows_without[0]}, have no "
            f"neighbour within the radius {neighbourhood.radius} that keeps the prediction; their "
            "sensitivity is NaN. Draw more, or change the radius."
        )
    return points, is_neighbour


def _outputs(predict: Callable[[FloatArray], Any], rows: FloatArray) -> FloatArray:
    # Copies: models may write into their input, and reuse the memory of their output.
    outputs = np.array(array_of(predict(rows.copy())), dtype=np.float64)
    if outputs.ndim == 0 or len(outputs) != len(rows):
        raise ModelOutputError(
            f"predict must return one entry for each of its {len(rows)} rows; its output has "
            f"shape {outputs.shape}."
        )
    return outputs.reshape(len(rows), -1)


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
        return np.linalg.norm(a - b, ord=order, axis=-1)

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

"""Neighbours of rows that keep the model's prediction, and their explanations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..arguments import check_unmasked, checked_choice, checked_count, checked_number
from ..array_types import BoolArray, FloatArray
from ..errors import (
    InvalidArgumentError,
    ModelOutputError,
    warn_user,
)
from ..torch_support.tensor_arrays import array_of
from .attribution_arrays import checked_attributions

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
            keeps_class: BoolArray = of_neighbours.argmax(axis=2) == outputs.argmax(axis=1)[:, None]
            return keeps_class
        keeps_outputs: BoolArray = (np.abs(of_neighbours - outputs[:, None]) <= self.keep).all(
            axis=2
        )
        return keeps_outputs

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

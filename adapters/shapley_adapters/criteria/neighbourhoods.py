"""Points near a row, and what is said of those that the model treats like the row."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..arguments import check_unmasked, checked_choice, checked_count
from ..array_types import BoolArray, FloatArray
from ..errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    warn_user,
)
from ..torch_support.tensor_arrays import array_of
from .attribution_arrays import checked_attributions

NORM_ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}


@dataclass(frozen=True)
class Neighbourhood:
    """Which points near a row count as its neighbours, N_r of Bhatt, Weller and Moura.

    Attributes
    ----------
    radius : float
        How far neighbours may be.
    norm : {"linf", "l2"}
        Of what distance: neighbours are drawn uniformly from a cube or a ball.
    n_draws : int
        How many are drawn for each row; the same steps are taken from all rows.
    keep : "class", "all", or float
        Which of them count. `"class"`: those for which the largest output is the same. A number:
        those for which no output differs by more. `"all"`: all.
    columns : array of bool, optional
        Which numbers of a row, flattened, may change; all by default. Leave out those that stand
        for categories.
    points : array, (D, …), optional
        Points of which those within the radius are the neighbours, a row itself excepted, in place
        of draws.
    """

    radius: float
    norm: str = "linf"
    n_draws: int = 10
    keep: Any = "class"
    columns: Any = None
    points: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.radius, bool) or not isinstance(self.radius, numbers.Real):
            raise InvalidArgumentTypeError(f"radius must be a number; got {self.radius!r}.")
        if not 0 < float(self.radius) < np.inf:
            raise InvalidArgumentError(f"radius must be positive and finite; got {self.radius!r}.")
        checked_choice("norm", self.norm, ("linf", "l2"))
        checked_count("n_draws", self.n_draws)
        is_number = isinstance(self.keep, numbers.Real) and not isinstance(self.keep, bool)
        if isinstance(self.keep, str):
            checked_choice("keep", self.keep, ("class", "all"))
        elif not is_number or not self.keep >= 0:
            raise InvalidArgumentError(
                "keep must be 'class', 'all', or the largest difference of outputs that counts as "
                f"none, not negative; got {self.keep!r}."
            )

    def around(self, rows: FloatArray, seed: int) -> tuple[FloatArray, BoolArray]:
        """Return points near each row, (R, n, F), of rows, (R, F), and which are near enough."""
        if self.points is not None:
            return self._given(rows)
        steps = self._steps(rows.shape[1], np.random.default_rng(seed))
        return rows[:, None] + steps, np.ones((len(rows), self.n_draws), dtype=bool)

    def kept(self, outputs: FloatArray, of_neighbours: FloatArray) -> BoolArray:
        """Tell which neighbours keep the prediction, (R, n), of outputs (R, K) and (R, n, K)."""
        if self.keep == "all":
            return np.ones(of_neighbours.shape[:2], dtype=bool)
        if self.keep == "class":
            if outputs.shape[1] == 1:
                raise InvalidArgumentError(
                    "keep='class' needs an output for each class, but the model has one output. "
                    "Pass the difference of outputs that counts as none, such as keep=0.1; or "
                    "keep='all'."
                )
            same: BoolArray = of_neighbours.argmax(axis=2) == outputs.argmax(axis=1)[:, None]
            return same
        near: BoolArray = (np.abs(of_neighbours - outputs[:, None]) <= self.keep).all(axis=2)
        return near

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

    def _given(self, rows: FloatArray) -> tuple[FloatArray, BoolArray]:
        check_unmasked("points", self.points)
        points = np.asarray(self.points, dtype=np.float64)
        points = points.reshape(len(points), -1)
        if points.shape[1] != rows.shape[1]:
            raise InvalidArgumentError(
                f"points hold {points.shape[1]} numbers each, but rows hold {rows.shape[1]}."
            )
        order = NORM_ORDERS[self.norm]
        away = np.array([np.linalg.norm(points - row, ord=order, axis=1) for row in rows])
        near = (away <= self.radius) & (away > 0)
        n_most = max(1, int(near.sum(axis=1).max()))
        # The near ones first; the rest is padding.
        places = np.argsort(~near, axis=1, kind="stable")[:, :n_most]
        return points[places], np.take_along_axis(near, places, axis=1)


class ExplainedNeighbours(NamedTuple):
    """Explanations of rows and of their neighbours.

    Attributes
    ----------
    rows : array, (R, …)
        What `explain` says of the rows.
    neighbours : array, (R, n, …)
        What it says of their neighbours; 0 for those that do not count.
    kept : array, (R, n)
        Which neighbours count.
    """

    rows: FloatArray
    neighbours: FloatArray
    kept: BoolArray


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
    """Find neighbours that keep the prediction and explain them, see `measured_sensitivity`."""
    given = np.asarray(rows, dtype=np.float64)
    near, counted = _counted_neighbours(predict, given, neighbourhood, seed)

    def explained_in_parts(points: FloatArray, owners: Any) -> list[FloatArray]:
        starts = range(0, len(points), rows_per_call)
        found = []
        for part in [slice(start, start + rows_per_call) for start in starts]:
            own = points[part].copy()  # what is explained may be written into
            made = explain(own, owners[part]) if with_owners else explain(own)
            found.append(checked_attributions("explanations", made))
        return found

    explained = np.concatenate(explained_in_parts(given, np.arange(len(given))))
    chosen = near[counted].reshape(-1, *given.shape[1:])
    others = np.zeros((*near.shape[:2], *explained.shape[1:]))
    of_neighbours = explained_in_parts(chosen, np.nonzero(counted)[0])
    if of_neighbours:
        others[counted] = np.concatenate(of_neighbours)
    return ExplainedNeighbours(explained, others, counted)


def _counted_neighbours(
    predict: Callable[[FloatArray], Any],
    rows: FloatArray,
    neighbourhood: Neighbourhood,
    seed: int,
) -> tuple[FloatArray, BoolArray]:
    """Return neighbours, (R, n, F), and which of them count; warn of rows without any."""
    flat = rows.reshape(len(rows), -1)
    near, counted = neighbourhood.around(flat, seed)
    if neighbourhood.keep != "all":
        shaped = near.reshape(-1, *rows.shape[1:])
        of_near = _outputs(predict, shaped).reshape(*near.shape[:2], -1)
        counted = counted & neighbourhood.kept(_outputs(predict, rows), of_near)
    alone = np.flatnonzero(~counted.any(axis=1))
    if len(alone):
        warn_user(
            f"{len(alone)} of {len(rows)} rows, such as row {alone[0]}, have no neighbour within "
            f"the radius {neighbourhood.radius} that keeps the prediction; their sensitivity is "
            "NaN. Draw more, or change the radius."
        )
    return near, counted


def _outputs(predict: Callable[[FloatArray], Any], rows: FloatArray) -> FloatArray:
    # Copies: models may write into their input, and reuse the memory of their output.
    outputs = np.array(array_of(predict(rows.copy())), dtype=np.float64)
    if outputs.ndim == 0 or len(outputs) != len(rows):
        raise ModelOutputError(
            f"predict must return one entry for each of its {len(rows)} rows; its output has "
            f"shape {outputs.shape}."
        )
    return outputs.reshape(len(rows), -1)

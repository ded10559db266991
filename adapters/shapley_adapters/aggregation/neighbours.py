"""AVA, the aggregate valuation of antecedents: a row explained by its neighbours' explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import scipy  # which loads its submodules where they are used

from ..arguments import checked_choice, checked_count, checked_flag, checked_number
from ..array_types import FloatArray, IntArray
from ..constructors import write_constructor
from ..errors import InvalidArgumentError, InvalidArgumentTypeError

_DEFAULT_NEIGHBORS = 10

_MOST_NUMBERS = 2**23
"""Largest number of distances computed at once, 64 MiB."""


@dataclass(frozen=True)
class Neighbours:
    """The nearest points of some rows.

    Attributes
    ----------
    indices : array, (R, k)
        Indices of the points, the nearest first.
    distances : array, (R, k)
        Their distances.
    weights : array, (R, k)
        Their weights.
    """

    indices: IntArray
    distances: FloatArray
    weights: FloatArray


@write_constructor
class NeighbourSearch:
    """A row explained by its nearest rows (AVA): how these are searched, and weighted.

    Σ_z φ(v_z) / ρ(x, z) over the k nearest rows z of the data (Bhatt, Weller and Moura, Evaluating
    and aggregating feature-based model explanations). Rows at a small distance share most of their
    neighbours, so their explanations differ little: AVA lowers sensitivity. It is itself a Shapley
    value explanation (Theorem 1), of the weighted average of the neighbours' games. Values and base
    values therefore sum to the weighted mean of the model's outputs for the neighbours, not to the
    output for the row.

    Parameters
    ----------
    n_neighbors : int, optional
        k, the number of rows that explain a row; by default 10, or as many as the data have.
    metric : str or callable
        The distance ρ: any of scikit-learn's `pairwise_distances`, or a function of two rows. It
        may violate the triangle inequality, because it is computed for all rows.
    metric_params : mapping, optional
        Further arguments of the distance.
    normalized : bool
        Whether the weights 1/ρ are divided by their sum, so that values keep their scale. The
        poster does not divide them; the size of the result then depends on the distances.
    at_zero : {"only", "leave_out"}
        How to treat a neighbour at distance 0, where 1/ρ is infinite. `"only"`: the limit, in which
        only such neighbours count, with equal weights; normalised weights only. `"leave_out"`: it
        is left out, so that a row of the data is explained by other rows.
    smoothing : float
        Is added to all distances: 1/(ρ + smoothing). If it is positive, no weight is infinite, and
        `at_zero="only"` has no effect.
    """

    n_neighbors: int | None = None
    metric: str | Callable[..., float] = "euclidean"
    metric_params: Mapping[str, Any] | None = None
    normalized: bool = True
    at_zero: str = "only"
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.n_neighbors is not None:
            checked_count("n_neighbors", self.n_neighbors)
        checked_flag("normalized", self.normalized)
        checked_choice("at_zero", self.at_zero, ("only", "leave_out"))
        if not isinstance(self.metric, str) and not callable(self.metric):
            raise InvalidArgumentTypeError(
                "metric must be the name of a distance or a function of two rows; got "
                f"{type(self.metric).__name__}."
            )
        what = "a finite number, not negative"
        checked_number("smoothing", self.smoothing, what, lambda added: 0 <= added < np.inf)


def check_embedding(name: str, numbers: FloatArray) -> None:
    """Refuse numbers between which there is no distance."""
    if not np.isfinite(numbers).all():
        raise InvalidArgumentError(
            f"{name} holds numbers that are not finite, to which there is no distance. Pass "
            "embed=, a function that turns rows into finite numbers."
        )


@dataclass
class NeighbourIndex:
    """Points among which neighbours are searched.

    Attributes
    ----------
    points : array, (D, F)
        The points.
    search : NeighbourSearch
        The number of neighbours, their distance and their weights.
    """

    points: FloatArray
    search: NeighbourSearch

    def __post_init__(self) -> None:
        n_points = len(self.points)
        self._n_neighbors = self.search.n_neighbors or min(_DEFAULT_NEIGHBORS, n_points)
        if n_points < self._n_neighbors:
            raise InvalidArgumentError(
                f"n_neighbors={self._n_neighbors}, but the data have {n_points} rows. Pass more "
                f"rows, or n_neighbors={n_points} at most."
            )
        try:
            self._distances(self.points[:1])
        except (ValueError, TypeError) as error:
            raise InvalidArgumentError(
                f"metric={self.search.metric!r} cannot be used for the data. {error}"
            ) from error

    def nearest(self, rows: FloatArray) -> Neighbours:
        """Return the k nearest points of each row, (R, F), by index where distances are equal.

        Raises
        ------
        InvalidArgumentError
            If there are too few points, or a weight is infinite and has no limit.
        """
        if rows.shape[1] != self.points.shape[1]:
            raise InvalidArgumentError(
                f"rows hold {rows.shape[1]} numbers each, but the data hold {self.points.shape[1]}."
            )
        indices = np.empty((len(rows), self._n_neighbors), dtype=np.intp)
        distances, block = np.empty(indices.shape), np.empty((0, 0))
        size = max(1, _MOST_NUMBERS // len(self.points))
        for row, numbers in enumerate(rows):
            if row % size == 0:
                block = self._distances(rows[row : row + size])
            # Rounding must not hide that a row is one of the points.
            to_points = np.where((self.points == numbers).all(axis=1), 0.0, block[row % size])
            counts = (to_points > 0) | ((self.search.at_zero != "leave_out") & (to_points == 0))
            if counts.sum() < self._n_neighbors:
                raise InvalidArgumentError(
                    f"row {row} has only {counts.sum()} rows of the data at a positive distance, "
                    f"but n_neighbors={self._n_neighbors}. Pass a smaller number."
                )
            farthest = np.partition(to_points[counts], self._n_neighbors - 1)[self._n_neighbors - 1]
            near = np.flatnonzero(counts & (to_points <= farthest))
            indices[row] = near[np.argsort(to_points[near], kind="stable")[: self._n_neighbors]]
            distances[row] = to_points[indices[row]]
        return Neighbours(indices, distances, self._weights(distances))

    def _weights(self, distances: FloatArray) -> FloatArray:
        shifted = distances + self.search.smoothing
        is_zero = shifted == 0
        has_zero = is_zero.any(axis=1)
        if has_zero.any() and not self.search.normalized:
            raise InvalidArgumentError(
                f"row {int(np.argmax(has_zero))} is one of the data, at distance 0, where the "
                "weight 1/distance is infinite. Pass at_zero='leave_out', a positive smoothing=, "
                "or normalized=True."
            )
        weights = np.where(has_zero[:, None], is_zero, 1 / np.where(is_zero, 1.0, shifted))
        if self.search.normalized:
            weights = weights / weights.sum(axis=1, keepdims=True)
        return weights

    def _distances(self, rows: FloatArray) -> FloatArray:
        """Return the distances of rows, (R, F), from all points, (R, D)."""
        metric, params = self.search.metric, self.search.metric_params or {}
        if metric in ("euclidean", "l2") and not params:
            # scikit-learn computes it from squares, where rounding hides small distances.
            return np.asarray(scipy.spatial.distance.cdist(rows, self.points))
        from sklearn.metrics import pairwise_distances  # slow to import

        metric = {"infinity": "chebyshev", "p": "minkowski"}.get(str(metric), metric)
        return np.asarray(pairwise_distances(rows, self.points, metric=metric, **params))


def explained_once(
    known: dict[int, Any], indices: IntArray, explain: Callable[[IntArray], Sequence[Any]]
) -> list[Any]:
    """Return arrays of explanations of points, (R, k, …); those that are not known are added.

    Parameters
    ----------
    known : dict
        What is known of points, by their indices.
    indices : array, (R, k)
        Indices of points.
    explain : callable
        Takes the indices of points that are not known, in increasing order. Returns arrays with an
        entry for each of them, the first of them an array, others None where there is nothing.
    """
    new = sorted(set(indices.ravel().tolist()) - known.keys())
    if new:
        arrays = explain(np.array(new))
        of_points = zip(
            *(repeat(None) if array is None else array for array in arrays), strict=False
        )
        known.update(zip(new, of_points, strict=True))
    fields = zip(*(known[index] for index in indices.ravel().tolist()), strict=True)
    return [
        None if field[0] is None else np.reshape(field, (*indices.shape, *np.shape(field[0])))
        for field in fields
    ]


def averaged_over_neighbours(weights: FloatArray, explained: Any) -> FloatArray:
    """Return AVA: Σ_z w_z φ(v_z), the Shapley values of the game Σ_z w_z v_z.

    The Shapley value is linear in the game, so that this explains one game: the weighted sum of the
    neighbours' games (Bhatt, Weller and Moura, Theorem 1).

    Parameters
    ----------
    weights : array, (R, k)
        Weight of each neighbour.
    explained : array, (R, k, …)
        Its explanation.
    """
    return np.einsum("rk,rk...->r...", weights, np.asarray(explained))

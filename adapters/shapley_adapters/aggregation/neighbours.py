"""AVA, the aggregate valuation of antecedents: a row explained by its neighbours' explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from ..arguments import checked_choice, checked_count, checked_flag, checked_number
from ..array_types import BoolArray, FloatArray, IntArray
from ..constructors import write_constructor
from ..errors import InvalidArgumentError, InvalidArgumentTypeError

_MOST_NUMBERS = 2**23
"""Largest number of entries of the points of one query, 64 MiB."""

_ROUNDING = 1e-9
"""Relative error of scikit-learn's distances, within which the order of points may be wrong."""


@dataclass(frozen=True)
class Neighbours:
    """The nearest points of some rows.

    Attributes
    ----------
    indices : array, (R, k)
        Indices of the points, the nearest first.
    distances : array, (R, k)
        Their distances.
    """

    indices: IntArray
    distances: FloatArray


@dataclass(frozen=True)
class NeighbourSearch:
    """How the nearest points of a row are searched and weighted.

    Attributes
    ----------
    n_neighbors : int
        k, the number of points that explain a row.
    metric : str or callable
        Any distance of scikit-learn's `NearestNeighbors`, or a function of two rows. A function
        may violate the triangle inequality, because it is computed for all points.
    metric_params : mapping, optional
        Further arguments of the distance.
    normalized : bool
        Whether the weights 1/ρ are divided by their sum. The poster does not divide them; the size
        of the result then depends on the distances of the neighbours.
    at_zero : {"only", "leave_out"}
        How to treat a point at distance 0, where 1/ρ is infinite. `"only"`: the limit, in which
        only such points count, with equal weights; normalised weights only. `"leave_out"`: the
        point is left out, so that a row of the data is explained by other rows.
    smoothing : float
        Is added to all distances: 1/(ρ + smoothing). If it is positive, no weight is infinite, and
        `at_zero="only"` has no effect.
    """

    n_neighbors: int = 10
    metric: Any = "euclidean"
    metric_params: Mapping[str, Any] | None = None
    normalized: bool = True
    at_zero: str = "only"
    smoothing: float = 0.0

    def __post_init__(self) -> None:
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

    def weights(self, distances: FloatArray) -> FloatArray:
        """Return the weights of neighbours, (R, k), by their distances.

        Raises
        ------
        InvalidArgumentError
            If a weight is infinite and has no limit.
        """
        shifted = distances + self.smoothing
        is_zero = shifted == 0
        has_zero = is_zero.any(axis=1)
        if has_zero.any() and not self.normalized:
            raise InvalidArgumentError(
                f"row {int(np.argmax(has_zero))} is one of the data, at distance 0, where the "
                "weight 1/distance is infinite. Pass at_zero='leave_out', a positive smoothing=, "
                "or normalized=True."
            )
        weights = np.where(has_zero[:, None], is_zero, 1 / np.where(is_zero, 1.0, shifted))
        if self.normalized:
            weights = weights / weights.sum(axis=1, keepdims=True)
        return weights


@write_constructor
class NeighbourOptions:
    """Options of the hosts' explainers by neighbours, as in `NeighbourSearch`.

    Attributes
    ----------
    n_neighbors : int, optional
        How many neighbours explain a row; by default 10, or as many rows as the data have.
    embed : callable, optional
        Function of rows that returns the numbers between which distances are computed.
    """

    n_neighbors: int | None = None
    metric: str | Callable[..., float] = "euclidean"
    metric_params: Mapping[str, Any] | None = None
    normalized: bool = True
    at_zero: str = "only"
    smoothing: float = 0.0
    embed: Callable[..., Any] | None = None

    def _index_of(self, points: FloatArray) -> NeighbourIndex:
        options = {option.name: getattr(self, option.name) for option in fields(NeighbourSearch)}
        if self.n_neighbors is None:
            options["n_neighbors"] = min(NeighbourSearch.n_neighbors, len(points))
        return NeighbourIndex(points, NeighbourSearch(**options))


def check_embedding(name: str, numbers: FloatArray) -> None:
    """Refuse numbers between which there is no distance."""
    if not np.isfinite(numbers).all():
        raise InvalidArgumentError(
            f"{name} holds numbers that are not finite, to which there is no distance. Pass "
            "embed=, a function that turns rows into finite numbers."
        )


@dataclass
class NeighbourIndex:
    """Points among which neighbours are searched, in scikit-learn's index.

    Attributes
    ----------
    points : array, (D, F)
        The points.
    search : NeighbourSearch
        The number of neighbours and their distance.
    """

    points: FloatArray
    search: NeighbourSearch
    _index: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        from sklearn.neighbors import NearestNeighbors  # slow to import

        n_points, n_neighbors = len(self.points), self.search.n_neighbors
        if n_points < n_neighbors:
            raise InvalidArgumentError(
                f"n_neighbors={n_neighbors}, but the data have {n_points} rows. Pass more rows, or "
                f"n_neighbors={n_points} at most."
            )
        # A tree excludes points by the triangle inequality, which a function may violate.
        algorithm = "brute" if callable(self.search.metric) else "auto"
        params = dict(self.search.metric_params or {})
        power = params.pop("p", 2)  # a separate argument in scikit-learn
        index = NearestNeighbors(
            algorithm=algorithm, metric=self.search.metric, p=power, metric_params=params or None
        )
        try:
            self._index = index.fit(self.points)
        except (ValueError, TypeError) as error:
            raise InvalidArgumentError(
                f"metric={self.search.metric!r} cannot be used for the data. {error}"
            ) from error

    def nearest(self, rows: FloatArray) -> Neighbours:
        """Return the k nearest points of each row, (R, F)."""
        if rows.shape[1] != self.points.shape[1]:
            raise InvalidArgumentError(
                f"rows hold {rows.shape[1]} numbers each, but the data hold {self.points.shape[1]}."
            )
        n_neighbors, n_points = self.search.n_neighbors, len(self.points)
        indices = np.empty((len(rows), n_neighbors), dtype=np.intp)
        distances = np.empty((len(rows), n_neighbors))
        n_requested, open_rows = min(n_neighbors + 1, n_points), np.arange(len(rows))
        while len(open_rows):
            size = max(1, _MOST_NUMBERS // (n_requested * max(1, rows.shape[1])))
            unfinished = []
            for first in range(0, len(open_rows), size):
                batch = open_rows[first : first + size]
                neighbours = self._query(rows[batch], n_requested)
                columns, is_done = self._nearest_columns(neighbours, batch)
                indices[batch] = np.take_along_axis(neighbours.indices, columns, axis=1)
                distances[batch] = np.take_along_axis(neighbours.distances, columns, axis=1)
                unfinished.append(batch[~is_done])
            open_rows, n_requested = np.concatenate(unfinished), min(2 * n_requested, n_points)
        return Neighbours(indices, distances)

    def _nearest_columns(
        self, neighbours: Neighbours, rows: IntArray
    ) -> tuple[IntArray, BoolArray]:
        """Return the columns of the k nearest points, (R, k), and for which rows they are final.

        They are not final while all points have the distance of the k-th: further points may have
        the same distance and come earlier in the data. Whether a row is final depends on its own
        points only, not on those of other rows.
        """
        n_neighbors = self.search.n_neighbors
        has_all = neighbours.indices.shape[1] == len(self.points)
        counts = np.ones(neighbours.distances.shape, dtype=bool)
        if self.search.at_zero == "leave_out":
            counts = neighbours.distances > 0
        is_short = counts.sum(axis=1) < n_neighbors
        if has_all and is_short.any():
            row = int(np.argmax(is_short))
            raise InvalidArgumentError(
                f"row {rows[row]} has only {int(counts[row].sum())} rows of the data at a "
                f"positive distance, but n_neighbors={n_neighbors}. Pass a smaller number."
            )
        columns = np.argsort(~counts, axis=1, kind="stable")[:, :n_neighbors]
        largest_distance = np.take_along_axis(neighbours.distances, columns[:, -1:], axis=1)[:, 0]
        is_beyond = neighbours.distances[:, -1] > largest_distance * (1 + _ROUNDING)
        return columns, ~is_short & (is_beyond | has_all)

    def _query(self, rows: FloatArray, n: int) -> Neighbours:
        distances, indices = self._index.kneighbors(rows, n_neighbors=n)
        neighbours = self.points[indices]
        if self.search.metric in ("euclidean", "l2") and self.search.metric_params is None:
            # scikit-learn computes it from squares, where rounding hides small distances.
            distances = np.linalg.norm(neighbours - rows[:, None], axis=2)
        else:
            distances = np.where((neighbours == rows[:, None]).all(axis=2), 0.0, distances)
        # Ties are ordered by index, so that the result does not depend on the search tree.
        order = np.lexsort((indices, distances), axis=1)
        return Neighbours(
            np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)
        )


def averaged_over_neighbours(weights: FloatArray, explained: FloatArray) -> FloatArray:
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
    values: FloatArray = np.einsum("rk,rk...->r...", weights, explained)
    return values

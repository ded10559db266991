"""AVA, the aggregate valuation of antecedents: a row in terms of its neighbours' explanations."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arguments import checked_choice, checked_count, checked_flag
from ..array_types import BoolArray, FloatArray, IntArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError

AT_ZERO = ("only", "leave_out")
_EUCLIDEAN = ("euclidean", "l2")

_MOST_NUMBERS = 2**23
"""How many numbers the points of one query hold at most, 64 MiB."""

_ROUNDING = 1e-9
"""By how much of a distance scikit-learn may confuse the order of points."""


@dataclass(frozen=True)
class Neighbours:
    """The nearest points of some rows.

    Attributes
    ----------
    places : array, (R, k)
        Which points, the nearest first.
    distances : array, (R, k)
        How far they are.
    """

    places: IntArray
    distances: FloatArray


@dataclass(frozen=True)
class NeighbourSearch:
    """How the nearest points of a row are found and weighted.

    Attributes
    ----------
    n_neighbors : int
        k, how many points explain a row.
    metric : str or callable
        Any distance of scikit-learn's `NearestNeighbors`, or a function of two rows. A function
        need not obey the triangle inequality: all points are compared then.
    metric_params : mapping, optional
        Further arguments of the distance.
    normalized : bool
        Whether the weights 1/ρ are divided by their sum. The poster prints them undivided, which
        makes sums of values whose size depends on how far the neighbours are.
    at_zero : {"only", "leave_out"}
        What a point at distance 0 means, where 1/ρ is infinite. `"only"`: the limit, in which
        nothing else counts; several such points share the weight. Only normalised weights have
        that limit. `"leave_out"`: the point is passed over, so that a row of the data is explained
        by others.
    smoothing : float
        Is added to all distances: 1/(ρ + smoothing). With a positive one no weight is infinite, and
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
        checked_choice("at_zero", self.at_zero, AT_ZERO)
        if not isinstance(self.metric, str) and not callable(self.metric):
            raise InvalidArgumentTypeError(
                "metric must be the name of a distance or a function of two rows; got "
                f"{type(self.metric).__name__}."
            )
        is_number = isinstance(self.smoothing, numbers.Real)
        if not is_number or not 0 <= float(self.smoothing) < np.inf:
            raise InvalidArgumentError(
                f"smoothing must be a finite number, not negative; got {self.smoothing!r}."
            )

    def weights(self, distances: FloatArray) -> FloatArray:
        """Return the weights of neighbours, (R, k), by their distances.

        Raises
        ------
        InvalidArgumentError
            If a weight is infinite and has no limit.
        """
        away = distances + self.smoothing
        here = away == 0
        is_here = here.any(axis=1)
        if is_here.any() and not self.normalized:
            raise InvalidArgumentError(
                f"row {int(np.argmax(is_here))} is one of the data, at distance 0, where the "
                "weight 1/distance is infinite. Pass at_zero='leave_out', a positive smoothing=, "
                "or normalized=True."
            )
        weights = np.where(is_here[:, None], here, 1 / np.where(here, 1.0, away))
        if self.normalized:
            weights = weights / weights.sum(axis=1, keepdims=True)
        return weights


@dataclass
class NeighbourIndex:
    """Points to find neighbours among, in scikit-learn's index.

    Attributes
    ----------
    points : array, (D, F)
        The points.
    search : NeighbourSearch
        What counts as near.
    """

    points: FloatArray
    search: NeighbourSearch
    _index: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        from sklearn.neighbors import NearestNeighbors  # slow to import

        n_points, wanted = len(self.points), self.search.n_neighbors
        if n_points < wanted:
            raise InvalidArgumentError(
                f"n_neighbors={wanted}, but the data have {n_points} rows. Pass more rows, or "
                f"n_neighbors={n_points} at most."
            )
        # A tree rules points out by the triangle inequality, which not every function obeys.
        algorithm = "brute" if callable(self.search.metric) else "auto"
        params = dict(self.search.metric_params or {})
        power = params.pop("p", 2)  # scikit-learn has a place of its own for it
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
        wanted, n_points = self.search.n_neighbors, len(self.points)
        places = np.empty((len(rows), wanted), dtype=np.intp)
        distances = np.empty((len(rows), wanted))
        n_asked, left = min(wanted + 1, n_points), np.arange(len(rows))
        while len(left):
            size = max(1, _MOST_NUMBERS // (n_asked * max(1, rows.shape[1])))
            still = []
            for first in range(0, len(left), size):
                asked = left[first : first + size]
                found = self._query(rows[asked], n_asked)
                kept, is_done = self._kept(found, asked)
                places[asked] = np.take_along_axis(found.places, kept, axis=1)
                distances[asked] = np.take_along_axis(found.distances, kept, axis=1)
                still.append(asked[~is_done])
            left, n_asked = np.concatenate(still), min(2 * n_asked, n_points)
        return Neighbours(places, distances)

    def _kept(self, found: Neighbours, asked: IntArray) -> tuple[IntArray, BoolArray]:
        """Return which of the points found are nearest, (R, k), and for which rows that is sure.

        As long as all points found are as near as the k-th, others may be so, too, that come
        earlier in the data: it is the row's points that decide, not how many other rows need.
        """
        wanted, has_all = self.search.n_neighbors, found.places.shape[1] == len(self.points)
        counts = np.ones(found.distances.shape, dtype=bool)
        if self.search.at_zero == "leave_out":
            counts = found.distances > 0
        is_short = counts.sum(axis=1) < wanted
        if has_all and is_short.any():
            row = int(np.argmax(is_short))
            raise InvalidArgumentError(
                f"row {asked[row]} has only {int(counts[row].sum())} rows of the data at a "
                f"positive distance, but n_neighbors={wanted}. Pass a smaller number."
            )
        kept = np.argsort(~counts, axis=1, kind="stable")[:, :wanted]
        cut = np.take_along_axis(found.distances, kept[:, -1:], axis=1)[:, 0]
        is_beyond = found.distances[:, -1] > cut * (1 + _ROUNDING)
        return kept, ~is_short & (is_beyond | has_all)

    def _query(self, rows: FloatArray, n: int) -> Neighbours:
        distances, places = self._index.kneighbors(rows, n_neighbors=n)
        near = self.points[places]
        if self.search.metric in _EUCLIDEAN and self.search.metric_params is None:
            # scikit-learn's comes from squares, in which small distances drown.
            distances = np.linalg.norm(near - rows[:, None], axis=2)
        else:
            distances = np.where((near == rows[:, None]).all(axis=2), 0.0, distances)
        # Ties in the order of the points, so that the answer does not depend on the index.
        order = np.lexsort((places, distances), axis=1)
        return Neighbours(
            np.take_along_axis(places, order, axis=1), np.take_along_axis(distances, order, axis=1)
        )


def averaged_over_neighbours(weights: FloatArray, explained: FloatArray) -> FloatArray:
    """Return AVA: Σ_z w_z φ(v_z), the Shapley values of the game Σ_z w_z v_z.

    The Shapley value is linear in the game, so that this explains one game, the neighbours'
    averaged (Bhatt, Weller and Moura, Theorem 1).

    Parameters
    ----------
    weights : array, (R, k)
        Weight of each neighbour.
    explained : array, (R, k, …)
        Its explanation.
    """
    values: FloatArray = np.einsum("rk,rk...->r...", weights, explained)
    return values

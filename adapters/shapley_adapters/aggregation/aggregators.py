"""The aggregators: each is its options, and makes one explanation of several."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..arguments import checked_choice, checked_count, checked_flag
from ..array_types import FloatArray
from ..criteria.ranking import ORDERS
from ..errors import InvalidArgumentError
from ..threads.blas_threads import one_blas_thread
from .candidates import SCALES, checked_candidates, on_one_scale
from .centroids import centroid, checked_order, checked_power
from .kemeny import KemenyRanking, kemeny_young
from .learning import checked_weights
from .losses import combined
from .lowering import Lowered, descend, shrink

METHODS = ("descent", "shrinking")


@dataclass(frozen=True)
class Aggregate:
    """One explanation made of several.

    Attributes
    ----------
    values : array, (…, M)
        The explanation.
    weights : array, (G,) or (…, G), or None
        What each candidate contributes, where the explanation is a convex combination of them.
    rankings : list of KemenyRanking, or None
        The consensus ranking of each input with its proof, in the order of the inputs flattened.
    """

    values: FloatArray
    weights: FloatArray | None = None
    rankings: list[KemenyRanking] | None = None

    @property
    def shared_weights(self) -> FloatArray | None:
        """The weights of the candidates, (G,), where all inputs have the same."""
        return None if self.weights is None or self.weights.ndim > 1 else self.weights

    def base_values(self, given: Sequence[FloatArray | None]) -> FloatArray:
        """Return the values without any feature, (…), of those that the candidates have.

        Their mean, with the weights of a convex combination; zero for rankings, and where no
        candidate tells its own.
        """
        known = [place for place, one in enumerate(given) if one is not None]
        if self.rankings is not None or not known:
            return np.zeros(self.values.shape[:-1])
        weights = self.shared_weights
        shares = np.ones(len(known)) if weights is None else weights[known]
        if shares.sum() == 0:
            shares = np.ones(len(known))
        mean: FloatArray = np.average([given[place] for place in known], axis=0, weights=shares)
        return mean


class Aggregator(Protocol):
    """Makes one explanation of several."""

    def __call__(self, candidates: Any) -> Aggregate:
        """Combine candidates, (G, …, M), or a sequence of arrays, tensors and Explanations."""


@dataclass(frozen=True)
class Centroid:
    """The explanation nearest to all candidates, by a power of a distance.

    argmin_g Σ_i D(g, g_i)^p (Bhatt, Weller and Moura). With the Euclidean distance and p = 2 the
    mean, with ℓ1 and p = 1 the median of each feature, with Kendall's distance of the rankings the
    Kemeny–Young rule.

    Attributes
    ----------
    distance : "l2", "l1", "kendall", or float
        D; a number q ≥ 1 is the order of the norm ℓq.
    power : float, optional
        p ≥ 1; by default q, which treats each feature by itself. p = 1 with ℓ2 is the geometric
        median. With ℓ1 and Kendall's distance only p = 1.
    scale : {"none", "l1", "l2", "max"}
        How candidates are first brought to one size; see `on_one_scale`.
    order : {"value", "magnitude"}
        What Kendall's distance ranks features by.
    approximate : bool
        Whether rankings of more than 60 features that no majority tells apart may be approximate.
    """

    distance: Any = "l2"
    power: Any = None
    scale: str = "none"
    order: str = "value"
    approximate: bool = False

    def __post_init__(self) -> None:
        checked_choice("scale", self.scale, SCALES)
        checked_choice("order", self.order, ORDERS)
        checked_flag("approximate", self.approximate)
        if self.distance != "kendall":
            checked_power(self.power, checked_order(self.distance))
        elif self.power not in (None, 1):
            raise InvalidArgumentError(
                f"power must be 1 with distance='kendall'; got {self.power!r}."
            )

    @one_blas_thread()
    def __call__(self, candidates: Any) -> Aggregate:
        """Return the centroid; ranks, M for the first feature down to 1, with Kendall's distance.

        Raises
        ------
        InvalidArgumentError
            If the candidates' shapes differ, or a ranking is too long to be exact.
        """
        given = on_one_scale(checked_candidates(candidates), self.scale)
        if self.distance == "kendall":
            return self._ranked(given)
        order = checked_order(self.distance)
        power = checked_power(self.power, order)
        is_mean = order == power == 2
        weights = np.full(len(given), 1 / len(given)) if is_mean and self.scale == "none" else None
        return Aggregate(centroid(given, order, power), weights)

    def _ranked(self, given: FloatArray) -> Aggregate:
        keys = np.abs(given) if self.order == "magnitude" else given
        flat = keys.reshape(len(keys), -1, keys.shape[-1])
        rankings = [
            kemeny_young(flat[:, row], approximate=self.approximate) for row in range(flat.shape[1])
        ]
        scores = np.array([ranking.scores for ranking in rankings])
        return Aggregate(scores.reshape(given.shape[1:]), rankings=rankings)


@dataclass(frozen=True)
class Convex:
    """A convex combination of the candidates, the same for all inputs.

    Attributes
    ----------
    weights : sequence of float, optional
        One for each candidate, not negative; they are divided by their sum. Equal by default.
    scale : {"none", "l1", "l2", "max"}
        How candidates are first brought to one size; see `on_one_scale`.
    """

    weights: Any = None
    scale: str = "none"

    def __post_init__(self) -> None:
        checked_choice("scale", self.scale, SCALES)
        if self.weights is not None:
            checked_weights(self.weights, len(np.atleast_1d(self.weights)))

    @one_blas_thread()
    def __call__(self, candidates: Any) -> Aggregate:
        """Return Σ_i w_i g_i."""
        given = on_one_scale(checked_candidates(candidates), self.scale)
        weights = checked_weights(self.weights, len(given))
        return Aggregate(combined(weights, given), weights if self.scale == "none" else None)


@dataclass(frozen=True)
class LowComplexity:
    """An explanation no more complex than any candidate, from the region that they span.

    Two readings of the algorithms that Bhatt, Weller and Moura show as a figure; see `descend` and
    `shrink`.

    Attributes
    ----------
    method : {"descent", "shrinking"}
        `"descent"`: from each candidate towards their mean, and back, one coordinate at a time; the
        answer lies in the box that the candidates span. `"shrinking"`: the convex hull, drawn in
        towards points of low complexity; the answer is a convex combination. It is below the
        lowest candidate only where candidates disagree in sign.
    scale : {"none", "l1", "l2", "max"}
        How candidates are first brought to one size; see `on_one_scale`. The complexity does not
        depend on the size, but the mean and the region do.
    n_steps : int
        Steps of each coordinate on its whole way (descent).
    n_rounds : int
        Rounds at most (shrinking).
    tolerance : float
        The part of its first width at which the region is small (shrinking).
    n_points : int
        Zeros of coordinates looked at on a segment, at most (shrinking).
    """

    method: str = "descent"
    scale: str = "none"
    n_steps: int = 20
    n_rounds: int = 20
    tolerance: float = 1e-3
    n_points: int = 1000

    def __post_init__(self) -> None:
        checked_choice("method", self.method, METHODS)
        checked_choice("scale", self.scale, SCALES)
        for name in ("n_steps", "n_rounds", "n_points"):
            checked_count(name, getattr(self, name))
        is_number = isinstance(self.tolerance, numbers.Real)
        if not is_number or not 0 <= float(self.tolerance) < 1:
            raise InvalidArgumentError(
                f"tolerance must be a number from 0 to below 1; got {self.tolerance!r}."
            )

    @one_blas_thread()
    def __call__(self, candidates: Any) -> Aggregate:
        """Return the explanation of low complexity."""
        given = on_one_scale(checked_candidates(candidates), self.scale)
        flat = given.reshape(len(given), -1, given.shape[-1])
        found = self._lowered(flat)
        weights = found.weights
        if weights is not None:
            weights = weights.reshape(*given.shape[1:-1], len(given))
        is_of_given = self.scale == "none"
        return Aggregate(found.values.reshape(given.shape[1:]), weights if is_of_given else None)

    def _lowered(self, flat: FloatArray) -> Lowered:
        if self.method == "descent":
            return descend(flat, self.n_steps)
        return shrink(flat, self.n_rounds, self.tolerance, self.n_points)

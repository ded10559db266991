"""The aggregators. Each holds its options and combines several explanations into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from ..arguments import checked_choice, checked_count, checked_flag, checked_number
from ..array_types import FloatArray
from ..criteria.attribution_arrays import ORDERS, checked_attributions
from ..errors import InvalidArgumentError
from ..workers import one_blas_thread
from .centroids import KemenyRanking, centroid, checked_order, checked_power, kemeny_young
from .convex import checked_weights, combined
from .low_complexity import descend, shrink

SCALES = ("none", "l1", "l2", "max")
_ORDERS = {"l1": 1, "l2": 2, "max": np.inf}


def checked_candidates(candidates: Any) -> FloatArray:
    """Return an array, or a sequence of explanations of one shape, as candidates, (G, …, M)."""
    if isinstance(candidates, Sequence):
        arrays = [
            checked_attributions(f"candidates[{i}]", candidate)
            for i, candidate in enumerate(candidates)
        ]
        shapes = [array.shape for array in arrays]
        if len(set(shapes)) > 1:
            raise InvalidArgumentError(
                f"candidates must explain the same rows and features; their shapes are {shapes}."
            )
        candidates = np.stack(arrays) if arrays else np.zeros((0, 1, 1))
    if len(candidates) == 0:
        raise InvalidArgumentError("candidates are missing: pass at least one explanation.")
    values = checked_attributions("candidates", candidates)
    if values.ndim < 2:
        raise InvalidArgumentError(
            f"candidates have shape {values.shape}; (candidates, …, features) is needed."
        )
    return values


def on_one_scale(candidates: FloatArray, scale: str) -> FloatArray:
    """Scale the candidates of each input to the same size.

    Explainers may use different units: a gradient, for example, is not a difference of outputs.

    Parameters
    ----------
    candidates : array, (G, …, M)
        The candidates.
    scale : {"none", "l1", "l2", "max"}
        The size that is made equal: none, the sum of the absolute attributions, their Euclidean
        length, or the largest absolute attribution. Each candidate is divided by its size and
        multiplied by the mean size of the candidates of that input. A candidate of zeros stays
        zero and does not count in the mean.
    """
    checked_choice("scale", scale, SCALES)
    if scale == "none":
        return candidates
    sizes = np.linalg.norm(candidates, ord=_ORDERS[scale], axis=-1, keepdims=True)
    n_positive = (sizes > 0).sum(axis=0)
    mean = sizes.sum(axis=0) / np.maximum(n_positive, 1)
    scaled: FloatArray = candidates / np.where(sizes > 0, sizes, 1.0) * mean
    return scaled


@dataclass(frozen=True)
class Aggregate:
    """One explanation combined from several.

    Attributes
    ----------
    values : array, (…, M)
        The explanation.
    weights : array, (G,) or (…, G), or None
        The weight of each candidate, if the explanation is a convex combination of them.
    rankings : list of KemenyRanking, or None
        The consensus ranking of each input, with its proof, in the order of the flattened inputs.
    """

    values: FloatArray
    weights: FloatArray | None = None
    rankings: list[KemenyRanking] | None = None

    @property
    def shared_weights(self) -> FloatArray | None:
        """The weights of the candidates, (G,), if all inputs share them."""
        return None if self.weights is None or self.weights.ndim > 1 else self.weights

    def base_values(self, candidate_values: Sequence[FloatArray | None]) -> FloatArray:
        """Return the value without any feature, (…), from those of the candidates.

        It is their mean, with the weights of a convex combination. It is zero for rankings, and
        if no candidate has such a value.
        """
        indices = [i for i, values in enumerate(candidate_values) if values is not None]
        if self.rankings is not None or not indices:
            return np.zeros(self.values.shape[:-1])
        weights = self.shared_weights
        shares = np.ones(len(indices)) if weights is None else weights[indices]
        if shares.sum() == 0:
            shares = np.ones(len(indices))
        mean: FloatArray = np.average(
            [candidate_values[i] for i in indices], axis=0, weights=shares
        )
        return mean


def with_options_of(kind: type[Any], owner: object) -> Any:
    """Return an aggregator of a kind whose options are attributes of an object of a host."""
    return kind(**{option.name: getattr(owner, option.name) for option in fields(kind)})


class Aggregator(Protocol):
    """Combines several explanations into one."""

    def __call__(self, candidates: Any) -> Aggregate:
        """Combine candidates, (G, …, M), or a sequence of arrays, tensors and Explanations."""


@dataclass(frozen=True)
class Centroid:
    """The explanation nearest to all candidates, by a power of a distance.

    argmin_g Σ_i D(g, g_i)^p (Bhatt, Weller and Moura). It is the mean for the Euclidean distance
    and p = 2, the median of each feature for ℓ1 and p = 1, and the ranking of the Kemeny–Young rule
    for Kendall's distance.

    Attributes
    ----------
    distance : "l2", "l1", "kendall", or float
        D; a number q ≥ 1 is the order of the norm ℓq.
    power : float, optional
        p ≥ 1; by default q, so that features are independent of each other. p = 1 with ℓ2 is the
        geometric median, to 1e-12 of its size. With ℓ1 and with Kendall's distance p must be 1.
    scale : {"none", "l1", "l2", "max"}
        How candidates are first scaled to the same size; see `on_one_scale`.
    order : {"value", "magnitude"}
        Whether Kendall's distance ranks features by attributions or by their absolute values.
    approximate : bool
        Whether a ranking may be approximate if more than 60 features are tied by majorities.
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
        values = on_one_scale(checked_candidates(candidates), self.scale)
        if self.distance == "kendall":
            keys = np.abs(values) if self.order == "magnitude" else values
            flat = keys.reshape(len(keys), -1, keys.shape[-1])
            rankings = [
                kemeny_young(flat[:, row], approximate=self.approximate)
                for row in range(flat.shape[1])
            ]
            scores = np.array([ranking.scores for ranking in rankings])
            return Aggregate(scores.reshape(values.shape[1:]), rankings=rankings)
        order = checked_order(self.distance)
        power = checked_power(self.power, order)
        is_mean = order == power == 2
        weights = (
            np.full(len(values), 1 / len(values)) if is_mean and self.scale == "none" else None
        )
        return Aggregate(centroid(values, order, power), weights)


@dataclass(frozen=True)
class Convex:
    """A convex combination of the candidates, the same for all inputs.

    Attributes
    ----------
    weights : sequence of float, optional
        One for each candidate, not negative; they are divided by their sum. Equal by default.
    scale : {"none", "l1", "l2", "max"}
        How candidates are first scaled to the same size; see `on_one_scale`.
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
        values = on_one_scale(checked_candidates(candidates), self.scale)
        weights = checked_weights(self.weights, len(values))
        return Aggregate(combined(weights, values), weights if self.scale == "none" else None)


@dataclass(frozen=True)
class LowComplexity:
    """An explanation that is no more complex than any candidate, from the region that they span.

    Bhatt, Weller and Moura show two algorithms in a figure only; `descend` and `shrink` are our
    interpretations of them.

    Attributes
    ----------
    method : {"descent", "shrinking"}
        `"descent"` moves from each candidate towards the mean, and from the mean towards each
        candidate, one coordinate at a time. The result lies in the box that the candidates span.
        `"shrinking"` shrinks the convex hull of the candidates towards points of low complexity.
        The result is a convex combination. Its complexity is below that of every candidate only if
        candidates differ in the sign of a feature.
    scale : {"none", "l1", "l2", "max"}
        How candidates are first scaled to the same size; see `on_one_scale`. The complexity does
        not depend on the size, but the mean and the region do.
    n_steps : int
        Number of steps of each coordinate from start to end (descent).
    n_rounds : int
        Largest number of rounds (shrinking).
    tolerance : float
        Rounds end when the region has shrunk to this share of its first width (shrinking).
    n_points : int
        Largest number of points compared on a segment (shrinking).
    """

    method: str = "descent"
    scale: str = "none"
    n_steps: int = 20
    n_rounds: int = 20
    tolerance: float = 1e-3
    n_points: int = 1000

    def __post_init__(self) -> None:
        checked_choice("method", self.method, ("descent", "shrinking"))
        checked_choice("scale", self.scale, SCALES)
        for name in ("n_steps", "n_rounds", "n_points"):
            checked_count(name, getattr(self, name))
        what = "a number from 0 to below 1"
        checked_number("tolerance", self.tolerance, what, lambda share: 0 <= share < 1)

    @one_blas_thread()
    def __call__(self, candidates: Any) -> Aggregate:
        """Return the explanation of low complexity."""
        values = on_one_scale(checked_candidates(candidates), self.scale)
        flat = values.reshape(len(values), -1, values.shape[-1])
        if self.method == "descent":
            return Aggregate(descend(flat, self.n_steps).reshape(values.shape[1:]))
        lowered, weights = shrink(flat, self.n_rounds, self.tolerance, self.n_points)
        weights = weights.reshape(*values.shape[1:-1], len(values))
        is_of_given = self.scale == "none"
        return Aggregate(lowered.reshape(values.shape[1:]), weights if is_of_given else None)

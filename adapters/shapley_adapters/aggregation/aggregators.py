"""The aggregators. Each holds its options and combines several explanations into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import checked_choice, checked_count, checked_flag, checked_number
from ..array_types import FloatArray
from ..criteria.attribution_arrays import ORDERS, checked_attributions
from ..errors import InvalidArgumentError
from ..workers import one_blas_thread
from .centroids import KemenyRanking, centroid, checked_norm, kemeny_young
from .convex import checked_weights, combined
from .low_complexity import descend, shrink

_NORMS = {"l1": 1, "l2": 2, "max": np.inf}


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
        known = {i: values for i, values in enumerate(candidate_values) if values is not None}
        if self.rankings is not None or not known:
            return np.zeros(self.values.shape[:-1])
        shares = np.ones(len(known))
        if self.shared_weights is not None and self.shared_weights[list(known)].any():
            shares = self.shared_weights[list(known)]
        return np.average(list(known.values()), axis=0, weights=shares)


class Aggregator:
    """Combines several explanations into one; subclasses are dataclasses of their options."""

    scale: str

    def __post_init__(self) -> None:
        checked_choice("scale", self.scale, ("none", *_NORMS))

    @one_blas_thread()
    def __call__(self, candidates: Any) -> Aggregate:
        """Combine candidates, (G, …, M), or a sequence of arrays, tensors and Explanations.

        Raises
        ------
        InvalidArgumentError
            If the candidates' shapes differ, or a ranking is too long to be exact.
        """
        return self._combined(self.scaled(candidates))

    def _combined(self, values: FloatArray) -> Aggregate:
        """Return the aggregate of candidates on one scale, (G, …, M)."""
        raise NotImplementedError

    def scaled(self, candidates: Any) -> FloatArray:
        """Return the candidates as an array, those of each input scaled to the same size.

        Explainers may use different units: a gradient, for example, is not a difference of outputs.
        A candidate of zeros stays zero and does not count in the mean size.
        """
        arrays = [
            checked_attributions(f"candidates[{i}]", candidate)
            for i, candidate in enumerate(candidates)
        ]
        if not arrays:
            raise InvalidArgumentError("candidates are missing: pass at least one explanation.")
        shapes = [array.shape for array in arrays]
        if len(set(shapes)) > 1:
            raise InvalidArgumentError(
                f"candidates must explain the same rows and features; their shapes are {shapes}."
            )
        values = np.stack(arrays)
        if self.scale == "none":
            return values
        sizes = np.linalg.norm(values, ord=_NORMS[self.scale], axis=-1, keepdims=True)
        mean = sizes.sum(axis=0) / np.maximum((sizes > 0).sum(axis=0), 1)
        return values / np.where(sizes > 0, sizes, 1.0) * mean


@dataclass(frozen=True)
class Centroid(Aggregator):
    """The explanation nearest to several others, by a power of a distance.

    argmin_g Σ_i D(g, g_i)^p (Bhatt, Weller and Moura, Evaluating and aggregating feature-based
    model explanations). The mean lowers the noise of explanations whose errors are independent. The
    median ignores single outliers. The Kemeny–Young rule uses only their rankings. The mean of
    Shapley estimates sums to the model's output; medians and ranks do not.

    Parameters
    ----------
    distance : {"l2", "l1", "kendall"} or float
        D: Euclidean, ℓ1, Kendall's between rankings, or the order q ≥ 1 of a norm ℓq. By default,
        with p = 2, the mean.
    power : float, optional
        p ≥ 1; by default q, so that features are independent of each other. `distance="l1"` is the
        median, `distance="l2", power=1` the geometric median, to 1e-12 of its size. With ℓ1 and
        with Kendall's distance p must be 1.
    scale : {"none", "l1", "l2", "max"}
        The norm by which the explanations of each row are scaled first, to their mean norm.
        `"none"`: no scaling.
    order : {"value", "magnitude"}
        Whether Kendall's distance ranks features by attributions or by their absolute values. The
        values of this centroid are M for the first feature down to 1 for the last.
    approximate : bool
        Whether a ranking may be approximate if more than 60 features are tied by majorities.
        `rankings` of the aggregate holds the bound that proves each of them, or the gap.
    """

    distance: str | float = "l2"
    power: float | None = None
    scale: str = "none"
    order: str = "value"
    approximate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_choice("order", self.order, ORDERS)
        checked_flag("approximate", self.approximate)
        checked_norm(self.distance, self.power)

    def _combined(self, values: FloatArray) -> Aggregate:
        order, power = checked_norm(self.distance, self.power)
        if order is not None:
            is_mean = order == power == 2 and self.scale == "none"
            weights = np.full(len(values), 1 / len(values)) if is_mean else None
            return Aggregate(centroid(values, order, power), weights)
        keys = np.abs(values) if self.order == "magnitude" else values
        rows = np.moveaxis(keys.reshape(len(keys), -1, keys.shape[-1]), 1, 0)
        rankings = [kemeny_young(row, approximate=self.approximate) for row in rows]
        scores = np.array([ranking.scores for ranking in rankings])
        return Aggregate(scores.reshape(values.shape[1:]), rankings=rankings)


@dataclass(frozen=True)
class Convex(Aggregator):
    """A convex combination of the candidates, Σ_i w_i g_i, the same for all inputs.

    Attributes
    ----------
    weights : sequence of float, optional
        One for each candidate, not negative; they are divided by their sum. Equal by default.
    scale : {"none", "l1", "l2", "max"}
        As in `Centroid`.
    """

    weights: Any = None
    scale: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is not None:
            checked_weights(self.weights, len(np.atleast_1d(self.weights)))

    def _combined(self, values: FloatArray) -> Aggregate:
        weights = checked_weights(self.weights, len(values))
        return Aggregate(combined(weights, values), weights if self.scale == "none" else None)


@dataclass(frozen=True)
class LowComplexity(Aggregator):
    """An explanation no more complex than any of several, from the region that they span.

    The complexity is the entropy of ``|φ_i| / Σ|φ|``. Bhatt, Weller and Moura (Evaluating and
    aggregating feature-based model explanations) show two algorithms in a figure only; these are
    our interpretations of them. Neither result sums to the model's output.

    Parameters
    ----------
    method : {"descent", "shrinking"}
        `"descent"` moves from each explanation towards their mean, and from the mean towards each,
        one feature at a time, and keeps a step only if the complexity falls. The result lies in the
        box that they span. `"shrinking"` shrinks their convex hull towards points of low
        complexity. The result is a convex combination. Its complexity is below that of every
        explanation only if they differ in the sign of a feature.
    scale : {"none", "l1", "l2", "max"}
        As in `Centroid`. The complexity does not depend on the size, but the mean and the region
        do.
    n_steps : int
        Number of steps of each feature from start to end (descent).
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
        super().__post_init__()
        checked_choice("method", self.method, ("descent", "shrinking"))
        for name in ("n_steps", "n_rounds", "n_points"):
            checked_count(name, getattr(self, name))
        what = "a number from 0 to below 1"
        checked_number("tolerance", self.tolerance, what, lambda share: 0 <= share < 1)

    def _combined(self, values: FloatArray) -> Aggregate:
        flat = values.reshape(len(values), -1, values.shape[-1])
        if self.method == "descent":
            return Aggregate(descend(flat, self.n_steps).reshape(values.shape[1:]))
        lowered, weights = shrink(flat, self.n_rounds, self.tolerance, self.n_points)
        weights = weights.reshape(*values.shape[1:-1], len(values))
        is_of_given = self.scale == "none"
        return Aggregate(lowered.reshape(values.shape[1:]), weights if is_of_given else None)

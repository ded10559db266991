"""Centroids: the explanation with the least sum of powers of distances to several others."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.optimize

from ..array_types import FloatArray
from ..errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtError,
)

_BISECTIONS = 200


def checked_order(distance: Any) -> float:
    """Return q of the distance ℓq."""
    if isinstance(distance, str):
        if distance not in ("l1", "l2"):
            raise InvalidArgumentError(
                "distance must be 'l1', 'l2', 'kendall', or the order q ≥ 1 of a norm; got "
                f"{distance!r}."
            )
        return float(distance[1])
    if isinstance(distance, bool) or not isinstance(distance, numbers.Real):
        raise InvalidArgumentTypeError(
            "distance must be 'l1', 'l2', 'kendall', or the order q ≥ 1 of a norm; got "
            f"{distance!r}."
        )
    if not 1 <= float(distance) < np.inf:
        raise InvalidArgumentError(f"distance must be an order q, 1 ≤ q < ∞; got {distance!r}.")
    return float(distance)


def checked_power(power: Any, order: float) -> float:
    """Return the power of the distance; by default q, so that features are independent."""
    if power is None:
        return order
    if isinstance(power, bool) or not isinstance(power, numbers.Real):
        raise InvalidArgumentTypeError(f"power must be a number, 1 or more; got {power!r}.")
    if not 1 <= float(power) < np.inf:
        raise InvalidArgumentError(
            f"power must be 1 or more, so that there is one minimum; got {power!r}."
        )
    if order == 1 and power != 1:
        raise InvalidArgumentError(
            f"distance='l1' with power={power!r} is not supported; pass power=1 for the median, or "
            "another distance, such as 1.1."
        )
    return float(power)


def centroid(candidates: FloatArray, order: float, power: float) -> FloatArray:
    """Return argmin_g Σ_i ‖g − g_i‖_q^p for candidates, (G, …, M).

    For q = p = 2 it is the mean. For q = p = 1 it is the median of each feature, or the middle of
    the two central values if G is even. For other q = p each feature is solved alone by bisection.
    Otherwise each input is solved by convex optimisation.
    """
    if order == power == 2:
        mean: FloatArray = candidates.mean(axis=0)
        return mean
    if order == power == 1:
        median: FloatArray = np.median(candidates, axis=0)
        return median
    if order == power:
        return _minimum_of_each_feature(candidates, power)
    flat = candidates.reshape(len(candidates), -1, candidates.shape[-1])
    nearest = [_minimum_of_one_input(flat[:, row], order, power) for row in range(flat.shape[1])]
    centroids: FloatArray = np.array(nearest).reshape(candidates.shape[1:])
    return centroids


def _minimum_of_each_feature(candidates: FloatArray, power: float) -> FloatArray:
    """Return the zero of the increasing derivative Σ sign(g − g_i)|g − g_i|^(p−1)."""
    low, high = candidates.min(axis=0), candidates.max(axis=0)
    scale = np.where(high > low, high - low, 1.0)
    for _ in range(_BISECTIONS):
        middle = low + (high - low) / 2
        step = (middle - candidates) / scale
        slope = (np.sign(step) * np.abs(step) ** (power - 1)).sum(axis=0)
        low, high = np.where(slope < 0, middle, low), np.where(slope > 0, middle, high)
        low, high = np.where(slope == 0, middle, low), np.where(slope == 0, middle, high)
        if ((high - low) <= 4 * np.finfo(float).eps * scale).all():
            break
    root: FloatArray = low + (high - low) / 2
    return root


def _minimum_of_one_input(points: FloatArray, order: float, power: float) -> FloatArray:
    """Return the minimum for one input, (G, M), within the box that the candidates span."""
    middle: FloatArray = points.mean(axis=0)
    scale = float(np.abs(points - middle).max())
    if scale == 0:
        return middle
    scaled = (points - middle) / scale
    if power == 1:
        kink = _optimal_candidate(scaled, order)
        if kink is not None:
            candidate: FloatArray = points[kink]
            return candidate
    start = scaled[_total(scaled, scaled, order, power).argmin()]
    # Not at the candidate itself, because the distance may have no derivative there.
    optimum = scipy.optimize.minimize(
        _total_and_slope,
        0.9 * start,
        args=(scaled, order, power),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(scaled.min(axis=0), scaled.max(axis=0), strict=True)),
        options={"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10},
    )
    if not np.isfinite(optimum.fun):
        raise ShapleyExtError(f"The centroid could not be computed: {optimum.message}")
    nearest: FloatArray = middle + scale * optimum.x
    return nearest


def _total(at: FloatArray, points: FloatArray, order: float, power: float) -> FloatArray:
    """Return Σ_i ‖g − g_i‖_q^p for several g, (n, M)."""
    away = np.linalg.norm(at[:, None] - points, ord=order, axis=2)
    total: FloatArray = (away**power).sum(axis=1)
    return total


def _slopes(at: FloatArray, points: FloatArray, order: float, power: float) -> FloatArray:
    """Return the derivative of each ‖g − g_i‖_q^p, (G, M); 0 at the candidate itself."""
    step = at - points
    away = np.linalg.norm(step, ord=order, axis=1, keepdims=True)
    share = np.abs(step) / np.where(away > 0, away, 1.0)
    direction = np.sign(step) * share ** (order - 1)
    slopes: FloatArray = power * away ** (power - 1) * direction
    return slopes


def _total_and_slope(
    at: FloatArray, points: FloatArray, order: float, power: float
) -> tuple[float, FloatArray]:
    total = float(_total(at[None], points, order, power)[0])
    return total, _slopes(at, points, order, power).sum(axis=0)


def _optimal_candidate(points: FloatArray, order: float) -> int | None:
    """Return the index of a candidate that minimises Σ_i ‖g − g_i‖_q, if there is one.

    A candidate is the minimum if the sum of the other slopes, in the dual norm, is at most the
    number of points equal to the candidate.
    """
    dual = order / (order - 1)
    for i, point in enumerate(points):
        n_here = int((points == point).all(axis=1).sum())
        pull = _slopes(point, points, order, 1.0).sum(axis=0)
        if np.linalg.norm(pull, ord=dual) <= n_here * (1 + 1e-12):
            return i
    return None

"""Explanations of lower complexity than any of the candidates they are made of.

Bhatt, Weller and Moura show their two algorithms as a figure only. What stands here is a reading of
it: descent, "gradient-descent style", and region shrinking.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..array_types import FloatArray, IntArray
from ..criteria.complexity import entropy_of_shares

_MOST_NUMBERS = 2**23
"""How many numbers the points of one step hold at most, 64 MiB."""


@dataclass(frozen=True)
class Lowered:
    """Explanations of low complexity.

    Attributes
    ----------
    values : array, (R, M)
        The explanations.
    weights : array, (R, G), or None
        What each candidate contributes, where the explanation is a convex combination.
    """

    values: FloatArray
    weights: FloatArray | None


def descend(candidates: FloatArray, n_steps: int) -> Lowered:
    """Walk between the candidates and their mean as long as the complexity falls.

    One walk starts at each candidate and goes towards the mean, and one starts at the mean and goes
    towards each candidate. In each of `n_steps` rounds every coordinate in turn is moved by 1 /
    `n_steps` of its whole way, and stays moved if the complexity falls. The end of least complexity
    is the answer. It lies in the box that the candidates span.

    Parameters
    ----------
    candidates : array, (G, R, M)
        The candidates.
    n_steps : int
        In how many steps a coordinate goes its way.
    """
    n_candidates, n_rows, n_features = candidates.shape
    mean = np.broadcast_to(candidates.mean(axis=0), candidates.shape)
    starts = np.concatenate([candidates, mean]).reshape(-1, n_features)
    goals = np.concatenate([mean, candidates]).reshape(-1, n_features)
    ends = _walk(starts.copy(), (goals - starts) / n_steps, n_steps)
    # Rounding must not carry a coordinate out of the box.
    box = candidates.min(axis=0), candidates.max(axis=0)
    ends = np.clip(ends.reshape(2 * n_candidates, n_rows, n_features), *box)
    options = np.concatenate([candidates, ends])
    levels = entropy_of_shares(options)
    # No explanation at all is no simpler one, unless a candidate says so itself.
    is_empty = (options == 0).all(axis=2)
    is_empty[:n_candidates] = False
    best = np.where(is_empty, np.inf, levels).argmin(axis=0)
    return Lowered(options[best, np.arange(n_rows)], None)


def _walk(points: FloatArray, steps: FloatArray, n_steps: int) -> FloatArray:
    """Move coordinates of all points, (B, M), one after the other, where that lowers complexity."""
    scale = np.abs(points).max(axis=1, keepdims=True) + np.abs(steps).max(axis=1, keepdims=True)
    scale = np.where(scale > 0, scale, 1.0)
    points, steps = points / scale, steps / scale
    for _ in range(n_steps):
        # Σ|φ| and Σ|φ| ln|φ| give the complexity, and change by one term with a coordinate.
        total, weighted = np.abs(points).sum(axis=1), _x_log_x(points).sum(axis=1)
        level = _level(total, weighted)
        for feature in range(points.shape[1]):
            old = points[:, feature]
            new = old + steps[:, feature]
            new_total = total + np.abs(new) - np.abs(old)
            new_weighted = weighted + _x_log_x(new) - _x_log_x(old)
            new_level = _level(new_total, new_weighted)
            is_lower = (new_level < level) & (new_total > 0)
            points[:, feature] = np.where(is_lower, new, old)
            total = np.where(is_lower, new_total, total)
            weighted = np.where(is_lower, new_weighted, weighted)
            level = np.where(is_lower, new_level, level)
    return points * scale


def _x_log_x(x: FloatArray) -> FloatArray:
    size = np.abs(x)
    product: FloatArray = size * np.log(np.where(size > 0, size, 1.0))
    return product


def _level(total: FloatArray, weighted: FloatArray) -> FloatArray:
    """Return the complexity ln S − (Σ|φ| ln|φ|) / S; infinite for zeros throughout."""
    safe = np.where(total > 0, total, 1.0)
    level: FloatArray = np.where(total > 0, np.log(safe) - weighted / safe, np.inf)
    return level


def shrink(candidates: FloatArray, n_rounds: int, tolerance: float, n_points: int) -> Lowered:
    """Shrink the convex hull of the candidates towards low complexity.

    In each round the point of least complexity is found on the segment between each two vertices,
    and of vertices and points as many of the lowest are kept as there were candidates. It ends when
    nothing changes, when the region has shrunk to `tolerance` of its width, or after `n_rounds`.
    The lowest vertex is the answer, a convex combination of the candidates.

    On a segment, between two places where a coordinate changes its sign, the complexity is
    quasi-concave: the shares move along a line, on which the entropy is concave. So its minimum is
    at an end or where a coordinate is zero, and only these points are looked at. It follows that
    where all candidates agree in every sign, the lowest candidate is the answer.

    Parameters
    ----------
    candidates : array, (G, R, M)
        The candidates.
    n_rounds : int
        How many rounds there are at most.
    tolerance : float
        Which part of its first width makes the region small.
    n_points : int
        How many zeros of coordinates are looked at on a segment, at most.
    """
    rows = [
        _shrink_one(candidates[:, row], n_rounds, tolerance, n_points)
        for row in range(candidates.shape[1])
    ]
    values = [value for value, _ in rows]
    return Lowered(np.array(values), np.array([weights for _, weights in rows]))


def _shrink_one(
    candidates: FloatArray, n_rounds: int, tolerance: float, n_points: int
) -> tuple[FloatArray, FloatArray]:
    """Return the answer for one input, (M,), and its weights, (G,)."""
    n_vertices = len(candidates)
    vertices, weights = candidates, np.eye(n_vertices)
    width = _width(vertices)
    for _ in range(n_rounds):
        if _width(vertices) <= tolerance * width:
            break
        points, of_points = _lowest_between(vertices, weights, n_points)
        pool = np.concatenate([vertices, points])
        pooled = np.concatenate([weights, of_points])
        kept = _lowest_distinct(pool, n_vertices)
        if (kept < len(vertices)).all() and len(kept) == len(vertices):
            break
        vertices, weights = pool[kept], pooled[kept]
    best = int(entropy_of_shares(vertices).argmin())
    return vertices[best], weights[best]


def _width(points: FloatArray) -> float:
    return float(np.ptp(points, axis=0).max(initial=0.0))


def _lowest_between(
    vertices: FloatArray, weights: FloatArray, n_points: int
) -> tuple[FloatArray, FloatArray]:
    """Return the inner point of least complexity of each segment that has one."""
    points, of_points = [], []
    for i, j in combinations(range(len(vertices)), 2):
        places = _zeros_between(vertices[i], vertices[j], n_points)
        if len(places) == 0:
            continue
        place = places[_lowest_on(vertices[i], vertices[j], places)]
        point = _between(vertices[i], vertices[j], place[None])[0]
        if not point.any():  # no explanation is no simple one
            continue
        points.append(point)
        of_points.append((1 - place) * weights[i] + place * weights[j])
    n_candidates, n_features = weights.shape[1], vertices.shape[1]
    return (
        np.array(points).reshape(-1, n_features),
        np.array(of_points).reshape(-1, n_candidates),
    )


def _zeros_between(a: FloatArray, b: FloatArray, n_points: int) -> FloatArray:
    """Return where on the segment from a to b coordinates change their sign."""
    crosses = a * b < 0
    places: FloatArray = np.unique(a[crosses] / (a[crosses] - b[crosses]))
    if len(places) > n_points:
        places = places[np.linspace(0, len(places) - 1, n_points).round().astype(np.intp)]
    return places


def _lowest_on(a: FloatArray, b: FloatArray, places: FloatArray) -> int:
    """Return which place on the segment has the least complexity."""
    size = max(1, _MOST_NUMBERS // len(a))
    levels = []
    for start in range(0, len(places), size):
        points = _between(a, b, places[start : start + size])
        level = entropy_of_shares(points)
        # Zeros throughout are no explanation.
        levels.append(np.where((points == 0).all(axis=1), np.inf, level))
    return int(np.concatenate(levels).argmin())


def _between(a: FloatArray, b: FloatArray, places: FloatArray) -> FloatArray:
    """Return the points (1 − t) a + t b; a coordinate that changes its sign at t is zero there."""
    t = places[:, None]
    points = (1 - t) * a + t * b
    crosses = a * b < 0
    zero_at = a[crosses] / (a[crosses] - b[crosses])
    # What is left of two numbers that cancel out is rounding, and no small attribution.
    is_zero = np.abs(zero_at - t) <= 4 * np.finfo(float).eps
    points[:, crosses] = np.where(is_zero, 0.0, points[:, crosses])
    return np.asarray(points)


def _lowest_distinct(pool: FloatArray, n: int) -> IntArray:
    """Return the n lowest of the points, equal ones once; earlier ones first among equals."""
    _, first = np.unique(pool, axis=0, return_index=True)
    first = np.sort(first)
    order = np.argsort(entropy_of_shares(pool[first]), kind="stable")
    return np.sort(first[order[:n]])

"""Explanations of lower complexity than the candidates that they are computed from.

Bhatt, Weller and Moura show their two algorithms, descent ("gradient-descent style") and region
shrinking, in a figure only. The functions here are our interpretation of it.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import xlogy

from ..array_types import FloatArray, IntArray
from ..criteria.attribution_arrays import entropy_of_shares

_MOST_NUMBERS = 2**23
"""Largest number of entries of the points compared at once, 64 MiB."""


def descend(candidates: FloatArray, n_steps: int) -> FloatArray:
    """Move points between the candidates and their mean while the complexity decreases.

    For each candidate, one point moves from the candidate towards the mean, and one from the mean
    towards the candidate. In each of `n_steps` rounds, each coordinate in turn is moved by 1 /
    `n_steps` of the distance from start to end; the move is undone if it does not reduce the
    complexity. The result is the final point of least complexity. It lies in the box that the
    candidates span.

    Parameters
    ----------
    candidates : array, (G, R, M)
        The candidates.
    n_steps : int
        Number of rounds.
    """
    n_candidates, n_rows, n_features = candidates.shape
    mean = np.broadcast_to(candidates.mean(axis=0), candidates.shape)
    starts = np.concatenate([candidates, mean]).reshape(-1, n_features)
    goals = np.concatenate([mean, candidates]).reshape(-1, n_features)
    ends = _walk(starts.copy(), (goals - starts) / n_steps, n_steps)
    # Rounding must not move a coordinate out of the box.
    box = candidates.min(axis=0), candidates.max(axis=0)
    ends = np.clip(ends.reshape(2 * n_candidates, n_rows, n_features), *box)
    options = np.concatenate([candidates, ends])
    levels = entropy_of_shares(options)
    # An explanation of zeros is not allowed as the result, unless a candidate is zero itself.
    is_empty = (options == 0).all(axis=2)
    is_empty[:n_candidates] = False
    best = np.where(is_empty, np.inf, levels).argmin(axis=0)
    return options[best, np.arange(n_rows)]


def _walk(points: FloatArray, steps: FloatArray, n_steps: int) -> FloatArray:
    """Move the coordinates of all points, (B, M), in turn where this reduces the complexity."""
    scale = np.abs(points).max(axis=1, keepdims=True) + np.abs(steps).max(axis=1, keepdims=True)
    scale = np.where(scale > 0, scale, 1.0)
    points, steps = points / scale, steps / scale
    for _ in range(n_steps):
        # Σ|φ| and Σ|φ| ln|φ| determine the complexity; a coordinate changes one term of each.
        sizes = np.abs(points)
        total, weighted = sizes.sum(axis=1), xlogy(sizes, sizes).sum(axis=1)
        level = _level(total, weighted)
        for feature in range(points.shape[1]):
            old, new = sizes[:, feature], np.abs(points[:, feature] + steps[:, feature])
            new_total = total + new - old
            new_weighted = weighted + xlogy(new, new) - xlogy(old, old)
            new_level = _level(new_total, new_weighted)
            is_lower = (new_level < level) & (new_total > 0)
            points[is_lower, feature] += steps[is_lower, feature]
            total = np.where(is_lower, new_total, total)
            weighted = np.where(is_lower, new_weighted, weighted)
            level = np.where(is_lower, new_level, level)
    return points * scale


def _level(total: FloatArray, weighted: FloatArray) -> FloatArray:
    """Return the complexity ln S − (Σ|φ| ln|φ|) / S; infinite if all attributions are zero."""
    safe = np.where(total > 0, total, 1.0)
    return np.where(total > 0, np.log(safe) - weighted / safe, np.inf)


def shrink(
    candidates: FloatArray, n_rounds: int, tolerance: float, n_points: int
) -> tuple[FloatArray, FloatArray]:
    """Shrink the convex hull of the candidates towards low complexity; return values and weights.

    Each round computes the point of least complexity on the segment between every two vertices.
    Of all vertices and points, those of least complexity become the next vertices, as many as there
    are candidates. The rounds end when nothing changes, when the region has shrunk to `tolerance`
    of its first width, or after `n_rounds`. The result is the vertex of least complexity, a convex
    combination of the candidates.

    Only the ends of a segment and the points where a coordinate is zero are compared. Between two
    such points the complexity is quasi-concave, because the shares move along a line, on which the
    entropy is concave; hence its minimum is one of these points. If all candidates agree in the
    sign of every feature, the result is therefore the candidate of least complexity.

    Parameters
    ----------
    candidates : array, (G, R, M)
        The candidates.
    n_rounds : int
        Largest number of rounds.
    tolerance : float
        Share of the first width at which the rounds end.
    n_points : int
        Largest number of points compared on a segment.
    """
    rows = [
        _shrink_one(candidates[:, row], n_rounds, tolerance, n_points)
        for row in range(candidates.shape[1])
    ]
    return np.array([value for value, _ in rows]), np.array([weights for _, weights in rows])


def _shrink_one(
    candidates: FloatArray, n_rounds: int, tolerance: float, n_points: int
) -> tuple[FloatArray, FloatArray]:
    """Return the result for one input, (M,), and its weights, (G,)."""
    vertices, weights = candidates, np.eye(len(candidates))
    least_width = tolerance * np.ptp(candidates, axis=0).max()
    for _ in range(n_rounds):
        if np.ptp(vertices, axis=0).max() <= least_width:
            break
        pool, pooled = list(vertices), list(weights)
        for i, j in combinations(range(len(vertices)), 2):
            level, position, point = _lowest_between(vertices[i], vertices[j], n_points)
            if level < np.inf:
                pool.append(point)
                pooled.append((1 - position) * weights[i] + position * weights[j])
        selected = _lowest_distinct(np.array(pool), len(candidates))
        if selected.tolist() == list(range(len(vertices))):
            break
        vertices, weights = np.array(pool)[selected], np.array(pooled)[selected]
    best = int(entropy_of_shares(vertices).argmin())
    return vertices[best], weights[best]


def _lowest_between(a: FloatArray, b: FloatArray, n_points: int) -> tuple[float, float, FloatArray]:
    """Return the inner point (1 − t) a + t b of least complexity where a coordinate is zero.

    With its complexity and t before it. The complexity is infinite if there is no such point, or
    only an explanation of zeros.
    """
    crosses = a * b < 0
    zero_at = a[crosses] / (a[crosses] - b[crosses])
    positions = np.unique(zero_at)
    if len(positions) > n_points:
        positions = positions[np.linspace(0, len(positions) - 1, n_points).round().astype(np.intp)]

    def lowest(t: FloatArray) -> tuple[float, float, FloatArray]:
        points = (1 - t) * a + t * b
        # Where two numbers cancel out, rounding would leave a small attribution.
        is_zero = np.abs(zero_at - t) <= 4 * np.finfo(float).eps
        points[:, crosses] = np.where(is_zero, 0.0, points[:, crosses])
        levels = np.where(points.any(axis=1), entropy_of_shares(points), np.inf)
        best = int(levels.argmin())
        return levels[best], t[best, 0], points[best]

    size = max(1, _MOST_NUMBERS // len(a))
    parts = [positions[start : start + size, None] for start in range(0, len(positions), size)]
    nowhere = (np.inf, 0.0, a)
    return min(map(lowest, parts), key=lambda found: found[0], default=nowhere)


def _lowest_distinct(pool: FloatArray, n: int) -> IntArray:
    """Return the indices of the n different points of least complexity; ties by their order."""
    _, first = np.unique(pool, axis=0, return_index=True)
    first = np.sort(first)
    order = np.argsort(entropy_of_shares(pool[first]), kind="stable")
    return np.sort(first[order[:n]])

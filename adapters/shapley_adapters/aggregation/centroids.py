"""Centroids: the explanation with the least sum of powers of distances to several others.

Of rankings, it is the one with the least sum of Kendall distances: the Kemeny–Young rule.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy  # which loads its submodules where they are used

from ..arguments import checked_number
from ..array_types import FloatArray, IntArray
from ..errors import InvalidArgumentError, ShapleyExtError

_LARGEST_EXACT = 60
"""Size of the largest block of features that is ranked exactly."""

_PROOF = 1e-6
"""The distance is a multiple of 1/2, so that a bound within this gap proves optimality."""


def checked_norm(distance: Any, power: Any) -> tuple[float | None, float]:
    """Return q of the distance ℓq, None for Kendall's, and its power; by default q."""
    if distance == "kendall":
        if power not in (None, 1):
            raise InvalidArgumentError(f"power must be 1 with distance='kendall'; got {power!r}.")
        return None, 1.0
    what = "'l1', 'l2', 'kendall', or the order q of a norm, 1 ≤ q < ∞"
    if isinstance(distance, str) and distance not in ("l1", "l2"):
        raise InvalidArgumentError(f"distance must be {what}; got {distance!r}.")
    number = int(distance[1]) if isinstance(distance, str) else distance
    order = checked_number("distance", number, what, lambda q: 1 <= q < np.inf)
    what = "a number, 1 or more, so that there is one minimum"
    exponent = order if power is None else power
    exponent = checked_number("power", exponent, what, lambda p: 1 <= p < np.inf)
    if order == 1 != exponent:
        raise InvalidArgumentError(
            f"distance='l1' with power={power!r} is not supported; pass power=1 for the median, or "
            "another distance, such as 1.1."
        )
    return order, exponent


def centroid(candidates: FloatArray, order: float, power: float) -> FloatArray:
    """Return argmin_g Σ_i ‖g − g_i‖_q^p for candidates, (G, …, M).

    For q = p = 2 it is the mean. For q = p = 1 it is the median of each feature, or the middle of
    the two central values if G is even. For other q = p each feature is solved alone by bisection.
    Otherwise each input is solved by convex optimisation.
    """
    if order == power == 2:
        return candidates.mean(axis=0)
    if order == power == 1:
        return np.median(candidates, axis=0)
    if order == power:
        return _minimum_of_each_feature(candidates, power)
    flat = candidates.reshape(len(candidates), -1, candidates.shape[-1])
    nearest = [_minimum_of_one_input(flat[:, row], order, power) for row in range(flat.shape[1])]
    return np.array(nearest).reshape(candidates.shape[1:])


def _minimum_of_each_feature(candidates: FloatArray, power: float) -> FloatArray:
    """Return the zero of the increasing derivative Σ sign(g − g_i)|g − g_i|^(p−1)."""
    low, high = candidates.min(axis=0), candidates.max(axis=0)
    scale = np.where(high > low, high - low, 1.0)
    for _ in range(60):  # more than the bits of a number
        middle = low + (high - low) / 2
        step = (middle - candidates) / scale
        slope = (np.sign(step) * np.abs(step) ** (power - 1)).sum(axis=0)
        low, high = np.where(slope <= 0, middle, low), np.where(slope >= 0, middle, high)
    return low + (high - low) / 2


def _minimum_of_one_input(points: FloatArray, order: float, power: float) -> FloatArray:
    """Return the minimum for one input, (G, M), within the box that the candidates span."""
    middle: FloatArray = points.mean(axis=0)
    scale = float(np.abs(points - middle).max())
    if scale == 0:
        return middle
    scaled = (points - middle) / scale
    kink = _optimal_candidate(scaled, order) if power == 1 else None
    if kink is not None:
        return points[kink]

    def total(at: FloatArray) -> float:
        return float((np.linalg.norm(at - scaled, ord=order, axis=1) ** power).sum())

    def slope(at: FloatArray) -> FloatArray:
        return _slopes(at, scaled, order, power).sum(axis=0)

    optimum = scipy.optimize.minimize(
        total,
        # Not at a candidate itself, because the distance may have no derivative there.
        0.9 * min(scaled, key=total),
        jac=slope,
        method="L-BFGS-B",
        bounds=list(zip(scaled.min(axis=0), scaled.max(axis=0), strict=True)),
        options={"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10},
    )
    if not np.isfinite(optimum.fun):
        raise ShapleyExtError(f"The centroid could not be computed: {optimum.message}")
    # The total is flat at its minimum: by its values only half of the digits can be found. A few
    # steps are enough; where the slope has a jump, more would not help.
    steps = {"fatol": np.finfo(float).eps, "maxiter": 20}
    root = optimum.x
    # There is 0 / 0 in a step to where the slope is zero already, or a step that SciPy refuses.
    with np.errstate(invalid="ignore"), suppress(ValueError):
        root = scipy.optimize.root(slope, root, method="krylov", options=steps).x
    nearest: FloatArray = min(optimum.x, root, key=lambda at: float(np.linalg.norm(slope(at))))
    return middle + scale * nearest


def _slopes(at: FloatArray, points: FloatArray, order: float, power: float) -> FloatArray:
    """Return the derivative of each ‖g − g_i‖_q^p, (G, M); 0 at the candidate itself."""
    step = at - points
    away = np.linalg.norm(step, ord=order, axis=1, keepdims=True)
    share = np.abs(step) / np.where(away > 0, away, 1.0)
    direction = np.sign(step) * share ** (order - 1)
    return power * away ** (power - 1) * direction


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


@dataclass(frozen=True)
class KemenyRanking:
    """A consensus ranking, and a bound of its distance to the best one.

    Attributes
    ----------
    order : array, (M,)
        The features, the first-ranked first.
    distance : float
        Sum of Kendall's distances to the candidates' rankings: the number of pairs in the opposite
        order. A tie of a candidate counts half.
    bound : float
        A lower bound of the distance of every ranking.
    """

    order: IntArray
    distance: float
    bound: float

    @property
    def gap(self) -> float:
        """The largest possible difference between this distance and the smallest one."""
        return max(0.0, self.distance - self.bound)

    @property
    def is_optimal(self) -> bool:
        """Whether the bound proves that no ranking has a smaller distance."""
        return self.gap <= _PROOF

    @property
    def scores(self) -> FloatArray:
        """The ranking as attributions, (M,): M for the first feature down to 1 for the last."""
        scores = np.empty(len(self.order))
        scores[self.order] = np.arange(len(self.order), 0, -1)
        return scores


def kemeny_young(keys: FloatArray, *, approximate: bool = False) -> KemenyRanking:
    """Return the ranking of least total Kendall distance to the rankings of several keys.

    Features are first split into blocks: a majority ranks each feature of a block before each
    feature of the later blocks, so that every optimal ranking keeps the order of the blocks. Each
    block is then ranked by integer programming (HiGHS), with one variable per pair and transitivity
    as constraints. The solver's bound is the proof.

    Parameters
    ----------
    keys : array, (G, M)
        Numbers by which each of G candidates ranks the features, the largest first; equal keys are
        a tie.
    approximate : bool
        Whether blocks of more than 60 features may be ranked by Borda counts and then improved by
        moves of single features. The bound is then the sum over pairs of the smaller number of
        votes.

    Returns
    -------
    KemenyRanking
        If several rankings are optimal, one of them.

    Raises
    ------
    InvalidArgumentError
        If a block has more than 60 features and `approximate` is False.
    """
    prefers = _preferences(keys)
    ranked, gap = [], 0.0
    for block in _blocks(prefers):
        inside = prefers[np.ix_(block, block)]
        if len(block) > _LARGEST_EXACT and not approximate:
            raise InvalidArgumentError(
                f"Majorities do not order a block of {len(block)} features, and the exact "
                f"consensus ranking is limited to {_LARGEST_EXACT}. Pass approximate=True for an "
                "approximate ranking with a bound, or group features."
            )
        order, gap_inside = (_exact if len(block) <= _LARGEST_EXACT else _by_moves)(inside)
        ranked.append(block[order])
        gap += gap_inside
    ranking = np.concatenate(ranked)
    distance = _distance(prefers, ranking)
    return KemenyRanking(ranking, distance, distance - gap)


def _preferences(keys: FloatArray) -> FloatArray:
    """Return how many candidates rank i before j, (M, M); ties count half."""
    before = keys[:, :, None] - keys[:, None, :]
    counts: FloatArray = (before > 0).sum(axis=0) + 0.5 * (before == 0).sum(axis=0)
    np.fill_diagonal(counts, 0.0)
    return counts


def _distance(prefers: FloatArray, order: IntArray) -> float:
    """Return the votes against an order."""
    ordered = prefers[np.ix_(order, order)]
    return float(np.tril(ordered, -1).sum())


def _blocks(prefers: FloatArray) -> list[IntArray]:
    """Return the features in blocks, from the first-ranked to the last-ranked block.

    The blocks are the strongly connected components of the graph with an edge from i to j unless a
    majority ranks j before i. Every two features are joined by an edge, so that the blocks have a
    linear order.
    """
    leads = prefers >= prefers.T
    np.fill_diagonal(leads, False)
    n_blocks, labels = scipy.sparse.csgraph.connected_components(
        scipy.sparse.csr_array(leads), directed=True, connection="strong"
    )
    blocks = [np.flatnonzero(labels == label) for label in range(n_blocks)]
    # Features of an earlier block have more outgoing edges.
    return sorted(blocks, key=lambda block: -int(leads[block[0]].sum()))


def _exact(prefers: FloatArray) -> tuple[IntArray, float]:
    """Return the best order of a block, and a bound of how far its votes are from the least."""
    m = len(prefers)
    if m == 1:
        return np.zeros(1, dtype=np.intp), 0.0
    first, second = np.triu_indices(m, 1)
    pair = np.full((m, m), -1)
    pair[first, second] = np.arange(len(first))
    solution = scipy.optimize.milp(
        # x = 1 if the first of a pair is ranked before the second, against the votes for the second
        prefers[second, first] - prefers[first, second],
        integrality=np.ones(len(first)),
        bounds=scipy.optimize.Bounds(0, 1),
        constraints=_transitivity(pair) if m > 2 else (),
        options={"mip_rel_gap": 0.0},
    )
    if solution.x is None:
        raise ShapleyExtError(f"The consensus ranking could not be computed: {solution.message}")
    before = np.zeros((m, m), dtype=bool)
    before[first, second] = solution.x > 0.5
    before[second, first] = solution.x <= 0.5
    order = np.argsort(-before.sum(axis=1), kind="stable")
    return order, solution.fun - solution.mip_dual_bound


def _transitivity(pair: IntArray) -> scipy.optimize.LinearConstraint:
    """Return 0 ≤ x_ij + x_jk − x_ik ≤ 1 for all i < j < k, which excludes cycles of three."""
    triples = np.array(list(combinations(range(len(pair)), 3)))
    i, j, k = triples.T
    columns = np.stack([pair[i, j], pair[j, k], pair[i, k]], axis=1)
    signs = np.tile([1.0, 1.0, -1.0], len(triples))
    rows = np.repeat(np.arange(len(triples)), 3)
    n_pairs = int(pair.max()) + 1
    # Indices of 32 bits, because the solver in SciPy before 1.12 refuses longer ones.
    indices = (rows.astype(np.int32), columns.ravel().astype(np.int32))
    matrix = scipy.sparse.csr_array((signs, indices), (len(triples), n_pairs))
    return scipy.optimize.LinearConstraint(matrix, 0, 1)


def _by_moves(prefers: FloatArray) -> tuple[IntArray, float]:
    """Return an order that no move of a single feature improves, and a bound as in `_exact`."""
    order = np.argsort(-prefers.sum(axis=1), kind="stable")
    improved = True
    while improved:
        improved = False
        for feature in range(len(prefers)):
            others = order[order != feature]
            # Votes against the feature at each rank, from pairs with features before and after it.
            ahead = np.concatenate([[0.0], np.cumsum(prefers[feature, others])])
            behind = np.concatenate([[0.0], np.cumsum(prefers[others, feature])])
            against = ahead + behind[-1] - behind
            best = int(np.argmin(against))
            if against[best] < against[np.flatnonzero(order == feature)[0]]:
                order, improved = np.insert(others, best, feature), True
    pairwise = np.triu(np.minimum(prefers, prefers.T), 1)
    return order, _distance(prefers, order) - float(pairwise.sum())

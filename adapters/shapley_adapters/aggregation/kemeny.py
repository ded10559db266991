"""The Kemeny–Young rule: the ranking nearest to given ones by Kendall's distance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.optimize
import scipy.sparse

from ..array_types import FloatArray, IntArray
from ..errors import InvalidArgumentError, ShapleyExtError

_LARGEST_EXACT = 60
"""Features that no majority tells apart, of which all orders are still decided exactly."""

_PROOF = 1e-6
"""The distance is a multiple of 1/2, so that a bound this near proves optimality."""


@dataclass(frozen=True)
class KemenyRanking:
    """A consensus ranking, and how good it is known to be.

    Attributes
    ----------
    order : array, (M,)
        The features, the first-ranked first.
    distance : float
        Σ_g of Kendall's distances to the given rankings: pairs ranked otherwise; a tie in a given
        ranking counts half.
    bound : float
        No ranking has a smaller distance.
    """

    order: IntArray
    distance: float
    bound: float

    @property
    def gap(self) -> float:
        """How far the distance may be from the smallest one."""
        return max(0.0, self.distance - self.bound)

    @property
    def is_optimal(self) -> bool:
        """Whether the bound proves that no ranking is nearer."""
        return self.gap <= _PROOF

    @property
    def scores(self) -> FloatArray:
        """The ranking as attributions, (M,): M for the first feature down to 1 for the last."""
        scores = np.empty(len(self.order))
        scores[self.order] = np.arange(len(self.order), 0, -1)
        return scores


def kemeny_young(keys: FloatArray, *, approximate: bool = False) -> KemenyRanking:
    """Return the ranking of least total Kendall distance to the rankings of several keys.

    Features are first split into blocks such that all of an earlier block beat all of a later one
    by majority; every optimal ranking keeps the blocks' order. Each block is then ranked by integer
    programming (one variable a pair, transitivity as constraints; HiGHS), with its bound as proof.

    Parameters
    ----------
    keys : array, (G, M)
        What each of G candidates ranks by, the largest first; equal keys are a tie.
    approximate : bool
        Whether blocks of more than 60 features may be ranked by Borda counts, improved by moving
        single features as long as that helps. The bound then counts, for every pair, the candidates
        outvoted at least.

    Returns
    -------
    KemenyRanking
        Of several optimal rankings, one.

    Raises
    ------
    InvalidArgumentError
        If a block has more than 60 features and `approximate` is False.
    """
    prefers = _preferences(keys)
    order: list[int] = []
    inside = bound_inside = 0.0
    for block in _blocks(prefers):
        own = prefers[np.ix_(block, block)]
        if len(block) <= _LARGEST_EXACT:
            ranked, bound = _exact(own)
        elif approximate:
            ranked, bound = _by_moves(own)
        else:
            raise InvalidArgumentError(
                f"{len(block)} features are not told apart by majorities, and the exact consensus "
                f"ranking goes up to {_LARGEST_EXACT}. Pass approximate=True for one that is near, "
                "with a bound, or group features."
            )
        order += [int(feature) for feature in block[ranked]]
        inside += _distance(own, ranked)
        bound_inside += bound
    ranking = np.array(order)
    distance = _distance(prefers, ranking)
    return KemenyRanking(ranking, distance, distance - inside + bound_inside)


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
    """Return the features in blocks, the winners first.

    They are the strongly connected parts of the graph in which i leads to j unless j beats i.
    Between any two features there is an edge at least one way, so that the blocks stand in line.
    """
    leads = prefers >= prefers.T
    np.fill_diagonal(leads, False)
    n_blocks, labels = scipy.sparse.csgraph.connected_components(
        scipy.sparse.csr_array(leads), directed=True, connection="strong"
    )
    blocks = [np.flatnonzero(labels == label) for label in range(n_blocks)]
    # Whoever leads to more features outside stands earlier.
    return sorted(blocks, key=lambda block: -int(leads[block[0]].sum()))


def _exact(prefers: FloatArray) -> tuple[IntArray, float]:
    """Return the best order of a block, and a bound on the votes against any."""
    m = len(prefers)
    if m == 1:
        return np.zeros(1, dtype=np.intp), 0.0
    first, second = np.triu_indices(m, 1)
    pair = np.full((m, m), -1)
    pair[first, second] = np.arange(len(first))
    # x = 1 where the first of a pair is ranked before the second; then the others are outvoted.
    against = prefers[second, first]
    gain = against - prefers[first, second]
    found = scipy.optimize.milp(
        gain,
        integrality=np.ones(len(gain)),
        bounds=scipy.optimize.Bounds(0, 1),
        constraints=_transitivity(pair) if m > 2 else (),
        options={"mip_rel_gap": 0.0},
    )
    if found.x is None:
        raise ShapleyExtError(f"No consensus ranking was found: {found.message}")
    before = np.zeros((m, m), dtype=bool)
    before[first, second] = found.x > 0.5
    before[second, first] = found.x <= 0.5
    order = np.argsort(-before.sum(axis=1), kind="stable")
    bound = float(found.mip_dual_bound) + float(prefers[first, second].sum())
    return order, bound


def _transitivity(pair: IntArray) -> scipy.optimize.LinearConstraint:
    """Return 0 ≤ x_ij + x_jk − x_ik ≤ 1 for all i < j < k: no circle of three."""
    triples = np.array(list(combinations(range(len(pair)), 3)))
    i, j, k = triples.T
    columns = np.stack([pair[i, j], pair[j, k], pair[i, k]], axis=1)
    signs = np.tile([1.0, 1.0, -1.0], len(triples))
    rows = np.repeat(np.arange(len(triples)), 3)
    n_pairs = int(pair.max()) + 1
    # Places in 32 bits: SciPy before 1.12 hands longer ones on to a solver that refuses them.
    places = (rows.astype(np.int32), columns.ravel().astype(np.int32))
    matrix = scipy.sparse.csr_array((signs, places), (len(triples), n_pairs))
    return scipy.optimize.LinearConstraint(matrix, 0, 1)


def _by_moves(prefers: FloatArray) -> tuple[IntArray, float]:
    """Return an order that no move of a single feature improves, and a bound."""
    order = np.argsort(-prefers.sum(axis=1), kind="stable")
    improved = True
    while improved:
        improved = False
        for feature in range(len(prefers)):
            moved = _best_move(prefers, order, feature)
            if moved is not None:
                order, improved = moved, True
    pairwise = np.minimum(prefers, prefers.T)
    return order, float(np.triu(pairwise, 1).sum())


def _best_move(prefers: FloatArray, order: IntArray, feature: int) -> IntArray | None:
    """Return the order with a feature where the fewest votes are against it, if that helps."""
    others = order[order != feature]
    place = int(np.flatnonzero(order == feature)[0])
    # Votes against the feature at each place: of those that are before it, and of those after.
    ahead = np.concatenate([[0.0], np.cumsum(prefers[feature, others])])
    behind = np.concatenate([[0.0], np.cumsum(prefers[others, feature])])
    against = ahead + (behind[-1] - behind)
    best = int(np.argmin(against))
    if against[best] >= against[place]:
        return None
    return np.insert(others, best, feature)

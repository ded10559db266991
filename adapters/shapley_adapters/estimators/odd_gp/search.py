"""Pairs of coalitions that make the posterior variances of Shapley values small.

If all players have equal strengths, these variances depend on the coalitions only, not on the game.
So the choice depends on the numbers of players and of pairs, and is made once for each of them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...array_types import CoalitionArray, FloatArray, IntArray
from ...coalitions.tables import first_occurrences, pack, random_subsets
from ...interactions.indices import single_players

MOST = 768
"""Beyond this, choosing costs more than it gains, and pairs are drawn."""

_INTERACTIONS, _LEVEL, _MOST_LEVEL, _NOISE = 0.3, 4.0, 0.9, 0.3
"""Prior for which pairs are chosen, where the variance of single players is 1: the variance of all
larger sets, the strength of a player in these times the number of players, its bound, and the
noise. It expects sets of all sizes."""

_LISTED = 13
"""Number of players up to which all pairs are candidates."""

_DRAWN, _DRAWN_EACH, _NEAR_HALF, _TWOS = 800, 1.2, 3, 32
"""Candidates that are drawn, of each kind: a minimum, and a number per chosen pair; how many
players less than half one kind has; and players whose coalitions of two are candidates."""

_WATCHED = 128
"""The choice lowers the variances of at most so many players."""

_EQUAL, _NOTHING = 1e-6, 1e-9
"""Gains closer than this, relatively, are equal: many are, by symmetry. And least variances."""


@lru_cache(maxsize=64)
def searched_pairs(n_players: int, n_pairs: int) -> CoalitionArray:
    """Return one coalition of each of n pairs, (n, M), each the best one after those before."""
    candidates = _candidates(n_players, n_pairs)
    n_pairs = min(n_pairs, len(candidates) - 1)
    search = _Search.before_any(candidates, n_pairs + 1)
    order: list[int] = []
    for step in range(n_pairs + 1):
        best = search.best(order) if step else 0  # the value of all players is known
        search.add(best, step)
        order.append(best)
    return candidates[order[1:]]


@dataclass
class _Search:
    """The posterior of the values of N candidates, given the choices so far.

    Attributes
    ----------
    signs : array, (N, M)
        The candidates, that of all players first.
    kernel : array, (2 M + 1,)
        The prior covariance of two values, by z · z′ + M.
    covariances : array, (P, N)
        Prior covariances of the Shapley values of some players, in place of all, and the values.
    variances : array, (N,)
        Posterior variances of the values.
    squares : array, (N,)
        Sums over the players of the squares of the posterior covariances.
    factors : array, (n, N)
        Rows of the kernel's factor, one for each choice.
    directions : array, (n, P)
        Covariances of the Shapley values with the value of each choice, given the earlier choices,
        over the standard deviation of that value.
    """

    signs: FloatArray
    kernel: FloatArray
    covariances: FloatArray
    variances: FloatArray
    squares: FloatArray
    factors: FloatArray
    directions: FloatArray

    @classmethod
    def before_any(cls, candidates: CoalitionArray, n_choices: int) -> _Search:
        """Return the search before the first choice."""
        n_players = candidates.shape[1]
        signs = np.where(candidates, 1.0, -1.0)
        index = single_players(n_players)
        tau = np.full(n_players, min(_LEVEL / n_players, _MOST_LEVEL))
        absent = np.arange(n_players + 1)  # of the second coalition's players from the first
        raised = (1 + tau[0]) ** (n_players - absent) * (1 - tau[0]) ** absent
        of_size = (raised - raised[::-1]) / 2 - tau[0] * (n_players - 2 * absent)
        share = _INTERACTIONS / of_size[0] if n_players > 2 else 0.0  # two have no larger odd set
        kernel = np.zeros(2 * n_players + 1)
        kernel[::-2] = (n_players - 2 * absent) / n_players + share * of_size
        covariances = 2 * signs / n_players
        covariances += index.covariances(signs, tau[None], np.array([share]), 1)
        covariances += _NOISE * index.weights_of_part(candidates, 1)
        variances = np.full(len(signs), kernel[-1] + _NOISE)
        variances[0] -= _NOISE
        watched = np.ascontiguousarray(covariances.T[:_WATCHED])
        return cls(
            signs=signs,
            kernel=kernel,
            covariances=watched,
            variances=variances,
            squares=(watched**2).sum(axis=0),
            factors=np.zeros((n_choices, len(signs))),
            directions=np.zeros((n_choices, len(watched))),
        )

    def best(self, order: list[int]) -> int:
        """Return the candidate that lowers the variances of the Shapley values most."""
        gains = self.squares / np.maximum(self.variances, _NOTHING)
        gains[order] = -1.0
        return int(np.argmax(gains >= (1 - _EQUAL) * gains.max()))

    def add(self, best: int, step: int) -> None:
        """Add a candidate to the choices."""
        products = (self.signs @ self.signs[best]).astype(np.intp)
        factors, directions = self.factors[:step], self.directions[:step]
        prior = self.kernel[products + self.signs.shape[1]]
        prior[best] += _NOISE * (best > 0)
        to_best = factors[:, best]
        root = np.sqrt(max(prior[best] - to_best @ to_best, _NOTHING))
        direction = (self.covariances[:, best] - to_best @ directions) / root
        less, along = np.stack([to_best, directions @ direction]) @ factors
        row = (prior - less) / root
        along = direction @ self.covariances - along
        self.squares -= 2 * along * row - (direction @ direction) * row**2
        self.variances -= row**2
        self.factors[step], self.directions[step] = row, direction


def _candidates(n_players: int, n_pairs: int) -> CoalitionArray:
    """Return all players, then one coalition of each candidate pair: single players first.

    If only some are candidates, these are coalitions of two players, of about half of the players,
    and of all sizes alike.
    """
    # The seed is fixed: the candidates are part of the method, not of a run. Their order is random,
    # because the first one is taken where several gain the same.
    rng = np.random.default_rng(n_players)
    full, singles = np.ones((1, n_players), dtype=bool), np.eye(n_players, dtype=bool)
    if n_players <= _LISTED:
        codes = rng.permutation(np.arange(1, 2 ** (n_players - 1)))
        others = [(codes[:, None] >> np.arange(n_players)) % 2 == 1]
    else:
        n_drawn = max(_DRAWN, int(_DRAWN_EACH * n_pairs))
        half = n_players // 2
        near = random_subsets(half - rng.integers(0, _NEAR_HALF, n_drawn), n_players, rng)
        of_all_sizes = random_subsets(rng.integers(2, half + 1, n_drawn), n_players, rng)
        twos = np.zeros((0, n_players), dtype=bool)
        if n_players <= 2 * _TWOS:
            pairs = np.array(list(itertools.combinations(range(min(n_players, _TWOS)), 2)))
            twos = singles[pairs].any(axis=1)
        others = [twos, near, of_all_sizes]
    candidates = np.concatenate([full, singles, *others])
    return candidates[first_of_each_pair(candidates)]


def first_of_each_pair(coalitions: CoalitionArray) -> IntArray:
    """Return the index of the first coalition of each distinct pair of complements, in order."""
    same_side = coalitions ^ coalitions[:, :1]
    first = first_occurrences(pack(same_side)[None])[0]
    return np.flatnonzero(first == np.arange(len(coalitions)))

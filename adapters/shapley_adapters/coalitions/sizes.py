"""Weights and random draws of coalition sizes.

The Shapley kernel gives a coalition of s of M players the weight 1 / (C(M, s) s (M − s)). All
coalitions of size s together have the weight 1 / (s (M − s)).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import scipy.special

from ..array_types import CoalitionArray, FloatArray, IntArray

SIZE_DISTRIBUTIONS = ("kernel", "leverage")


def kernel_total(n_players: int) -> float:
    """Return γ = Σ_s 1 / (s (M − s)), the Shapley-kernel weight of all coalitions together."""
    sizes = np.arange(1, n_players)
    return float((1.0 / (sizes * (n_players - sizes))).sum())


def kernel_mass(n_players: int) -> FloatArray:
    """Return the Shapley-kernel weight of all coalitions of size 1, …, M − 1, scaled to sum 1."""
    sizes = np.arange(1, n_players)
    weights = 1.0 / (sizes * (n_players - sizes))
    mass: FloatArray = weights / weights.sum()
    return mass


def smaller_sizes(members: CoalitionArray) -> IntArray:
    """Return the size of the smaller one of each coalition, (n, M), and its complement, (n,)."""
    n_members = members.sum(axis=1)
    smaller: IntArray = np.minimum(n_members, members.shape[1] - n_members)
    return smaller


def ranks_within_sizes(sizes: IntArray) -> IntArray:
    """Return how many coalitions before each one have its size, (n,)."""
    ranks = np.empty(len(sizes), dtype=np.intp)
    for size in np.unique(sizes):
        indices = np.flatnonzero(sizes == size)
        ranks[indices] = np.arange(len(indices))
    return ranks


def size_weights(n_players: int) -> tuple[FloatArray, FloatArray]:
    """Return the Shapley weights of sizes 0, …, M for players inside and outside the coalition.

    The Shapley value of player i is the sum of v(S) times the first weight if i is in S, and times
    minus the second weight if it is not.
    """
    sizes = np.arange(n_players + 1)
    inverse_counts = 1.0 / scipy.special.comb(n_players, sizes)
    with np.errstate(divide="ignore"):
        present = np.where(sizes > 0, inverse_counts / sizes, 0.0)
        absent = np.where(sizes < n_players, inverse_counts / (n_players - sizes), 0.0)
    return present, absent


def size_probabilities(n_players: int, distribution: str) -> FloatArray:
    """Return the probabilities of the sizes 1, …, M − 1.

    `"kernel"`: in proportion to their kernel weight (KernelSHAP). `"leverage"`: uniform, which is
    in proportion to the leverage of the coalitions in the regression (Musco and Witter, Leverage
    SHAP).
    """
    if distribution == "kernel":
        return kernel_mass(n_players)
    return np.full(n_players - 1, 1.0 / (n_players - 1))


_RANKS_AT_ONCE = 2**20
"""Largest number of ranks in memory; a rank takes eight times the memory of a coalition's entry."""


def random_subsets(
    sizes: npt.NDArray[np.integer], n_players: int, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Draw one coalition of each given size uniformly, (len(sizes), M)."""
    sizes = np.asarray(sizes)
    subsets = np.empty((len(sizes), n_players), dtype=bool)
    step = max(1, _RANKS_AT_ONCE // max(1, n_players))
    for start in range(0, len(sizes), step):
        batch = sizes[start : start + step]
        ranks = rng.permuted(np.tile(np.arange(n_players), (len(batch), 1)), axis=1)
        subsets[start : start + step] = ranks < batch[:, None]
    return subsets


def distinct_subsets(
    count: int, size: int, n_players: int, up_to_complement: bool, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Draw different coalitions of one size uniformly, (count, M).

    With `up_to_complement`, a coalition and its complement count as the same. This matters for
    coalitions of half of the players.
    """
    by_halves = up_to_complement and 2 * size == n_players
    n_subsets = math.comb(n_players, size) // (2 if by_halves else 1)
    if 2 * count > n_subsets:
        members = itertools.combinations(range(n_players), size)
        first = np.array(
            list(itertools.islice(members, n_subsets))
        )  # player 0 is in those of halves
        subsets = np.zeros((count, n_players), dtype=bool)
        np.put_along_axis(subsets, first[rng.permutation(n_subsets)[:count]], True, axis=1)
        return subsets
    distinct = np.zeros((0, n_players), dtype=bool)
    while len(distinct) < count:
        subsets = random_subsets(np.full(2 * (count - len(distinct)) + 8, size), n_players, rng)
        if by_halves:
            subsets ^= ~subsets[:, :1]  # of each pair the one with player 0
        candidates = np.concatenate([distinct, subsets])
        distinct = candidates[_first_indices(candidates)]
    return distinct[:count]


def _first_indices(coalitions: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return the index of the first occurrence of each different coalition, in order."""
    return np.sort(np.unique(np.packbits(coalitions, axis=1), axis=0, return_index=True)[1])


def capped_shares(proportions: FloatArray, caps: FloatArray, total: float) -> FloatArray:
    """Split `total` in given proportions; shares that would exceed their cap are set to it."""
    shares = np.zeros_like(proportions)
    is_open = np.ones(len(proportions), dtype=bool)
    while is_open.any():
        remainder = total - shares[~is_open].sum()
        shares[is_open] = remainder * proportions[is_open] / proportions[is_open].sum()
        exceeds = is_open & (shares > caps)
        if not exceeds.any():
            break
        shares[exceeds] = caps[exceeds]
        is_open &= ~exceeds
    return shares


def randomly_rounded(expected: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Round randomly to adjacent whole numbers, so that their expectation is `expected`.

    Their sum is also the sum of `expected`, rounded (systematic sampling).
    """
    ends = np.floor(np.concatenate([[0.0], np.cumsum(expected)]) + rng.random() + 1e-12)
    return np.diff(ends).astype(np.intp)

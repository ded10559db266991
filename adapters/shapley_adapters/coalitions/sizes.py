"""How coalition sizes are weighted and drawn.

The Shapley kernel gives a coalition of s of M players the weight 1 / (C(M, s) s (M − s)), hence all
coalitions of size s together 1 / (s (M − s)).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import scipy.special

from ..array_types import FloatArray

SIZE_DISTRIBUTIONS = ("kernel", "leverage")


def kernel_total(n_players: int) -> float:
    """Return γ = Σ_s 1 / (s (M − s)), the Shapley-kernel weight of all coalitions together."""
    sizes = np.arange(1, n_players)
    return float((1.0 / (sizes * (n_players - sizes))).sum())


def kernel_mass(n_players: int) -> FloatArray:
    """Return the Shapley-kernel weight of all coalitions of size 1, …, M − 1, scaled to sum 1."""
    sizes = np.arange(1, n_players)
    mass: FloatArray = 1.0 / (sizes * (n_players - sizes)) / kernel_total(n_players)
    return mass


def size_weights(n_players: int) -> tuple[FloatArray, FloatArray]:
    """Return the Shapley weights of sizes 0, …, M for players inside and outside the coalition.

    Player i counts v(S) with the first where it is in S, and with minus the second where it is not.
    """
    sizes = np.arange(n_players + 1)
    inverse_counts = 1.0 / scipy.special.comb(n_players, sizes)
    with np.errstate(divide="ignore"):
        present = np.where(sizes > 0, inverse_counts / sizes, 0.0)
        absent = np.where(sizes < n_players, inverse_counts / (n_players - sizes), 0.0)
    return present, absent


def size_probabilities(n_players: int, distribution: str) -> FloatArray:
    """Return how likely the sizes 1, …, M − 1 are to be drawn.

    `"kernel"` draws them in proportion to their kernel weight (KernelSHAP). `"leverage"` draws
    them uniformly, which is in proportion to the leverage that a coalition has in the regression
    (Musco and Witter, Leverage SHAP).
    """
    if distribution == "kernel":
        return kernel_mass(n_players)
    return np.full(n_players - 1, 1.0 / (n_players - 1))


_RANKS_AT_ONCE = 2**20
"""Ranks of players that are held at a time; each takes eight times the memory of its coalition."""


def random_subsets(
    sizes: npt.NDArray[np.integer], n_players: int, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Draw one coalition of each given size uniformly, (len(sizes), M)."""
    sizes = np.asarray(sizes)
    chosen = np.empty((len(sizes), n_players), dtype=bool)
    step = max(1, _RANKS_AT_ONCE // max(1, n_players))
    for start in range(0, len(sizes), step):
        some = sizes[start : start + step]
        ranks = rng.permuted(np.tile(np.arange(n_players), (len(some), 1)), axis=1)
        chosen[start : start + step] = ranks < some[:, None]
    return chosen


def distinct_subsets(
    count: int, size: int, n_players: int, up_to_complement: bool, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Draw different coalitions of one size uniformly, (count, M).

    With `up_to_complement`, a coalition counts as the same as its complement, which matters where
    it has half of the players.
    """
    by_halves = up_to_complement and 2 * size == n_players
    n_there = math.comb(n_players, size) // (2 if by_halves else 1)
    if 2 * count > n_there:
        members = itertools.combinations(range(n_players), size)
        first = np.array(list(itertools.islice(members, n_there)))  # player 0 is in those of halves
        chosen = np.zeros((count, n_players), dtype=bool)
        np.put_along_axis(chosen, first[rng.permutation(n_there)[:count]], True, axis=1)
        return chosen
    drawn = np.zeros((0, n_players), dtype=bool)
    while len(drawn) < count:
        more = random_subsets(np.full(2 * (count - len(drawn)) + 8, size), n_players, rng)
        if by_halves:
            more ^= ~more[:, :1]  # of each pair the one with player 0
        both = np.concatenate([drawn, more])
        drawn = both[_first_places(both)]
    return drawn[:count]


def _first_places(coalitions: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return where each different coalition stands first, in order."""
    return np.sort(np.unique(np.packbits(coalitions, axis=1), axis=0, return_index=True)[1])


def capped_shares(proportions: FloatArray, caps: FloatArray, total: float) -> FloatArray:
    """Split `total` in given proportions, but for shares that would exceed their cap."""
    shares = np.zeros_like(proportions)
    is_open = np.ones(len(proportions), dtype=bool)
    while is_open.any():
        rest = total - shares[~is_open].sum()
        shares[is_open] = rest * proportions[is_open] / proportions[is_open].sum()
        exceeds = is_open & (shares > caps)
        if not exceeds.any():
            break
        shares[exceeds] = caps[exceeds]
        is_open &= ~exceeds
    return shares


def randomly_rounded(expected: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Round to whole numbers next to the expected ones, whose expectation they are.

    Their sum is the rounded sum, too (systematic sampling).
    """
    ends = np.floor(np.concatenate([[0.0], np.cumsum(expected)]) + rng.random() + 1e-12)
    return np.diff(ends).astype(np.intp)

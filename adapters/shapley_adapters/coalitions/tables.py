"""Tables of coalitions: all, distinct ones, those within a budget, and draws of their sizes.

The Shapley kernel gives a coalition of s of M players the weight 1 / (C(M, s) s (M − s)). All
coalitions of size s together have the weight 1 / (s (M − s)).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.special

from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray, WordArray

SIZE_DISTRIBUTIONS = ("kernel", "leverage")

_RANKS_AT_ONCE = 2**20
"""Largest number of ranks in memory; a rank takes eight times the memory of a coalition's entry."""


@dataclass(frozen=True)
class CoalitionTable:
    """The distinct coalitions to evaluate, for all rows together or for each row.

    Attributes
    ----------
    coalitions : array, (T, C, M)
        T is 1 where all rows share the table, and the number of rows elsewhere.
    counts : array, (T,)
        Number of coalitions of each row; further entries of the C are padding.
    """

    coalitions: CoalitionArray
    counts: IntArray

    def first(self, n: int) -> CoalitionTable:
        """Return the first n coalitions of each row, or all where there are fewer."""
        return CoalitionTable(self.coalitions[:, :n], np.minimum(self.counts, n))

    def subset_rows(self, indices: IntArray) -> CoalitionTable:
        """Return the tables of some of the rows, given by their indices."""
        if len(self.coalitions) == 1:  # which all rows share
            return self
        counts = self.counts[indices]
        return CoalitionTable(self.coalitions[indices, : counts.max(initial=0)], counts)


@dataclass(frozen=True)
class Selection:
    """The first sampling units, as many as a budget pays for; a distinct coalition counts once.

    Attributes
    ----------
    table : CoalitionTable
        The known coalitions in their order, followed by those of the selected units.
    positions : array, (T, U, S)
        Indices of the coalitions of each unit into the table; 0 for units that are not selected.
    n_units : array, (T,)
        Number of selected units.
    """

    table: CoalitionTable
    positions: IntArray
    n_units: IntArray


def all_coalitions(n_players: int) -> CoalitionArray:
    """Return all 2^M coalitions, (2^M, M); player j is in coalition c where bit j of c is set."""
    numbers = np.arange(2**n_players)
    return (numbers[:, None] >> np.arange(n_players)) % 2 == 1


def end_points(n_players: int) -> CoalitionArray:
    """Return the empty coalition and that of all players, (2, M)."""
    return np.array([[False], [True]]).repeat(n_players, axis=1)


def select_units(known: CoalitionArray, sampling_units: WordArray, budget: int) -> Selection:
    """Select as many of the first sampling units as `budget` pays for.

    A sampling unit is a few coalitions that are of use only together, such as a coalition and its
    complement. A coalition that is known or part of an earlier unit costs nothing, so that
    duplicates leave budget for further units.

    Parameters
    ----------
    known : array, (n, M)
        Distinct coalitions that are already paid from the same budget.
    sampling_units : array of words, (T, U, S, W)
        U units of S packed coalitions each, in the order of selection.
    budget : int
        The number of distinct coalitions that each row may have, the known ones included.
    """
    n_tables, n_units, unit_size, n_words = sampling_units.shape
    n_known, n_players = known.shape
    offered = np.empty(
        (n_tables, n_known + n_units * unit_size, n_words), dtype=sampling_units.dtype
    )
    offered[:, :n_known] = pack(known)
    offered[:, n_known:] = sampling_units.reshape(n_tables, -1, n_words)

    first = first_occurrences(offered)
    is_new = first == np.arange(offered.shape[1])
    n_distinct = np.cumsum(is_new, axis=1)
    after_unit = n_distinct[:, n_known - 1 :: unit_size]  # (T, U + 1): before any unit, after each
    n_selected = (after_unit[:, 1:] <= budget).sum(axis=1)
    counts = np.take_along_axis(after_unit, n_selected[:, None], axis=1)[:, 0]

    slots = n_distinct - 1
    table = np.zeros((n_tables, counts.max(), n_words), dtype=sampling_units.dtype)
    rows, columns = np.nonzero(is_new & (slots < counts[:, None]))
    table[rows, slots[rows, columns]] = offered[rows, columns]

    of_all_tables = first[:, n_known:] + (np.arange(n_tables) * offered.shape[1])[:, None]
    positions = slots.ravel()[of_all_tables].reshape(n_tables, n_units, unit_size)
    positions[np.arange(n_units) >= n_selected[:, None]] = 0
    return Selection(CoalitionTable(unpack(table, n_players), counts), positions, n_selected)


@dataclass(frozen=True)
class UnevenSelection:
    """The first sampling units of different sizes, as many as a budget pays for.

    Attributes
    ----------
    table : CoalitionTable
        The known coalitions in their order, followed by those of the selected units.
    positions : array, (n,)
        Indices of the coalitions of the selected units into the table, unit by unit.
    n_units : int
        Number of selected units.
    """

    table: CoalitionTable
    positions: IntArray
    n_units: int


def select_uneven_units(
    known: CoalitionArray, words: WordArray, sizes: IntArray, budget: int
) -> UnevenSelection:
    """Select units as `select_units` does, where units have different sizes.

    Parameters
    ----------
    known : array, (n, M)
        Distinct coalitions that are already paid from the same budget.
    words : array of words, (N, W)
        The packed coalitions of the units, one unit after the other.
    sizes : array, (U,)
        Number of coalitions of each unit.
    budget : int
        The number of distinct coalitions, the known ones included.
    """
    n_known, n_players = known.shape
    offered = np.concatenate([pack(known), words])
    first = first_occurrences(offered[None])[0]
    is_new = first == np.arange(len(offered))
    n_distinct = np.cumsum(is_new)
    ends = n_known + np.cumsum(sizes)
    n_units = int((n_distinct[ends - 1] <= budget).sum())
    n_selected = int(ends[n_units - 1]) if n_units else n_known
    table = unpack(offered[:n_selected][is_new[:n_selected]], n_players)
    positions = (n_distinct - 1)[first[n_known:n_selected]]
    return UnevenSelection(CoalitionTable(table[None], np.array([len(table)])), positions, n_units)


def units_within(positions: IntArray, n_coalitions: int) -> IntArray:
    """Count the first units whose coalitions are all among the first of the table, (T,).

    Parameters
    ----------
    positions : array, (T, U, S)
        Indices of the coalitions of each unit into the table, from `select_units`. Units that are
        not selected count, too, because their indices are 0.
    n_coalitions : int
        The number of first coalitions.
    """
    is_served = positions.max(axis=2) < n_coalitions
    return np.logical_and.accumulate(is_served, axis=1).sum(axis=1)


def first_occurrences(words: WordArray) -> IntArray:
    """Return the index of the first equal coalition, for each packed one in (T, n, W)."""
    order = (
        np.argsort(words[:, :, 0], axis=1, kind="stable")
        if words.shape[2] == 1
        else np.lexsort(np.moveaxis(words, 2, 0), axis=1)  # stable, too
    )
    n_tables, n_coalitions, n_words = words.shape
    offsets = (np.arange(n_tables) * n_coalitions)[:, None]
    order = order + offsets  # indices into all tables together, which are faster to look up
    ordered = words.reshape(-1, n_words)[order]
    starts = np.ones(order.shape, dtype=bool)
    starts[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=2)
    start = np.maximum.accumulate(np.where(starts, np.arange(n_coalitions), 0), axis=1)
    first = np.empty(order.size, dtype=np.intp)
    first[order] = order.ravel()[start + offsets]
    return first.reshape(order.shape) - offsets


def pack(coalitions: CoalitionArray) -> WordArray:
    """Pack the players of each coalition, (..., M), into as few words as possible, (..., W).

    Unions and intersections of sets of players are bitwise operations. Bits of players that do not
    exist are 0.
    """
    bits = np.packbits(coalitions, axis=-1)
    n_bytes = bits.shape[-1]
    # Narrow words sort faster; from nine bytes on there are several words of eight.
    width = next((w for w in (1, 2, 4, 8) if n_bytes <= w), 8)
    padded = np.zeros((*bits.shape[:-1], -(-n_bytes // width) * width), dtype=np.uint8)
    padded[..., :n_bytes] = bits
    return padded.view(f"u{width}")


def unpack(words: WordArray, n_players: int) -> CoalitionArray:
    """Undo `pack`."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, count=n_players)
    return bits.view(bool)


def kernel_total(n_players: int) -> float:
    """Return γ = Σ_s 1 / (s (M − s)), the Shapley-kernel weight of all coalitions together."""
    sizes = np.arange(1, n_players)
    return float((1.0 / (sizes * (n_players - sizes))).sum())


def kernel_mass(n_players: int) -> FloatArray:
    """Return the Shapley-kernel weight of all coalitions of size 1, …, M − 1, scaled to sum 1."""
    sizes = np.arange(1, n_players)
    weights = 1.0 / (sizes * (n_players - sizes))
    return weights / weights.sum()


def smaller_sizes(members: CoalitionArray) -> IntArray:
    """Return the size of the smaller one of each coalition, (n, M), and its complement, (n,)."""
    n_members = members.sum(axis=1)
    return np.minimum(n_members, members.shape[1] - n_members)


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
        packed = np.packbits(candidates, axis=1)
        distinct = candidates[np.sort(np.unique(packed, axis=0, return_index=True)[1])]
    return distinct[:count]


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


def complements(
    coalitions: CoalitionArray, drawn: BoolArray | None = None
) -> tuple[IntArray, IntArray]:
    """Return the indices of one coalition of each pair of complements, and of the other or −1.

    With draws, (C, D), the two of a pair have the same.

    Those of coalitions, (C, M), of which that of no player is the first, that of all the second.
    The pair of these two comes first, with all players as the first of it.
    """
    positions = {key.tobytes(): index for index, key in enumerate(pack(coalitions))}
    others = np.array([positions.get(key.tobytes(), -1) for key in pack(~coalitions)])
    if drawn is not None:
        others[(drawn != drawn[others]).any(axis=1)] = -1
    others[:2] = 1, 0
    indices = np.arange(len(others))
    first = np.flatnonzero((others < 0) | (others > indices))
    first = np.concatenate([[1], first[first > 1]])
    return first, others[first]

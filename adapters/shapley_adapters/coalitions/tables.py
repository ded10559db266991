"""Tables of coalitions: all of them, distinct ones, and those within a budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..array_types import CoalitionArray, IntArray, WordArray


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

    @property
    def is_shared(self) -> bool:
        """Whether one table serves all rows."""
        return len(self.coalitions) == 1

    def first(self, n: int) -> CoalitionTable:
        """Return the first n coalitions of each row, or all where there are fewer."""
        return CoalitionTable(self.coalitions[:, :n], np.minimum(self.counts, n))

    def part(self, start: int, stop: int) -> CoalitionTable:
        """Return the coalitions of each row from `start` to `stop`, or to its last one."""
        counts = np.maximum(np.minimum(self.counts, stop) - start, 0)
        return CoalitionTable(self.coalitions[:, start:stop], counts)

    def subset_rows(self, indices: IntArray) -> CoalitionTable:
        """Return the tables of some of the rows, given by their indices."""
        if self.is_shared:
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
    coalitions: CoalitionArray = (numbers[:, None] >> np.arange(n_players)) % 2 == 1
    return coalitions


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
    counts: IntArray = np.logical_and.accumulate(is_served, axis=1).sum(axis=1)
    return counts


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
    indices: IntArray = first.reshape(order.shape) - offsets
    return indices


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

"""Random orders in which the players of each union are together, refined where it matters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse

from ...array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ...coalitions.tables import CoalitionTable
from ...hierarchies.player_tree import Unions
from ..protocol import Design, DesignRequest, GraphView
from ..value_errors import SparseMatrix

_SPLIT_SHARE = 4
"""A round splits at most one of so many of the present unions, and at least one. Images of 32 × 32
and texts of 256 words err the same with 2, 4 and 8."""

_DECIMALS = 9
"""Decimals of the squares by which unions are chosen, as shares of the largest."""


@dataclass(frozen=True)
class NestedOrders(Design):
    """Pairs of an order and its reverse, of the unions that have been split so far.

    When a union is split, its parts take its place in each order. The values of what comes before
    and after them are known, so that k parts cost k − 1 coalitions in each order.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions.
    view : GraphView
        The M players of the coalitions in the tree.
    unions : Unions
        The unions of these players.
    seed : int
        Seed of the orders of the parts of each union.
    budget : int
        The number of coalitions up to which unions are split.
    seen : array, (n,)
        The unions that have been in an order: that of all players, then parts of those split.
    lower, upper : arrays, (n, U, 2)
        For each of these and each of U pairs of orders, the coalitions before and after the union,
        as indices into the table.
    ends : array, (n,)
        The number of coalitions of the table when a union was first in the orders.
    pair_ends : array, (U,)
        The number of coalitions of the table when a pair was drawn for all these unions.
    numbers : dict of bytes to int
        The index of each packed coalition of the table.
    may_split : bool
        Whether values decide on further splits.
    """

    view: GraphView
    unions: Unions
    seed: int
    budget: int
    seen: IntArray
    lower: IntArray
    upper: IntArray
    ends: IntArray
    pair_ends: IntArray
    numbers: dict[bytes, int] = field(repr=False)
    may_split: bool = False

    @property
    def fewest_coalitions(self) -> int:
        """Those of two pairs of orders of the parts of all players."""
        n_parts = int(self.unions.n_parts[0])
        return int(max(self.ends[n_parts], self.pair_ends[:2].max()))

    @property
    def n_before_choice(self) -> int:
        """All coalitions, if their values decide on further splits."""
        return int(self.table.counts[0]) if self.may_split else 0

    @property
    def is_split(self) -> BoolArray:
        """Which of the unions seen are split: those whose first part has been seen."""
        has_parts = self.unions.n_parts[self.seen] > 0
        is_split: BoolArray = has_parts & np.isin(self.unions.first_parts[self.seen], self.seen)
        return is_split

    @property
    def splits(self) -> tuple[IntArray, list[IntArray]]:
        """The unions that are split, and the parts of each, as places among those seen."""
        places = np.full(len(self.unions.starts), -1)
        places[self.seen] = np.arange(len(self.seen))
        wholes = np.flatnonzero(self.is_split)
        return wholes, [places[self.unions.parts(union)] for union in self.seen[wholes].tolist()]

    def players_in(self, place: int) -> IntArray:
        """Return the players of one of the unions seen."""
        return self.unions.players(int(self.seen[place]))

    def places_of_players(self, unsplit: IntArray) -> IntArray:
        """Return for each player which of the unsplit unions, given by their places, has it."""
        place = np.empty(len(self.unions.order), dtype=np.intp)
        for number, union in enumerate(self.seen[unsplit].tolist()):
            place[self.unions.players(union)] = number
        return place

    def of_all_players(self, numbers: FloatArray, absent: float = 0.0) -> FloatArray:
        """Return numbers of the M players, (R, M, K), as those of all players of the tree."""
        n_all = self.view.graph.n_players
        if numbers.shape[1] == n_all:
            return numbers
        everyone = np.full((len(numbers), n_all, numbers.shape[2]), absent)
        everyone[:, self.view.players] = numbers
        return everyone

    def within(self, n_coalitions: int) -> NestedOrders:
        """Return the unions and the pairs of orders that the first coalitions of the table have."""
        keep, pairs = self.ends <= n_coalitions, self.pair_ends <= n_coalitions
        return replace(
            self,
            table=self.table.first(n_coalitions),
            seen=self.seen[keep],
            lower=self.lower[keep][:, pairs],
            upper=self.upper[keep][:, pairs],
            ends=self.ends[keep],
            pair_ends=self.pair_ends[pairs],
            may_split=False,
        )

    def contributions(self, values: ValueArray) -> FloatArray:
        """Return what each union seen adds in each order, (R, n, U, 2, K)."""
        steps: FloatArray = np.take(values, self.upper, axis=1)
        steps -= np.take(values, self.lower, axis=1)
        return steps

    def unit_weights(self, places: IntArray) -> SparseMatrix:
        """Return the weight of each value in each pair's mean, a row for each union and pair."""
        n_rows = self.lower[places].size // 2
        rows = np.repeat(np.arange(n_rows), 2)
        columns = self.upper[places].ravel(), self.lower[places].ravel()
        weights = np.repeat([0.5, -0.5], len(rows))
        index = np.concatenate([rows, rows]), np.concatenate(columns)
        shape = (n_rows, self.table.coalitions.shape[1])
        return scipy.sparse.csr_matrix((weights, index), shape=shape)


def first_order(request: DesignRequest, unions: Unions, n_pairs: int) -> NestedOrders:
    """Return pairs of orders in which only the union of all players is placed."""
    n_known = len(request.known)
    ends = np.zeros((1, n_pairs, 2), dtype=np.intp)
    return NestedOrders(
        table=CoalitionTable(request.known[None], np.array([n_known])),
        view=request.required_graph_view,
        unions=unions,
        seed=int(request.rng.integers(2**62)),
        budget=request.budget,
        seen=np.zeros(1, dtype=np.intp),
        lower=ends,
        upper=ends + 1,
        ends=np.full(1, n_known),
        pair_ends=np.full(n_pairs, n_known),
        numbers={_key(coalition): number for number, coalition in enumerate(request.known)},
    )


class Refinement:
    """Nested orders in the making: unions are split in all pairs of orders, or pairs are added."""

    def __init__(self, orders: NestedOrders) -> None:
        self.orders = orders
        self.unions = orders.unions
        self.coalitions = list(orders.table.coalitions[0])
        self.numbers = dict(orders.numbers)
        self.places = {union: place for place, union in enumerate(orders.seen.tolist())}
        self.ends, self.pair_ends = orders.ends.tolist(), orders.pair_ends.tolist()
        # Of each union seen and each pair: the coalitions before and after it, in both orders.
        self.lower, self.upper = orders.lower.tolist(), orders.upper.tolist()

    @property
    def n_left(self) -> int:
        """The number of coalitions that the budget still pays for."""
        return self.orders.budget - len(self.coalitions)

    def unsplit(self) -> list[int]:
        """Return the unions that can be split, in the order in which they were seen."""
        n_parts, first = self.unions.n_parts, self.unions.first_parts
        return [u for u in self.places if n_parts[u] and int(first[u]) not in self.places]

    def cost(self, union: int) -> int:
        """Return the most coalitions that the split of a union adds."""
        return 2 * len(self.pair_ends) * (int(self.unions.n_parts[union]) - 1)

    def split(self, union: int) -> None:
        """Put the parts of a union in its place, in a random order and its reverse."""
        parts = self.unions.parts(union).tolist()
        for part in parts:
            self.places[part] = len(self.lower)
            self.lower.append([])
            self.upper.append([])
        for pair in range(len(self.pair_ends)):
            self._place_parts(union, pair)
        self.ends += [len(self.coalitions)] * len(parts)

    def add_pair(self) -> bool:
        """Add an order of all unions seen and its reverse; return False if they cost too much."""
        n_before, pair = len(self.coalitions), len(self.pair_ends)
        self.lower[0].append([0, 0])
        self.upper[0].append([1, 1])
        for union in list(self.places):
            if self.unions.n_parts[union] and int(self.unions.first_parts[union]) in self.places:
                self._place_parts(union, pair)
        self.pair_ends.append(len(self.coalitions))
        if self.n_left >= 0:
            return True
        self.pair_ends.pop()
        for of_orders in (*self.lower, *self.upper):
            of_orders.pop()
        del self.coalitions[n_before:]
        self.numbers = {key: n for key, n in self.numbers.items() if n < n_before}
        return False

    def _place_parts(self, union: int, pair: int) -> None:
        """Put the parts of a union in its place in one pair of orders."""
        parts = self.unions.parts(union).tolist()
        # Each has a stream of its own, so that the other splits and pairs have no influence.
        rng = np.random.default_rng([self.orders.seed, pair, union])
        order = rng.permutation(len(parts)).tolist()
        start, stop = (
            of_orders[self.places[union]][pair] for of_orders in (self.lower, self.upper)
        )
        limits: list[list[list[int]]] = [[[], []] for _ in parts]
        for which, ranked in enumerate((order, order[::-1])):
            before = start[which]
            coalition = self.coalitions[before]
            for part in ranked[:-1]:
                coalition = coalition.copy()
                coalition[self.unions.players(parts[part])] = True
                after = self._number(coalition)
                limits[part][0].append(before)
                limits[part][1].append(after)
                before = after
            limits[ranked[-1]][0].append(before)
            limits[ranked[-1]][1].append(stop[which])
        for part, (before_part, after_part) in zip(parts, limits, strict=True):
            self.lower[self.places[part]].append(before_part)
            self.upper[self.places[part]].append(after_part)

    def _number(self, coalition: CoalitionArray) -> int:
        key = _key(coalition)
        if key not in self.numbers:
            self.numbers[key] = len(self.coalitions)
            self.coalitions.append(coalition)
        return self.numbers[key]

    def design(self) -> NestedOrders:
        """Return the orders, whose unions may be split further if the budget pays for it."""
        return replace(
            self.orders,
            table=CoalitionTable(np.array(self.coalitions)[None], np.array([len(self.coalitions)])),
            seen=np.array(list(self.places)),
            lower=np.array(self.lower),
            upper=np.array(self.upper),
            ends=np.array(self.ends),
            pair_ends=np.array(self.pair_ends),
            may_split=any(self.cost(union) <= self.n_left for union in self.unsplit()),
            numbers=self.numbers,
        )

    def split_best(self, unknown: FloatArray) -> None:
        """Split the unions whose players are known least, as far as the budget goes.

        Parameters
        ----------
        unknown : array, (n,)
            The expected sum of squared distances of the players of each union seen from their equal
            share of its value.
        """
        # Rounded, so that rounding errors of the model choose between no equal ones.
        rounded = np.round(unknown / max(unknown.max(), np.finfo(float).tiny), _DECIMALS)
        best = sorted(self.unsplit(), key=lambda union: -rounded[self.places[union]])
        n_most = -(-len(best) // _SPLIT_SHARE)
        for union in best:
            if n_most and self.cost(union) <= self.n_left:
                self.split(union)
                n_most -= 1


def _key(coalition: CoalitionArray) -> bytes:
    return np.packbits(coalition).tobytes()

"""Unions of players in contexts, which random orders of their parts split where it matters."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np
import scipy.sparse

from ...array_types import BoolArray, CoalitionArray, FloatArray, IntArray
from ...coalitions.tables import CoalitionTable
from ...hierarchies.player_tree import Unions
from ..protocol import Design, DesignRequest, GraphView
from ..value_errors import SparseMatrix

_SPLIT_SHARE = 2
"""A round adds orders to a context of one of so many of the unions that can be split."""

_ROUND_SHARE = 16
"""Later, a round adds orders to one context for so many coalitions."""

_MAX_LISTED = 5
"""Up to so many parts, no order of a context comes twice."""

_DECIMALS = 9
"""Decimals of the gains by which contexts are chosen, as shares of the largest."""


@dataclass(frozen=True)
class UnionContexts(Design):
    """Unions in contexts: what is before a union in an order of all players.

    A context is split by an order of the parts of its union, which take its place. The values
    before and after it are known, so that k parts cost k − 1 coalitions. Each part is then in a
    context of its own. Further orders of the same context average the contributions of the parts.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions.
    view : GraphView
        The M players of the coalitions in the tree.
    unions : Unions
        The unions of these players.
    seed : int
        Seed of the orders.
    budget : int
        The number of coalitions up to which contexts are split.
    union : array, (n,)
        The union of each context; the first is that of all players. Parts of a split context are
        neighbours, in the order of their numbers.
    before, after : arrays, (n,)
        The coalitions without and with the union, as indices into the table.
    parents : array, (n,)
        The context from which an order made it; −1 for the first.
    ranks : array, (n,)
        The number of contexts of the same union that were split before; −1 if it is not split.
    ends : array, (n,)
        The number of coalitions of the table when a context was made.
    numbers : dict of bytes to int
        The index of each packed coalition of the table.
    may_grow : bool
        Whether values decide on further orders.
    """

    view: GraphView
    unions: Unions
    seed: int
    budget: int
    union: IntArray
    before: IntArray
    after: IntArray
    parents: IntArray
    ranks: IntArray
    ends: IntArray
    numbers: dict[bytes, int] = field(repr=False)
    may_grow: bool = False

    @property
    def fewest_coalitions(self) -> int:
        """Those of an order of the parts of all players and its reverse."""
        n_parts = int(self.unions.n_parts[0])
        return int(self.ends[2 * n_parts])

    @property
    def n_before_choice(self) -> int:
        """All coalitions, if their values decide on further orders."""
        return int(self.table.counts[0]) if self.may_grow else 0

    @cached_property
    def n_orders(self) -> IntArray:
        """The number of orders of each context, (n,)."""
        n_made = np.bincount(self.parents[1:], minlength=len(self.parents))
        return n_made // np.maximum(self.unions.n_parts[self.union], 1)

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of each context in the value of its union, (n,).

        The orders of a context have equal weights. Those of a union sum to one, with what contexts
        that are not split leave to be predicted.
        """
        weights = np.ones(len(self.parents))
        of_parents = 1 / np.maximum(self.n_orders, 1)
        for context, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                weights[context] = weights[parent] * of_parents[parent]
        return weights

    @cached_property
    def value_weights(self) -> SparseMatrix:
        """The weight of each value in that of each union, (U, C), if parts have equal shares."""
        unions = self.unions
        shape = len(unions.starts), len(self.table.coalitions[0])
        is_open = self.n_orders == 0
        places = np.concatenate([self.after[is_open], self.before[is_open]])
        signed = np.concatenate([self.weights[is_open], -self.weights[is_open]])
        weights = scipy.sparse.csr_matrix(
            (signed, (np.tile(self.union[is_open], 2), places)), shape
        )
        for parents, parts in unions.levels:
            shares = unions.sizes[parts] / unions.sizes[parents]
            passed = scipy.sparse.csr_matrix((shares, (parts, parents)), (shape[0],) * 2)
            weights = weights + passed @ weights
        return weights

    def of_all_players(self, numbers: FloatArray) -> FloatArray:
        """Return numbers of the M players, (R, M, K), as those of all players of the tree."""
        n_all = self.view.graph.n_players
        if numbers.shape[1] == n_all:
            return numbers
        everyone = np.zeros((len(numbers), n_all, numbers.shape[2]))
        everyone[:, self.view.players] = numbers
        return everyone

    def within(self, n_coalitions: int) -> UnionContexts:
        """Return the contexts that the first coalitions of the table have."""
        keep = self.ends <= n_coalitions
        is_split = np.bincount(self.parents[keep][1:], minlength=len(keep)) > 0
        return replace(
            self,
            table=self.table.first(n_coalitions),
            union=self.union[keep],
            before=self.before[keep],
            after=self.after[keep],
            parents=self.parents[keep],
            ranks=np.where(is_split, self.ranks, -1)[keep],
            ends=self.ends[keep],
            may_grow=False,
        )

    @property
    def can_be_split(self) -> BoolArray:
        """Which contexts may have one more order, (n,)."""
        return self.n_orders < self.n_possible

    @cached_property
    def n_possible(self) -> FloatArray:
        """The number of orders that each context may have, (n,); infinite for many parts."""
        few = [0.0, 0.0, *(float(math.factorial(k)) for k in range(2, _MAX_LISTED + 1))]
        n_parts = self.unions.n_parts[self.union]
        return np.array([*few, np.inf])[np.minimum(n_parts, len(few))]


@cache
def _orders_of(n_parts: int) -> IntArray:
    """Return the orders of a few parts, one of each and its reverse, (k! / 2, k)."""
    every = itertools.permutations(range(n_parts))
    return np.array([order for order in every if order[0] < order[-1]])


def first_contexts(request: DesignRequest, unions: Unions) -> UnionContexts:
    """Return all players in an order of the unions at the top, and in its reverse."""
    n_known = len(request.known)
    design = UnionContexts(
        table=CoalitionTable(request.known[None], np.array([n_known])),
        view=request.required_graph_view,
        unions=unions,
        seed=int(request.rng.integers(2**62)),
        budget=request.budget,
        union=np.zeros(1, dtype=np.intp),
        before=np.zeros(1, dtype=np.intp),
        after=np.ones(1, dtype=np.intp),
        parents=np.full(1, -1),
        ranks=np.full(1, -1),
        ends=np.full(1, n_known),
        numbers={_key(coalition): number for number, coalition in enumerate(request.known)},
    )
    growth = Growth(design)
    growth.add_order(0)
    growth.add_order(0)
    return growth.design()


class Growth:
    """Contexts in the making."""

    def __init__(self, contexts: UnionContexts) -> None:
        self.contexts = contexts
        self.unions = contexts.unions
        self.coalitions = list(contexts.table.coalitions[0])
        self.numbers = dict(contexts.numbers)
        self.union, self.parents = contexts.union.tolist(), contexts.parents.tolist()
        self.before, self.after = contexts.before.tolist(), contexts.after.tolist()
        self.ranks, self.ends = contexts.ranks.tolist(), contexts.ends.tolist()
        self.n_orders = contexts.n_orders.tolist()
        is_split = contexts.ranks >= 0
        self.n_split = np.bincount(contexts.union[is_split], minlength=len(self.unions.starts))

    def can_pay(self, context: int) -> bool:
        """Return whether the budget pays for one more order of a context."""
        cost = int(self.unions.n_parts[self.union[context]]) - 1
        return len(self.coalitions) + cost <= self.contexts.budget

    def add_best(self, gains: FloatArray) -> None:
        """Add an order to the contexts that gain most, as far as the budget goes.

        Parameters
        ----------
        gains : array, (n,)
            By how much one more order lowers the squared error, per coalition.
        """
        # Rounded, so that rounding errors of the model choose between no equal ones.
        rounded = np.round(gains / max(gains.max(), np.finfo(float).tiny), _DECIMALS)
        can_be_split = self.contexts.can_be_split
        n_unions = len(np.unique(self.contexts.union[can_be_split]))
        n_most = max(-(-n_unions // _SPLIT_SHARE), len(self.coalitions) // _ROUND_SHARE)
        n_of_unions = np.zeros(len(self.unions.starts), dtype=int)
        for context in np.argsort(-rounded, kind="stable").tolist():
            union = self.union[context]
            is_open = can_be_split[context] and n_of_unions[union] * n_unions < n_most
            if is_open and self.can_pay(context) and self.add_order(context):
                n_of_unions[union] += 1
                if n_of_unions.sum() == n_most:
                    break

    def add_order(self, context: int) -> bool:
        """Put the parts of a context's union in its place, in one more order.

        Return whether this needs new coalitions.
        """
        union, n_before = self.union[context], len(self.coalitions)
        parts = self.unions.parts(union).tolist()
        if self.ranks[context] < 0:
            self.ranks[context] = int(self.n_split[union])
            self.n_split[union] += 1
        before = [0] * len(parts)
        after = [self.after[context]] * len(parts)
        last, coalition = self.before[context], self.coalitions[self.before[context]]
        order = self._order(context)
        for part in order[:-1]:
            coalition = coalition.copy()
            coalition[self.unions.players(parts[part])] = True
            before[part], last = last, self._number(coalition)
            after[part] = last
        before[order[-1]] = last
        self.before += before
        self.after += after
        self.union += parts
        self.parents += [context] * len(parts)
        self.ranks += [-1] * len(parts)
        self.n_orders += [0] * len(parts)
        self.ends += [len(self.coalitions)] * len(parts)
        self.n_orders[context] += 1
        return len(self.coalitions) > n_before

    def _order(self, context: int) -> list[int]:
        """Return the next order of a context's parts.

        Every second order of a context is the reverse of the one before. Two contexts of a union in
        succession have the same orders, but begin with opposite ones.
        """
        union, rank, number = self.union[context], self.ranks[context], self.n_orders[context]
        n_parts = int(self.unions.n_parts[union])
        # Each has a stream of its own, so that the other contexts have no influence.
        stream = [self.contexts.seed, union, rank // 2]
        if n_parts <= _MAX_LISTED:
            rng = np.random.default_rng(stream)
            is_reversed = rng.random() < 0.5
            orders = _orders_of(n_parts)
            order: list[int] = orders[rng.permutation(len(orders))[number // 2]].tolist()
        else:
            rng = np.random.default_rng([*stream, number // 2])
            is_reversed, order = False, rng.permutation(n_parts).tolist()
        return order[::-1] if (number + rank) % 2 != is_reversed else order

    def _number(self, coalition: CoalitionArray) -> int:
        key = _key(coalition)
        if key not in self.numbers:
            self.numbers[key] = len(self.coalitions)
            self.coalitions.append(coalition)
        return self.numbers[key]

    def design(self) -> UnionContexts:
        """Return the contexts, which may be split further if the budget pays for it."""
        design = replace(
            self.contexts,
            table=CoalitionTable(np.array(self.coalitions)[None], np.array([len(self.coalitions)])),
            union=np.array(self.union),
            before=np.array(self.before),
            after=np.array(self.after),
            parents=np.array(self.parents),
            ranks=np.array(self.ranks),
            ends=np.array(self.ends),
            numbers=self.numbers,
        )
        candidates = np.flatnonzero(design.can_be_split).tolist()
        return replace(design, may_grow=any(map(self.can_pay, candidates)))


def _key(coalition: CoalitionArray) -> bytes:
    return np.packbits(coalition).tobytes()

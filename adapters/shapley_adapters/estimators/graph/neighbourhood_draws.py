"""Random orders of the neighbourhoods that are too large to be enumerated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy.sparse

from ...array_types import BoolArray, FloatArray, IntArray, ValueArray, WordArray
from ...coalitions.tables import UnevenSelection, pack, select_uneven_units
from ...errors import BudgetError
from ...errors_of_means import mean_and_error
from ..protocol import Design, DesignRequest, Solution
from .linear_design import LinearDesign, Terms, check_memory_of_draws

MOST_OFFERS = 32
"""How many times as many orders are drawn as the budget pays for if no coalition comes twice. The
orders beyond cost no evaluations; the bound is on our own time."""


def least_draws(n_owners: int, needs_errors: bool) -> str:
    """Say about how many evaluations it takes to draw a unit, or two, for each of some nodes."""
    return f"about {(8 if needs_errors else 4) * n_owners + 2} evaluations"


def check_least(order: int, n_owners: int, request: DesignRequest) -> None:
    """Refuse a budget that no draws can do with, before the neighbourhoods are made.

    Each owner needs two coalitions that differ in it alone. Pairs that differ in different players
    make no circle, so that they are more coalitions than pairs.

    Raises
    ------
    BudgetError
        If it is less.
    """
    if request.budget < n_owners + 1:
        needed = least_draws(n_owners, request.needs_errors)
        raise BudgetError(
            f"with order={order} needs {needed} for a row of {request.n_players} players, drawing "
            "orders of their neighbourhoods; lower the order."
        )


@dataclass(frozen=True)
class Samples:
    """What one node gets in several rounds: one unit of coalitions in each.

    Attributes
    ----------
    members : array, (n, L)
        The coalitions, among the nodes of the neighbourhood.
    weights : array, (n,)
        How much the value of each counts. The weighted sum over a unit is one draw of the node's
        attribution.
    rounds : array, (n,)
        The round of each, in ascending order.
    """

    members: BoolArray
    weights: FloatArray
    rounds: IntArray


Sampler: TypeAlias = Callable[[int, IntArray, IntArray], Samples]
"""Returns a unit of a node for each order of its neighbourhood. Takes the node, the nodes of the
neighbourhood, (L,), and when each of them arrives in each order, (n, L)."""


@dataclass(frozen=True)
class NeighbourhoodDraws(Design):
    """Attributions of some nodes by enumeration, and of the others by draws.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions; those of `enumerated` open it.
    enumerated : LinearDesign
        The design of the nodes whose neighbourhoods are small.
    units : sparse matrix, (U, C)
        The weight of each coalition's value in each unit.
    owners : array, (U,)
        The node that each unit is about. Nodes take turns.
    drawn : array
        The nodes that have units.
    """

    enumerated: LinearDesign
    units: scipy.sparse.csr_matrix
    owners: IntArray
    drawn: IntArray

    @cached_property
    def reaches(self) -> IntArray:
        """How many coalitions of the table each unit and all units before it need, (U,)."""
        last = np.maximum.reduceat(self.units.indices, self.units.indptr[:-1])
        reaches: IntArray = np.maximum.accumulate(last) + 1
        return reaches

    def within(self, n_coalitions: int) -> NeighbourhoodDraws:
        """Return the units that the first coalitions of the table serve."""
        n = int((self.reaches <= n_coalitions).sum())
        return NeighbourhoodDraws(
            self.table.first(n_coalitions),
            self.enumerated,
            self.units[:n, :n_coalitions],
            self.owners[:n],
            self.drawn,
            order=self.order,
        )

    def solution(self, values: ValueArray) -> Solution:
        """Average over the units of each node; the errors are those of the averages."""
        n_rows, n_coalitions, n_outputs = values.shape
        n_known = int(self.enumerated.table.counts[0])
        n_nodes = self.enumerated.operator.shape[0]
        if n_coalitions < n_known:  # a round that has not come to the draws
            nothing = np.full((n_rows, n_nodes, n_outputs), np.nan)
            return Solution(nothing, nothing)
        attributions = self.enumerated.attributions(values[:, :n_known])
        errors = np.zeros_like(attributions)
        freedom = np.full((n_nodes, 1), np.inf)
        flat = values.transpose(1, 0, 2).reshape(n_coalitions, n_rows * n_outputs)
        draws = (self.units @ flat).reshape(-1, n_rows, n_outputs).transpose(1, 0, 2)
        for node in self.drawn:
            own = draws[:, self.owners == node]
            attributions[:, node], errors[:, node] = mean_and_error(own)
            freedom[node] = own.shape[1] - 1
        return Solution(attributions, errors, freedom)


@dataclass(frozen=True)
class Neighbourhoods:
    """The neighbourhoods of which orders are drawn, and what is known of the others.

    Attributes
    ----------
    order : int
        How many edges they reach.
    nodes_of : mapping of int to array
        The nodes of the neighbourhood of each node.
    enumerated : LinearDesign
        The design of all other nodes.
    terms : Terms
        Turns sets of nodes into coalitions of the players.
    rest : bool
        Whether the players outside a neighbourhood are present.
    """

    order: int
    nodes_of: Mapping[int, IntArray]
    enumerated: LinearDesign
    terms: Terms
    rest: bool

    def draw(self, sampler: Sampler, request: DesignRequest) -> NeighbourhoodDraws:
        """Draw orders until the budget is spent, each with its reverse.

        One order of all nodes makes one of each neighbourhood. In each round each node gets a unit.

        Raises
        ------
        BudgetError
            If the budget pays for less than one unit for each node, or two if errors are wanted.
        """
        known = self.enumerated.table.coalitions[0]
        if len(known) > request.budget:
            raise BudgetError(
                f"with order={self.order} needs more than {len(known)} evaluations for a row of "
                f"{request.n_players} players; lower the order."
            )
        n_drawn = len(self.nodes_of)
        offer = _Offer.nothing(known)
        n_rounds = max(0, request.budget - len(known)) // (4 * n_drawn) + 1
        most_rounds = MOST_OFFERS * n_rounds
        while True:
            n_offered = len(offer.words) + 4 * n_drawn * n_rounds
            check_memory_of_draws(request.n_players, request.budget, n_offered)
            offer = offer.joined(self._offer(sampler, n_rounds, request.rng))
            selected = select_uneven_units(known, offer.words, offer.sizes, request.budget)
            n_offered = len(offer.sizes)
            if selected.n_units < n_offered or n_offered >= most_rounds * n_drawn:
                break
            n_rounds = n_offered // n_drawn
        self._check(offer, request)
        return self._design(selected, offer)

    def _offer(self, sampler: Sampler, n_rounds: int, rng: np.random.Generator) -> _Offer:
        n_nodes = self.enumerated.operator.shape[0]
        ranks = rng.permuted(np.tile(np.arange(n_nodes), (n_rounds, 1)), axis=1)
        words, weights, rounds, owners = [], [], [], []
        for owner, nodes in self.nodes_of.items():
            made = sampler(owner, nodes, ranks[:, nodes])
            words.append(pack(self.terms.coalitions(nodes, made.members, self.rest)))
            weights.append(made.weights)
            rounds.append(made.rounds)
            owners.append(np.full(len(made.rounds), owner))
        by_round = np.argsort(np.concatenate(rounds), kind="stable")  # owners take turns
        sizes = np.array([np.bincount(of_owner, minlength=n_rounds) for of_owner in rounds])
        return _Offer(
            np.concatenate(words)[by_round],
            np.concatenate(weights)[by_round],
            sizes.T.ravel(),
            np.tile(list(self.nodes_of), n_rounds),
        )

    def _check(self, offer: _Offer, request: DesignRequest) -> None:
        n_least = len(self.nodes_of) * (2 if request.needs_errors else 1)
        # Coalitions that units share are counted again. How many they share depends on the draws,
        # and with them it would depend on a row's company whether it is drawn.
        needed = int(self.enumerated.table.counts[0] + offer.sizes[:n_least].sum())
        if needed > request.budget:
            raise BudgetError(
                f"with order={self.order} needs {needed} evaluations for a row of "
                f"{request.n_players} players, drawing orders of their neighbourhoods"
                f"{' to tell standard errors' if request.needs_errors else ''}; lower the order."
            )

    def _design(self, selected: UnevenSelection, offer: _Offer) -> NeighbourhoodDraws:
        n_terms, n = len(selected.positions), selected.n_units
        ends = np.concatenate([[0], np.cumsum(offer.sizes[:n])])
        units = scipy.sparse.csr_matrix(
            (offer.weights[:n_terms], selected.positions, ends),
            shape=(n, int(selected.table.counts[0])),
        )
        drawn = np.array(sorted(self.nodes_of), dtype=np.intp)
        return NeighbourhoodDraws(
            selected.table, self.enumerated, units, offer.owners[:n], drawn, order=self.order
        )


@dataclass(frozen=True)
class _Offer:
    """Units, one after the other: their coalitions, weights and sizes, and whose they are."""

    words: WordArray
    weights: FloatArray
    sizes: IntArray
    owners: IntArray

    @classmethod
    def nothing(cls, known: BoolArray) -> _Offer:
        none = np.zeros(0, dtype=np.intp)
        return cls(pack(known[:0]), np.zeros(0), none, none)

    def joined(self, other: _Offer) -> _Offer:
        return _Offer(
            np.concatenate([self.words, other.words]),
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.owners, other.owners]),
        )

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
from ..protocol import Design, DesignRequest, Solution
from ..value_errors import ValueErrors, mean_and_error, weighted_sums
from .linear_design import LinearDesign, LinearDesignBuilder, check_memory_of_draws

OFFER_FACTOR = 32
"""Bound on the drawn orders, as a multiple of those within the budget if all coalitions were
distinct. Orders without a new coalition cost no evaluations; the bound limits the time to draw."""


def approximate_minimum(n_owners: int, needs_errors: bool) -> str:
    """Return, in words, the approximate cost of one unit per node, or of two for errors."""
    return f"about {(8 if needs_errors else 4) * n_owners + 2} evaluations"


def check_minimum(order: int, n_owners: int, request: DesignRequest) -> None:
    """Refuse a budget that is too small for any draws, before computing the neighbourhoods.

    Each owner needs two coalitions that differ only in this owner. As edges between coalitions,
    these pairs form no cycle, so there are more coalitions than pairs.

    Raises
    ------
    BudgetError
        If the budget is smaller than that.
    """
    if request.budget < n_owners + 1:
        needed = approximate_minimum(n_owners, request.needs_errors)
        raise BudgetError(
            f"with order={order} needs {needed} for a row of {request.n_players} players, drawing "
            "orders of their neighbourhoods; lower the order."
        )


@dataclass(frozen=True)
class Samples:
    """The contributions of one node in several rounds, one unit of coalitions per round.

    Attributes
    ----------
    members : array, (n, L)
        The coalitions, among the nodes of the neighbourhood.
    weights : array, (n,)
        The weight of the value of each. The weighted sum over a unit is one draw of the node's
        attribution.
    rounds : array, (n,)
        The round of each, in ascending order.
    """

    members: BoolArray
    weights: FloatArray
    rounds: IntArray


Sampler: TypeAlias = Callable[[int, IntArray, IntArray], Samples]
"""Returns one unit of a node per order of its neighbourhood. Takes the node, the nodes of the
neighbourhood, (L,), and their ranks in each order, (n, L)."""


@dataclass(frozen=True)
class NeighbourhoodDraws(Design):
    """Attributions of some nodes by enumeration, and of the others by draws.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions, those of `enumerated` first.
    enumerated : LinearDesign
        The design of the nodes whose neighbourhoods are small.
    units : sparse matrix, (U, C)
        The weight of each coalition's value in each unit.
    owners : array, (U,)
        The node whose attribution each unit estimates. Nodes take turns.
    sampled_nodes : array
        The nodes that have units.
    """

    enumerated: LinearDesign
    units: scipy.sparse.csr_matrix
    owners: IntArray
    sampled_nodes: IntArray

    @cached_property
    def reaches(self) -> IntArray:
        """The number of first coalitions of the table that a unit and all before it need, (U,)."""
        last = np.maximum.reduceat(self.units.indices, self.units.indptr[:-1])
        return np.maximum.accumulate(last) + 1

    def within(self, n_coalitions: int) -> NeighbourhoodDraws:
        """Return the units whose coalitions are among the first of the table."""
        n = int((self.reaches <= n_coalitions).sum())
        return NeighbourhoodDraws(
            self.table.first(n_coalitions),
            self.enumerated,
            self.units[:n, :n_coalitions],
            self.owners[:n],
            self.sampled_nodes,
            order=self.order,
        )

    def solution(self, values: ValueArray) -> Solution:
        """Return the means over the units of each node and their standard errors."""
        n_rows, n_coalitions, n_outputs = values.shape
        n_known = int(self.enumerated.table.counts[0])
        n_nodes = self.enumerated.operator.shape[0]
        if n_coalitions < n_known:  # no unit is evaluated yet
            unknown = np.full((n_rows, n_nodes, n_outputs), np.nan)
            return Solution(unknown, unknown)
        attributions = self.enumerated.solution(values[:, :n_known]).values
        errors = np.zeros_like(attributions)
        freedom = np.full((n_nodes, 1), np.inf)
        draws = weighted_sums(self.units, values)
        for node in self.sampled_nodes:
            node_draws = draws[:, self.owners == node]
            attributions[:, node], errors[:, node] = mean_and_error(node_draws)
            freedom[node] = node_draws.shape[1] - 1
        return Solution(attributions, errors, freedom)

    def added_variances(self, errors: ValueErrors) -> FloatArray:
        """Return what errors of values add: those of enumerated nodes, and those units share."""
        of_known = self.enumerated.operator
        n_nodes, n_units = of_known.shape[0], len(self.owners)
        shape = n_nodes, self.units.shape[1]
        of_known = scipy.sparse.csr_matrix(
            (of_known.data, of_known.indices, of_known.indptr), shape=shape
        )
        counts = np.bincount(self.owners, minlength=n_nodes)
        means = scipy.sparse.csr_matrix(
            (1 / counts[self.owners], (self.owners, np.arange(n_units))), shape=(n_nodes, n_units)
        )
        added = errors.beside_spread(self.units, means, of_known, self.table.coalitions[0])
        # The spread is that around the mean, so that it is less by what the units share.
        return added * np.where(counts > 1, counts / np.maximum(counts - 1, 1), 1.0)[:, None]


@dataclass(frozen=True)
class NeighbourhoodSampler:
    """Draws orders of the large neighbourhoods, beside the design of the small ones.

    Attributes
    ----------
    order : int
        The number of edges up to which neighbourhoods reach.
    nodes_of : mapping of int to array
        The nodes of the neighbourhood of each node that is sampled.
    enumerated : LinearDesign
        The design of all other nodes.
    builder : LinearDesignBuilder
        Converts sets of nodes to coalitions of the players.
    is_outside_present : bool
        Whether the players outside a neighbourhood are present.
    """

    order: int
    nodes_of: Mapping[int, IntArray]
    enumerated: LinearDesign
    builder: LinearDesignBuilder
    is_outside_present: bool

    def draw(self, sampler: Sampler, request: DesignRequest) -> NeighbourhoodDraws:
        """Draw orders until the budget is spent, each with its reverse.

        One order of all nodes gives an order of each neighbourhood. In each round, each node gets
        one unit.

        Raises
        ------
        BudgetError
            If the budget is too small for one unit per node, or for two if errors are needed.
        """
        coalitions = self.enumerated.table.coalitions[0]
        if len(coalitions) > request.budget:
            raise BudgetError(
                f"with order={self.order} needs more than {len(coalitions)} evaluations for a row "
                f"of {request.n_players} players; lower the order."
            )
        n_sampled = len(self.nodes_of)
        offer = _Offer.empty(coalitions)
        n_rounds = max(0, request.budget - len(coalitions)) // (4 * n_sampled) + 1
        max_rounds = OFFER_FACTOR * n_rounds
        while True:
            n_offered = len(offer.words) + 4 * n_sampled * n_rounds
            check_memory_of_draws(request.n_players, request.budget, n_offered)
            offer = offer.extend(self._offer(sampler, n_rounds, request.rng))
            selection = select_uneven_units(coalitions, offer.words, offer.sizes, request.budget)
            n_offered = len(offer.sizes)
            if selection.n_units < n_offered or n_offered >= max_rounds * n_sampled:
                break
            n_rounds = n_offered // n_sampled
        self._check(offer, request)
        return self._design(selection, offer)

    def _offer(self, sampler: Sampler, n_rounds: int, rng: np.random.Generator) -> _Offer:
        n_nodes = self.enumerated.operator.shape[0]
        ranks = rng.permuted(np.tile(np.arange(n_nodes), (n_rounds, 1)), axis=1)
        words, weights, rounds = [], [], []
        for owner, nodes in self.nodes_of.items():
            samples = sampler(owner, nodes, ranks[:, nodes])
            coalitions = self.builder.coalitions(nodes, samples.members, self.is_outside_present)
            words.append(pack(coalitions))
            weights.append(samples.weights)
            rounds.append(samples.rounds)
        by_round = np.argsort(np.concatenate(rounds), kind="stable")
        sizes = np.array([np.bincount(of_owner, minlength=n_rounds) for of_owner in rounds])
        return _Offer(
            np.concatenate(words)[by_round],
            np.concatenate(weights)[by_round],
            sizes.T.ravel(),
            np.tile(list(self.nodes_of), n_rounds),
        )

    def _check(self, offer: _Offer, request: DesignRequest) -> None:
        n_units = len(self.nodes_of) * (2 if request.needs_errors else 1)
        # Coalitions that units share are counted once per unit. Their number depends on the draws,
        # and so the error would depend on the other rows.
        needed = int(self.enumerated.table.counts[0] + offer.sizes[:n_units].sum())
        if needed > request.budget:
            raise BudgetError(
                f"with order={self.order} needs {needed} evaluations for a row of "
                f"{request.n_players} players, drawing orders of their neighbourhoods"
                f"{' to estimate standard errors' if request.needs_errors else ''}; "
                "lower the order."
            )

    def _design(self, selection: UnevenSelection, offer: _Offer) -> NeighbourhoodDraws:
        n_terms, n = len(selection.positions), selection.n_units
        ends = np.concatenate([[0], np.cumsum(offer.sizes[:n])])
        units = scipy.sparse.csr_matrix(
            (offer.weights[:n_terms], selection.positions, ends),
            shape=(n, int(selection.table.counts[0])),
        )
        nodes = np.array(sorted(self.nodes_of), dtype=np.intp)
        return NeighbourhoodDraws(
            selection.table, self.enumerated, units, offer.owners[:n], nodes, order=self.order
        )


@dataclass(frozen=True)
class _Offer:
    """Units in their order: their coalitions, weights, sizes and owners."""

    words: WordArray
    weights: FloatArray
    sizes: IntArray
    owners: IntArray

    @classmethod
    def empty(cls, coalitions: BoolArray) -> _Offer:
        no_indices = np.zeros(0, dtype=np.intp)
        return cls(pack(coalitions[:0]), np.zeros(0), no_indices, no_indices)

    def extend(self, units: _Offer) -> _Offer:
        return _Offer(
            np.concatenate([self.words, units.words]),
            np.concatenate([self.weights, units.weights]),
            np.concatenate([self.sizes, units.sizes]),
            np.concatenate([self.owners, units.owners]),
        )

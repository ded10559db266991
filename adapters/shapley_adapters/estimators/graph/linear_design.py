"""Designs whose attributions are a fixed sparse combination of the values."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import scipy.sparse

from ...array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray, WordArray
from ...coalitions.tables import CoalitionTable, first_occurrences, pack, unpack
from ...memory_bounds import memory_limit
from ..protocol import Estimator, GraphView, Solution, WholeDesign
from ..value_errors import ValueErrors, weighted_sums

_COUNTED_EVERY = 2**16
"""Terms between two counts of the distinct coalitions among them."""

_BYTES_OF_SHARE, _BYTES_OF_PLAYER, _BYTES_OF_SET = 34, 2, 200
"""Memory while sets are converted to terms: per set and node with a share, per set and player, and
per set."""

_COPIES = 3
"""The number of copies of the terms that exist while the design is built."""

_BYTES_OF_EVALUATION, _BYTES_OF_OFFER = 6, 2
"""Memory of random orders: per evaluation and player, and per drawn coalition, duplicates included,
and player."""

SetT = TypeVar("SetT")


class DesignMemoryError(Exception):
    """The coalitions of a design do not fit into memory."""


def check_memory_of_draws(n_players: int, budget: int, n_offered: int) -> None:
    """Refuse draws that do not fit into memory, before drawing them.

    Parameters
    ----------
    n_players, budget : int
        The number of players, and of distinct coalitions that may be evaluated.
    n_offered : int
        The number of drawn coalitions, duplicates included.

    Raises
    ------
    DesignMemoryError
        If they do not fit.
    """
    n_bytes = max(_BYTES_OF_EVALUATION * budget, _BYTES_OF_OFFER * n_offered) * n_players
    if n_bytes > memory_limit():
        raise DesignMemoryError


class TooManyCoalitionsError(Exception):
    """More distinct coalitions are needed than the limit; the argument is a lower bound of them."""


@dataclass(frozen=True)
class LinearDesign(WholeDesign):
    """Coalitions, and the share that each node of the graph has in the value of each.

    Attributes
    ----------
    operator : sparse matrix, (nodes, C)
        The shares.
    """

    operator: scipy.sparse.csr_matrix

    def solution(self, values: ValueArray) -> Solution:
        """Return the attributions; without random draws, their standard errors are 0."""
        attributions = weighted_sums(self.operator, values)
        return Solution(attributions, np.zeros_like(attributions))

    def added_variances(self, errors: ValueErrors) -> FloatArray:
        """Return what the errors of values add to the variances of attributions, (R, nodes, K)."""
        return errors.sum_variances(self.operator, self.table.coalitions[0])


class SumsOfValues(Protocol):
    """A design whose attributions are weighted sums of the values, or means of such sums."""

    def solution(self, values: ValueArray) -> Solution:
        """Return the attributions of all nodes from values, (R, C, K)."""

    def added_variances(self, errors: ValueErrors) -> FloatArray:
        """Return what the errors of values add to the variances of attributions, (R, nodes, K)."""


class LinearEstimator(Estimator[Any]):
    """An estimator on a graph whose designs say how values become attributions."""

    needs_graph: ClassVar[bool] = True

    def solve(self, design: SumsOfValues, values: ValueArray) -> Solution:
        """Weight the values; average over orders if they are random, errors from their spread."""
        return design.solution(values)

    def solve_with_errors(
        self, design: SumsOfValues, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Weight the values; add the variances of their errors that the spread does not show."""
        solution = design.solution(values)
        is_exact = isinstance(design, LinearDesign)  # otherwise the spread is the larger part
        freedom = errors.freedom if is_exact else solution.degrees_of_freedom
        solution = replace(solution, degrees_of_freedom=freedom)
        return solution.with_variances(design.added_variances(errors))


@dataclass
class LinearDesignBuilder:
    """Collects the terms of a design: a node, a coalition, and the node's share of its value.

    Attributes
    ----------
    view : GraphView
        The M players of the coalitions in the graph.
    known_coalitions : array, (n, M)
        The first coalitions of the table.
    limit : int
        The largest number of distinct coalitions; more raise an error.
    """

    view: GraphView
    known_coalitions: CoalitionArray
    limit: int
    _words: list[WordArray] = field(default_factory=list, init=False)
    _owners: list[IntArray] = field(default_factory=list, init=False)
    _terms: list[IntArray] = field(default_factory=list, init=False)
    _shares: list[FloatArray] = field(default_factory=list, init=False)
    _n_terms: int = field(default=0, init=False)
    _n_bytes: int = field(default=0, init=False)
    _n_counted: int = field(default=0, init=False)
    _n_blocks_counted: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._columns = np.full(self.view.graph.n_players, -1)
        self._columns[self.view.players] = np.arange(len(self.view.players))
        self._distinct = pack(self.known_coalitions)

    @property
    def is_active(self) -> BoolArray:
        """Which nodes of the graph are players of the coalitions."""
        return self._columns >= 0

    def coalitions(
        self, nodes: IntArray, members: BoolArray, is_outside_present: bool
    ) -> CoalitionArray:
        """Return sets among some nodes, (n, len(nodes)), as coalitions of the players, (n, M).

        All other players are present if `is_outside_present`, else absent.
        """
        columns, n_players = self._columns[nodes], len(self.view.players)
        if len(nodes) == n_players and (columns == np.arange(n_players)).all():
            return members
        coalitions = np.full((len(members), n_players), is_outside_present)
        coalitions[:, columns[columns >= 0]] = members[:, columns >= 0]
        return coalitions

    def list_sets(self, sets: Iterator[SetT], limit: int, n_nodes: int) -> list[SetT]:
        """Return sets among some nodes as a list, if they are few enough.

        Raises
        ------
        TooManyCoalitionsError
            If there are more than `limit`.
        DesignMemoryError
            If their shares do not fit into memory.
        """
        n_fitting = self._n_fitting(n_nodes)
        first_sets = list(islice(sets, min(limit, n_fitting) + 1))
        if len(first_sets) > limit:
            raise TooManyCoalitionsError(self.limit)
        if len(first_sets) > n_fitting:
            raise DesignMemoryError
        return first_sets

    def check_memory(self, n_sets: int, n_nodes: int) -> None:
        """Raise an error if `n_sets` sets among `n_nodes` nodes do not fit into memory."""
        if n_sets > self._n_fitting(n_nodes):
            raise DesignMemoryError

    def _n_fitting(self, n_nodes: int) -> int:
        """Return how many sets among `n_nodes` nodes fit into memory beside the present terms."""
        n_players = len(self.view.players)
        bytes_each = _BYTES_OF_SHARE * n_nodes + _BYTES_OF_PLAYER * n_players + _BYTES_OF_SET
        n_free = memory_limit() - _COPIES * self._n_bytes
        return max(0, min(n_free // bytes_each, sys.maxsize - 1))

    def add(self, coalitions: CoalitionArray, shares: FloatArray, nodes: IntArray) -> None:
        """Add the `shares`, (n, L), of `nodes`, (L,), in the values of coalitions, (n, M)."""
        term, column = np.nonzero(shares)
        self._words.append(pack(coalitions))
        self._terms.append(term + self._n_terms)
        self._owners.append(np.asarray(nodes)[column])
        self._shares.append(shares[term, column])
        lists = (self._words, self._terms, self._owners, self._shares)
        self._n_bytes += sum(arrays[-1].nbytes for arrays in lists)
        self._n_terms += len(coalitions)
        if self._n_terms - self._n_counted > _COUNTED_EVERY:
            self.count()

    def count(self) -> int:
        """Return the number of distinct coalitions so far, including the known ones."""
        words = np.concatenate([self._distinct, *self._words[self._n_blocks_counted :]])
        self._distinct = np.unique(words, axis=0) if len(words) else words
        self._n_blocks_counted = len(self._words)
        self._n_counted = self._n_terms
        if len(self._distinct) > self.limit:
            raise TooManyCoalitionsError(len(self._distinct))
        return len(self._distinct)

    def design(self, order: int = -1) -> LinearDesign:
        """Return the design of all terms; its table contains each coalition once."""
        n_known, n_players = self.known_coalitions.shape
        words = np.concatenate([pack(self.known_coalitions), *self._words])
        first = first_occurrences(words[None])[0]
        is_new = first == np.arange(len(words))
        table_indices = np.cumsum(is_new) - 1
        coalitions = unpack(words[is_new], n_players)
        terms = np.concatenate([np.zeros(0, dtype=np.intp), *self._terms])
        owners = np.concatenate([np.zeros(0, dtype=np.intp), *self._owners])
        operator = scipy.sparse.csr_matrix(  # adds the shares of a node in a coalition
            (
                np.concatenate([np.zeros(0), *self._shares]),
                (owners, table_indices[first[n_known + terms]]),
            ),
            shape=(self.view.graph.n_players, len(coalitions)),
        )
        table = CoalitionTable(coalitions[None], np.array([len(coalitions)]))
        return LinearDesign(table, operator, order=order)

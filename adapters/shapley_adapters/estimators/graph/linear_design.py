"""Designs whose attributions are a fixed sparse combination of the values."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import numpy as np
import scipy.sparse

from ...array_types import (
    BoolArray,
    CoalitionArray,
    FloatArray,
    IntArray,
    ValueArray,
    WordArray,
)
from ...coalitions.tables import CoalitionTable, first_occurrences, pack, unpack
from ...memory_bounds import memory_limit
from ..protocol import GraphView, Solution, WholeDesign

_COUNTED_EVERY = 2**16
"""Terms between two counts of the distinct coalitions among them."""

_BYTES_OF_SHARE, _BYTES_OF_PLAYER, _BYTES_OF_SET = 34, 2, 200
"""Memory while sets become terms: for each set and node that may have a share, for each set and
player, and for each set."""

_COPIES = 3
"""How many times the terms are held while they become a design."""

_BYTES_OF_EVALUATION, _BYTES_OF_OFFER = 6, 2
"""Memory where orders are drawn: for each evaluation and player, and for each drawn coalition,
new or not, and player."""

SetT = TypeVar("SetT")


class DesignMemoryError(Exception):
    """The coalitions of a design do not fit into memory."""


def check_memory_of_draws(n_players: int, budget: int, n_offered: int) -> None:
    """Refuse draws that do not fit into memory, before they are made.

    Parameters
    ----------
    n_players, budget : int
        The players, and the distinct coalitions that may be evaluated.
    n_offered : int
        The coalitions that will have been drawn, those that come again included.

    Raises
    ------
    DesignMemoryError
        If they do not fit.
    """
    n_bytes = max(_BYTES_OF_EVALUATION * budget, _BYTES_OF_OFFER * n_offered) * n_players
    if n_bytes > memory_limit():
        raise DesignMemoryError


class TooManyCoalitionsError(Exception):
    """More distinct coalitions are needed than were allowed; the argument says how many are."""


@dataclass(frozen=True)
class LinearDesign(WholeDesign):
    """Coalitions, and how much each node of the graph gets of the value of each.

    Attributes
    ----------
    operator : sparse matrix, (nodes, C)
        The shares.
    """

    operator: scipy.sparse.csr_matrix

    def attributions(self, values: ValueArray) -> FloatArray:
        """Return what the nodes get of `values`, (R, C, K), as (R, nodes, K)."""
        n_rows, n_coalitions, n_outputs = values.shape
        flat = values.transpose(1, 0, 2).reshape(n_coalitions, n_rows * n_outputs)
        shared = (self.operator @ flat).reshape(-1, n_rows, n_outputs)
        return np.ascontiguousarray(shared.transpose(1, 0, 2))


def solve_linear(design: LinearDesign, values: ValueArray) -> Solution:
    """Return the attributions; nothing was drawn, so that their standard errors are 0."""
    attributions = design.attributions(values)
    return Solution(attributions, np.zeros_like(attributions))


@dataclass
class Terms:
    """Collects shares of values, node by node, into a design.

    Attributes
    ----------
    view : GraphView
        The M players of the coalitions in the graph.
    known : array, (n, M)
        The coalitions that open the table.
    most : int
        How many distinct coalitions there may be; more end the collection by an error.
    """

    view: GraphView
    known: CoalitionArray
    most: int
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
        self._distinct = pack(self.known)

    @property
    def is_active(self) -> BoolArray:
        """Which nodes of the graph are players of the coalitions."""
        active: BoolArray = self._columns >= 0
        return active

    def coalitions(self, nodes: IntArray, members: BoolArray, rest: bool) -> CoalitionArray:
        """Return sets among some nodes, (n, len(nodes)), as coalitions of the players, (n, M).

        All other players are present where `rest` is true.
        """
        columns, n_players = self._columns[nodes], len(self.view.players)
        if len(nodes) == n_players and (columns == np.arange(n_players)).all():
            return members
        wide = np.full((len(members), n_players), rest)
        wide[:, columns[columns >= 0]] = members[:, columns >= 0]
        return wide

    def listed(self, sets: Iterator[SetT], most: int, n_nodes: int) -> list[SetT]:
        """Return sets among some nodes as a list, if they are few enough to be added.

        Raises
        ------
        TooManyCoalitionsError
            If there are more than `most`.
        DesignMemoryError
            If their shares do not fit into memory.
        """
        n_fitting = self._n_fitting(n_nodes)
        found = list(islice(sets, min(most, n_fitting) + 1))
        if len(found) > most:
            raise TooManyCoalitionsError(self.most)
        if len(found) > n_fitting:
            raise DesignMemoryError
        return found

    def check_memory(self, n_sets: int, n_nodes: int) -> None:
        """Refuse to add so many sets among some nodes if they do not fit into memory."""
        if n_sets > self._n_fitting(n_nodes):
            raise DesignMemoryError

    def _n_fitting(self, n_nodes: int) -> int:
        """Return how many sets among some nodes fit into memory beside the terms so far."""
        n_players = len(self.view.players)
        bytes_each = _BYTES_OF_SHARE * n_nodes + _BYTES_OF_PLAYER * n_players + _BYTES_OF_SET
        left = memory_limit() - _COPIES * self._n_bytes
        return max(0, min(left // bytes_each, sys.maxsize - 1))

    def add(self, coalitions: CoalitionArray, shares: FloatArray, nodes: IntArray) -> None:
        """Give `nodes`, (L,), their `shares`, (n, L), of the values of coalitions, (n, M)."""
        term, column = np.nonzero(shares)
        self._words.append(pack(coalitions))
        self._terms.append(term + self._n_terms)
        self._owners.append(np.asarray(nodes)[column])
        self._shares.append(shares[term, column])
        added = (self._words, self._terms, self._owners, self._shares)
        self._n_bytes += sum(arrays[-1].nbytes for arrays in added)
        self._n_terms += len(coalitions)
        if self._n_terms - self._n_counted > _COUNTED_EVERY:
            self.count()

    def count(self) -> int:
        """Return how many distinct coalitions there are so far, the known ones included."""
        new = np.concatenate([self._distinct, *self._words[self._n_blocks_counted :]])
        self._distinct = np.unique(new, axis=0) if len(new) else new
        self._n_blocks_counted = len(self._words)
        self._n_counted = self._n_terms
        if len(self._distinct) > self.most:
            raise TooManyCoalitionsError(len(self._distinct))
        return len(self._distinct)

    def design(self, order: int = -1) -> LinearDesign:
        """Return the design of all that was added, each coalition once."""
        n_known, n_players = self.known.shape
        words = np.concatenate([pack(self.known), *self._words])
        first = first_occurrences(words[None])[0]
        is_new = first == np.arange(len(words))
        slots = np.cumsum(is_new) - 1
        coalitions = unpack(words[is_new], n_players)
        terms = np.concatenate([np.zeros(0, dtype=np.intp), *self._terms])
        owners = np.concatenate([np.zeros(0, dtype=np.intp), *self._owners])
        operator = scipy.sparse.csr_matrix(  # which adds up shares of the same node and coalition
            (
                np.concatenate([np.zeros(0), *self._shares]),
                (owners, slots[first[n_known + terms]]),
            ),
            shape=(self.view.graph.n_players, len(coalitions)),
        )
        table = CoalitionTable(coalitions[None], np.array([len(coalitions)]))
        return LinearDesign(table, operator, order=order)

"""Graphs whose nodes are players: who is next to whom, and how far apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components, shortest_path

from ..arguments import checked_count
from ..array_types import IntArray
from ..errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class PlayerGraph:
    """An undirected graph, the nodes of which are the players 0, …, M − 1.

    Make one with `line`, `ring`, `grid`, `touching`, `of_edges` or `of_networkx`. Graphs with the
    same edges are equal, and can be keys of a dictionary.

    Attributes
    ----------
    n_players : int
        The number of nodes, M.
    edges : array, (E, 2)
        Each edge once, the smaller node first, in order.
    shape : tuple of int, optional
        The grid that the players fill in C order, where they do; such graphs have boxes.
    """

    n_players: int
    edges: IntArray
    shape: tuple[int, ...] | None = None

    @classmethod
    def of_edges(
        cls, n_players: int, edges: npt.ArrayLike, shape: tuple[int, ...] | None = None
    ) -> PlayerGraph:
        """Return the graph of any list of edges, (E, 2): directed, doubled or loops, if need be.

        Raises
        ------
        InvalidArgumentError
            If an edge names a player that does not exist, or something else than a player.
        """
        given: npt.NDArray[Any] = np.asarray(edges)
        if given.size and given.dtype.kind not in "iu":
            raise InvalidArgumentError(
                "edges must be pairs of whole numbers, the two players of each; got numbers of "
                f"type {given.dtype}."
            )
        pairs = given.astype(np.intp).reshape(-1, 2)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= n_players):
            raise InvalidArgumentError(
                f"graph has an edge between {pairs.min()} and {pairs.max()}, but the nodes are "
                f"numbered from 0 to {n_players - 1}, one for each player. Where nodes are one "
                "input and no rows, pass them with a dimension of examples, nodes[None]."
            )
        pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
        return cls(n_players, np.unique(pairs, axis=0), shape)

    @classmethod
    def of_networkx(cls, graph: Any, nodelist: Sequence[Hashable]) -> PlayerGraph:
        """Return a networkx graph whose nodes are the players in a given order.

        Parameters
        ----------
        graph : networkx graph
            Directions, weights, multiple edges and loops are left aside.
        nodelist : sequence
            The node of each player, in the order of the players, as in networkx's own functions.

        Raises
        ------
        InvalidArgumentError
            If it does not hold each node of the graph once.

        Examples
        --------
        >>> import networkx as nx
        >>> from shapley_adapters import PlayerGraph
        >>> PlayerGraph.of_networkx(nx.Graph([("c", "a"), ("a", "b")]), ["a", "b", "c"]).edges
        array([[0, 1],
               [0, 2]])
        """
        number = {node: place for place, node in enumerate(nodelist)}
        if len(number) < len(nodelist) or set(number) != set(graph.nodes):
            raise InvalidArgumentError(
                f"nodelist must hold each of the {len(graph.nodes)} nodes of the graph once; got "
                f"{len(nodelist)}, of which {len(set(number) & set(graph.nodes))} are nodes."
            )
        return cls.of_edges(
            len(number), [(number[edge[0]], number[edge[1]]) for edge in graph.edges]
        )

    @classmethod
    def line(cls, n_players: int) -> PlayerGraph:
        """Return the line on which each player is next to the one before and the one after."""
        return cls.grid((n_players,))

    @classmethod
    def ring(cls, n_players: int) -> PlayerGraph:
        """Return the line whose ends are neighbours, too."""
        places = np.arange(n_players)
        return cls.of_edges(n_players, np.stack([places, np.roll(places, -1)], axis=1))

    @classmethod
    def grid(cls, shape: Iterable[int], diagonals: bool = False) -> PlayerGraph:
        """Return the grid of any number of dimensions, its places numbered in C order.

        Parameters
        ----------
        shape : sequence of int
            Its lengths.
        diagonals : bool
            Whether places that share no more than a corner are neighbours: 8 in place of 4 in two
            dimensions, 26 in place of 6 in three.
        """
        lengths = tuple(checked_count("shape", length) for length in shape)
        return cls.touching(np.arange(int(np.prod(lengths))).reshape(lengths), diagonals)

    @classmethod
    def touching(
        cls, players: npt.ArrayLike, diagonals: bool = False, n_players: int | None = None
    ) -> PlayerGraph:
        """Return the graph of groups of places, such as superpixels, that touch.

        Parameters
        ----------
        players : array of int, any number of dimensions
            The player of each place.
        diagonals : bool
            Whether groups that meet at no more than a corner are neighbours.
        n_players : int, optional
            How many players there are, if not all have a place.
        """
        mask = np.asarray(players, dtype=np.intp)
        n_players = int(mask.max(initial=-1)) + 1 if n_players is None else n_players
        pairs = [
            np.stack([mask[here].ravel(), mask[there].ravel()], axis=1)
            for here, there in _shifts(mask.ndim, diagonals)
        ]
        every = np.concatenate([np.zeros((0, 2), dtype=np.intp), *pairs])
        return cls.of_edges(n_players, every, _grid_shape(mask, n_players))

    @cached_property
    def neighbours(self) -> list[IntArray]:
        """The neighbours of each player, in order."""
        both = np.concatenate([self.edges, self.edges[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        ends = np.searchsorted(both[:, 0], np.arange(1, self.n_players))
        return np.split(both[:, 1], ends)

    @cached_property
    def neighbour_lists(self) -> list[list[int]]:
        """The same as lists, over which Python goes faster."""
        return [found.tolist() for found in self.neighbours]

    @property
    def degrees(self) -> IntArray:
        """How many neighbours each player has, (M,)."""
        counts: IntArray = np.bincount(self.edges.ravel(), minlength=self.n_players)
        return counts

    @cached_property
    def components(self) -> IntArray:
        """The number of the component that each player belongs to, (M,)."""
        labels: IntArray = connected_components(self._matrix(), directed=False)[1].astype(np.intp)
        return labels

    @property
    def diameter(self) -> int:
        """The largest distance within a component."""
        distances = self.distances()
        return int(distances[np.isfinite(distances)].max(initial=0))

    def distances(self) -> npt.NDArray[np.float64]:
        """Return the least number of edges between any two players, (M, M); infinite if none."""
        found: npt.NDArray[np.float64] = shortest_path(
            self._matrix(), directed=False, unweighted=True
        )
        return found

    def neighbourhood(self, player: int, order: int) -> IntArray:
        """Return the players within `order` edges, in order of their distance: the player first."""
        near, found, n_inside = self.neighbour_lists, {int(player): None}, 0
        for _ in range(order):
            shell = list(found)[n_inside:]
            if not shell:
                break
            n_inside = len(found)
            for node in shell:
                found.update(dict.fromkeys(near[node]))  # who is there keeps the place
        return np.array(list(found), dtype=np.intp)

    def is_covered(self, order: int) -> bool:
        """Tell whether `order` edges lead from each player to its whole component."""
        sizes = np.bincount(self.components, minlength=1)[self.components]
        return all(
            len(self.neighbourhood(player, order)) == sizes[player]
            for player in range(self.n_players)
        )

    def relabelled(self, names: IntArray) -> PlayerGraph:
        """Return the graph in which player i is called `names[i]`."""
        return PlayerGraph.of_edges(self.n_players, np.asarray(names)[self.edges])

    def placed(self, players: IntArray, n_players: int) -> PlayerGraph:
        """Return the graph among `n_players`, its node i being `players[i]`, others alone."""
        is_same = n_players == self.n_players and (players == np.arange(n_players)).all()
        return self if is_same else PlayerGraph.of_edges(n_players, players[self.edges])

    def __eq__(self, other: object) -> bool:
        """Compare what the graphs are made of."""
        return isinstance(other, PlayerGraph) and self._content == other._content

    def __hash__(self) -> int:
        """Hash what the graph is made of."""
        return self._hash

    @cached_property
    def _content(self) -> tuple[int, tuple[int, ...] | None, bytes]:
        return self.n_players, self.shape, self.edges.tobytes()

    @cached_property
    def _hash(self) -> int:
        return hash(self._content)

    def _matrix(self) -> scipy.sparse.csr_matrix:
        ones = np.ones(len(self.edges))
        return scipy.sparse.csr_matrix(
            (ones, (self.edges[:, 0], self.edges[:, 1])), shape=(self.n_players, self.n_players)
        )


def boxes(shape: tuple[int, ...], largest: int) -> list[IntArray]:
    """Return the places of all squares, or cubes, of a grid with sides of 1, …, `largest`.

    A side is cut to the length of the grid where that is less, so that a grid with an axis of one
    place has squares. Each box comes once, as a row of places; there is an array, (n, size), for
    each side, the smallest first.
    """
    places = np.arange(int(np.prod(shape))).reshape(shape)
    found, sides_seen = [], set()
    for side in range(1, largest + 1):
        sides = tuple(min(side, length) for length in shape)
        if sides in sides_seen:
            continue
        sides_seen.add(sides)
        windows = np.lib.stride_tricks.sliding_window_view(places, sides)
        found.append(windows.reshape(-1, int(np.prod(sides))))
    return found


def _grid_shape(mask: IntArray, n_players: int) -> tuple[int, ...] | None:
    """Return the shape of the grid that the players make, if any; channels may go together."""
    for axis in range(mask.ndim):
        first = mask.take([0], axis)
        mask = first if (mask == first).all() else mask
    is_grid = mask.size == n_players and (mask.ravel() == np.arange(n_players)).all()
    return mask.shape if is_grid else None


def _shifts(n_dimensions: int, diagonals: bool) -> list[tuple[Any, Any]]:
    """Return pairs of slices that lay each place over one neighbour; each direction once."""
    shifts = []
    for step in product((-1, 0, 1), repeat=n_dimensions):
        n_moves = sum(map(abs, step))
        is_first_of_pair = step > tuple(-one for one in step)
        if is_first_of_pair and (n_moves == 1 or diagonals):
            here = tuple(slice(max(0, -s), -s if s > 0 else None) for s in step)
            there = tuple(slice(max(0, s), s if s < 0 else None) for s in step)
            shifts.append((here, there))
    return shifts

"""Graphs whose nodes are players: neighbours, distances and components."""

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
    """An undirected graph whose nodes are the players 0, …, M − 1.

    Make one with `line`, `ring`, `grid`, `touching`, `from_edges` or `from_networkx`. Graphs
    with the same edges are equal, and can be keys of a dictionary.

    Attributes
    ----------
    n_players : int
        The number of nodes, M.
    edges : array, (E, 2)
        Each edge once, the smaller node first, in order.
    shape : tuple of int, optional
        The shape of the grid, if the players form a grid in C order. Such graphs have `boxes`.
    """

    n_players: int
    edges: IntArray
    shape: tuple[int, ...] | None = None

    @classmethod
    def from_edges(
        cls, n_players: int, edges: npt.ArrayLike, shape: tuple[int, ...] | None = None
    ) -> PlayerGraph:
        """Return the graph of a list of edges, (E, 2); direction and repetition do not matter.

        Loops are left out.

        Raises
        ------
        InvalidArgumentError
            If a node of an edge is not the number of a player.
        """
        edge_array: npt.NDArray[Any] = np.asarray(edges)
        if edge_array.size and edge_array.dtype.kind not in "iu":
            raise InvalidArgumentError(
                "edges must be pairs of whole numbers, the two players of each; got numbers of "
                f"type {edge_array.dtype}."
            )
        pairs = edge_array.astype(np.intp).reshape(-1, 2)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= n_players):
            raise InvalidArgumentError(
                f"graph has an edge between {pairs.min()} and {pairs.max()}, but the nodes are "
                f"numbered from 0 to {n_players - 1}, one for each player. If the nodes are one "
                "input rather than rows, add a dimension of examples: nodes[None]."
            )
        pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
        return cls(n_players, np.unique(pairs, axis=0), shape)

    @classmethod
    def from_networkx(cls, graph: Any, nodelist: Sequence[Hashable]) -> PlayerGraph:
        """Convert a networkx graph whose nodes are the players in a given order.

        Parameters
        ----------
        graph : networkx graph
            Directions, weights, multiple edges and loops are ignored.
        nodelist : sequence
            The node of each player, in the order of the players, as in networkx's functions.

        Raises
        ------
        InvalidArgumentError
            If `nodelist` does not hold each node of the graph once.

        Examples
        --------
        >>> import networkx as nx
        >>> from shapley_adapters import PlayerGraph
        >>> PlayerGraph.from_networkx(nx.Graph([("c", "a"), ("a", "b")]), ["a", "b", "c"]).edges
        array([[0, 1],
               [0, 2]])
        """
        number = {node: player for player, node in enumerate(nodelist)}
        if len(number) < len(nodelist) or set(number) != set(graph.nodes):
            raise InvalidArgumentError(
                f"nodelist must hold each of the {len(graph.nodes)} nodes of the graph once; got "
                f"{len(nodelist)}, of which {len(set(number) & set(graph.nodes))} are nodes."
            )
        return cls.from_edges(
            len(number), [(number[edge[0]], number[edge[1]]) for edge in graph.edges]
        )

    @classmethod
    def line(cls, n_players: int) -> PlayerGraph:
        """Return the line, where each player is connected to the one before and the one after."""
        return cls.grid((n_players,))

    @classmethod
    def ring(cls, n_players: int) -> PlayerGraph:
        """Return the ring: a line whose first and last players are also neighbours."""
        players = np.arange(n_players)
        return cls.from_edges(n_players, np.stack([players, np.roll(players, -1)], axis=1))

    @classmethod
    def grid(cls, shape: Iterable[int], diagonals: bool = False) -> PlayerGraph:
        """Return the grid with any number of dimensions, its cells numbered in C order.

        Parameters
        ----------
        shape : sequence of int
            Its lengths.
        diagonals : bool
            Whether cells that share only a corner or an edge are neighbours: 8 instead of 4 in two
            dimensions, 26 instead of 6 in three.
        """
        lengths = tuple(checked_count("shape", length) for length in shape)
        return cls.touching(np.arange(int(np.prod(lengths))).reshape(lengths), diagonals)

    @classmethod
    def touching(
        cls, players: npt.ArrayLike, diagonals: bool = False, n_players: int | None = None
    ) -> PlayerGraph:
        """Return the graph of groups of cells, such as superpixels, that touch each other.

        Parameters
        ----------
        players : array of int, any number of dimensions
            The player of each cell.
        diagonals : bool
            Whether groups that touch only at a corner are neighbours.
        n_players : int, optional
            The number of players, if some of them have no cell.
        """
        mask = np.asarray(players, dtype=np.intp)
        n_players = int(mask.max(initial=-1)) + 1 if n_players is None else n_players
        pairs = [
            np.stack([mask[first].ravel(), mask[second].ravel()], axis=1)
            for first, second in _shifts(mask.ndim, diagonals)
        ]
        all_pairs = np.concatenate([np.zeros((0, 2), dtype=np.intp), *pairs])
        return cls.from_edges(n_players, all_pairs, _grid_shape(mask, n_players))

    @cached_property
    def neighbours(self) -> list[IntArray]:
        """The neighbours of each player, sorted."""
        directed = np.concatenate([self.edges, self.edges[:, ::-1]])
        directed = directed[np.lexsort((directed[:, 1], directed[:, 0]))]
        ends = np.searchsorted(directed[:, 0], np.arange(1, self.n_players))
        return np.split(directed[:, 1], ends)

    @cached_property
    def neighbour_lists(self) -> list[list[int]]:
        """The neighbours of each player as lists, over which Python iterates faster."""
        return [players.tolist() for players in self.neighbours]

    @property
    def degrees(self) -> IntArray:
        """The number of neighbours of each player, (M,)."""
        return np.bincount(self.edges.ravel(), minlength=self.n_players)

    @cached_property
    def components(self) -> IntArray:
        """The index of each player's component, (M,)."""
        return connected_components(self._matrix(), directed=False)[1].astype(np.intp)

    @property
    def diameter(self) -> int:
        """The largest distance within a component."""
        distances = self.distances()
        return int(distances[np.isfinite(distances)].max(initial=0))

    def distances(self) -> npt.NDArray[np.float64]:
        """Return the least number of edges between any two players, (M, M), or infinity."""
        return shortest_path(self._matrix(), directed=False, unweighted=True)

    def neighbourhood(self, player: int, radius: int) -> IntArray:
        """Return the players within `radius` edges, sorted by distance: the player itself first."""
        neighbour_lists, nodes, n_inside = self.neighbour_lists, {int(player): None}, 0
        for _ in range(radius):
            shell = list(nodes)[n_inside:]
            if not shell:
                break
            n_inside = len(nodes)
            for node in shell:
                nodes.update(dict.fromkeys(neighbour_lists[node]))  # earlier nodes keep their order
        return np.array(list(nodes), dtype=np.intp)

    def is_covered(self, radius: int) -> bool:
        """Return whether each player's component lies within `radius` edges of it."""
        sizes = np.bincount(self.components, minlength=1)[self.components]
        return all(
            len(self.neighbourhood(player, radius)) == sizes[player]
            for player in range(self.n_players)
        )

    def relabelled(self, names: IntArray) -> PlayerGraph:
        """Return the graph in which player i has the number `names[i]`."""
        return PlayerGraph.from_edges(self.n_players, np.asarray(names)[self.edges])

    def embedded(self, players: IntArray, n_players: int) -> PlayerGraph:
        """Return the graph of `n_players` in which node i is `players[i]`; others have no edges."""
        is_same = n_players == self.n_players and (players == np.arange(n_players)).all()
        return self if is_same else PlayerGraph.from_edges(n_players, players[self.edges])

    def __eq__(self, other: object) -> bool:
        """Compare the number of players, the shape and the edges."""
        return isinstance(other, PlayerGraph) and self._content == other._content

    def __hash__(self) -> int:
        """Return the hash of the number of players, the shape and the edges."""
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[int, tuple[int, ...] | None, bytes]:
        return self.n_players, self.shape, self.edges.tobytes()

    def _matrix(self) -> scipy.sparse.csr_matrix:
        ones = np.ones(len(self.edges))
        return scipy.sparse.csr_matrix(
            (ones, (self.edges[:, 0], self.edges[:, 1])), shape=(self.n_players, self.n_players)
        )


def boxes(shape: tuple[int, ...], largest: int) -> list[IntArray]:
    """Return the cells of all squares, or cubes, of a grid with sides of 1, …, `largest`.

    A side is limited to the length of the grid, so that a grid with an axis of length one also has
    boxes. Each box is one row of cells; there is an array, (n, size), for each side, the smallest
    first.
    """
    cells = np.arange(int(np.prod(shape))).reshape(shape)
    boxes_of_sides, earlier_sides = [], set()
    for side in range(1, largest + 1):
        sides = tuple(min(side, length) for length in shape)
        if sides in earlier_sides:
            continue
        earlier_sides.add(sides)
        windows = np.lib.stride_tricks.sliding_window_view(cells, sides)
        boxes_of_sides.append(windows.reshape(-1, int(np.prod(sides))))
    return boxes_of_sides


def _grid_shape(mask: IntArray, n_players: int) -> tuple[int, ...] | None:
    """Return the shape of the grid that the players form, or None; channels may share players."""
    for axis in range(mask.ndim):
        first = mask.take([0], axis)
        mask = first if (mask == first).all() else mask
    is_grid = mask.size == n_players and (mask.ravel() == np.arange(n_players)).all()
    return mask.shape if is_grid else None


def _shifts(n_dimensions: int, diagonals: bool) -> list[tuple[Any, Any]]:
    """Return pairs of slices that align each cell with one neighbour; each direction once."""
    shifts = []
    for step in product((-1, 0, 1), repeat=n_dimensions):
        n_moves = sum(map(abs, step))
        is_first_of_pair = step > tuple(-coordinate for coordinate in step)
        if is_first_of_pair and (n_moves == 1 or diagonals):
            first = tuple(slice(max(0, -s), -s if s > 0 else None) for s in step)
            second = tuple(slice(max(0, s), s if s < 0 else None) for s in step)
            shifts.append((first, second))
    return shifts

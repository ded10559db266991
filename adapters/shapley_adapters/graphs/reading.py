"""Graphs as users hand them over, read as graphs of players."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ..arguments import checked_choice
from ..array_types import IntArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from .named_graphs import (
    check_number_of_nodes,
    of_adjacency_frame,
    of_named_edges,
    of_networkx,
    refuse_numbered_names,
)
from .player_graph import PlayerGraph

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

NAMED_GRAPHS = ("line", "ring", "grid")

GRAPH_FORMS = (
    "'line', 'ring', 'grid', "
    "a networkx graph, a scipy sparse adjacency matrix, a pandas frame of adjacency, an edge index "
    "of shape (2, E), a list of edges [(i, j), …], an object with an edge_index, or a PlayerGraph"
)


class HasEdgeIndex(Protocol):
    """Data of PyTorch Geometric, or the like."""

    @property
    def edge_index(self) -> Any:
        """The ends of the edges, (2, E)."""


Edges: TypeAlias = "npt.NDArray[Any] | HasEdgeIndex | Sequence[Any]"
"""An edge index, (2, E), data that has one, or a list of edges."""

GraphLike: TypeAlias = "str | PlayerGraph | nx.Graph | pd.DataFrame | scipy.sparse.spmatrix | Edges"
"""A graph that users pass; a list may also hold one graph for each row."""


def read_graph(graph: Any, n_players: int, names: Sequence[Hashable] | None = None) -> PlayerGraph:
    """Return a user's graph as a graph of players.

    Parameters
    ----------
    graph : PlayerGraph, networkx graph, matrix, frame, (2, E) array, list of pairs, or PyG data
        Directions, weights, multiple edges and loops are left aside. The nodes of a networkx graph
        or a frame of adjacency are the players' names, which numbers match by their text; where no
        node is a name, they must be the players' numbers from 0. A list of edges holds numbers, or
        names. The rows of a sparse matrix and the numbers of an edge index are places.
    n_players : int
        How many players there are. A `PlayerGraph` may have fewer: the last players are then alone.
    names : sequence, optional
        Names of the players, which the nodes of a graph may have.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If it cannot be read as a graph of that many players, or if it is not known which node
        is which player.
    """
    if isinstance(graph, PlayerGraph):
        check_number_of_nodes(graph.n_players, n_players, may_be_less=True)
        return graph.placed(np.arange(graph.n_players), n_players)
    if hasattr(graph, "nodes") and hasattr(graph, "edges") and hasattr(graph, "adj"):
        return of_networkx(graph, n_players, names)
    if hasattr(graph, "columns") and hasattr(graph, "index") and hasattr(graph, "to_numpy"):
        return of_adjacency_frame(graph, n_players, names)
    if scipy.sparse.issparse(graph):
        return _of_matrix(graph, n_players)
    edge_index = getattr(graph, "edge_index", graph)
    n_nodes = getattr(graph, "num_nodes", None)
    if n_nodes is not None:
        check_number_of_nodes(int(n_nodes), n_players)
    read = _of_edges(edge_index, n_players, names)
    if n_nodes is None:
        _check_reach(read)
    return read


def read_graphs(
    graph: Any,
    layouts: Sequence[Sequence[IntArray]],
    n_players: int,
    names: Sequence[Hashable] | None = None,
) -> PlayerGraph | list[PlayerGraph]:
    """Return the graph of the players, or that of each row, from what a user passed.

    Parameters
    ----------
    graph : "line", "ring", "grid", a graph, or a list with one graph for each row
        Named graphs are made from where the players stand in each input; see `graph_of_places`.
        All others are what `read_graph` takes.
    layouts : sequence of sequences of arrays
        The player of each place of each input, in the shape of the input, for each row; for all
        rows together where there is one entry.
    n_players : int
        How many players there are.
    names : sequence, optional
        Their names.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If it cannot be read.
    """
    if isinstance(graph, str):
        made: dict[Any, PlayerGraph] = {}
        graphs = []
        for layout in layouts:
            key = tuple((places.shape, places.tobytes()) for places in layout)
            if key not in made:
                made[key] = graph_of_places(graph, layout, n_players)
            graphs.append(made[key])
        return graphs[0] if len(made) == 1 else graphs
    if _is_one_for_each_row(graph):
        return [read_graph(one, n_players, names) for one in graph]
    return read_graph(graph, n_players, names)


def graph_of_places(kind: str, layout: Sequence[IntArray], n_players: int) -> PlayerGraph:
    """Return the graph of players that stand next to each other in the same input.

    Parameters
    ----------
    kind : {"line", "ring", "grid"}
        Next to each other in the order of the places, with the last next to the first for a ring;
        or along any dimension of the input. A player with several places, such as a superpixel, is
        next to all that touch it.
    layout : sequence of arrays
        The player of each place of each input, in the shape of the input.
    n_players : int
        How many players there are. Those without a place are alone.
    """
    checked_choice("graph", kind, NAMED_GRAPHS)
    graphs = []
    for places in layout:
        ordered = places if kind == "grid" else places.ravel()
        if kind == "ring":
            ordered = np.append(ordered, ordered[:1])
        graphs.append(PlayerGraph.touching(ordered, n_players=n_players))
    if len(graphs) == 1:
        return graphs[0]
    return PlayerGraph.of_edges(n_players, np.concatenate([one.edges for one in graphs]))


def _is_one_for_each_row(graph: Any) -> bool:
    """Tell lists of graphs from edge indices, which may be lists of two lists, and of edges."""
    if not isinstance(graph, (list, tuple)):
        return False
    return len(graph) > 0 and not any(
        isinstance(one, (list, tuple, str, numbers.Number)) or getattr(one, "ndim", 2) < 2
        for one in graph
    )


def _of_matrix(matrix: Any, n_players: int) -> PlayerGraph:
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidArgumentError(
            f"graph must be a square adjacency matrix; got one of shape {matrix.shape}."
        )
    check_number_of_nodes(matrix.shape[0], n_players)
    coordinates = matrix.tocoo()
    kept = np.asarray(coordinates.data) != 0
    return PlayerGraph.of_edges(
        n_players, np.stack([coordinates.row[kept], coordinates.col[kept]], axis=1)
    )


def _of_edges(edges: Any, n_players: int, names: Sequence[Hashable] | None) -> PlayerGraph:
    are_pairs = _is_list_of_tuples(edges)
    if are_pairs and names and all(isinstance(node, str) for edge in edges for node in edge):
        return of_named_edges(_checked_pairs(edges), n_players, names)
    pairs = _as_pairs(edges) if are_pairs else _as_edge_index(edges).T
    refuse_numbered_names(names, n_players)
    return PlayerGraph.of_edges(n_players, pairs)


def _check_reach(read: PlayerGraph) -> None:
    """Refuse edges of few players: a node with several numbers was most likely taken apart."""
    n_named = int(read.edges.max(initial=-1)) + 1
    if 0 < 2 * n_named <= read.n_players:
        raise InvalidArgumentError(
            f"graph names {n_named} nodes, but there are {read.n_players} players, of which the "
            "others would be alone. If a node has several numbers, pass a feature_mask, or groups "
            "of columns, that makes them one player. If the others are alone indeed, pass "
            f"PlayerGraph.of_edges({read.n_players}, edges)."
        )


def _is_list_of_tuples(given: Any) -> bool:
    is_list = isinstance(given, (list, tuple)) and len(given) > 0
    return is_list and all(isinstance(one, tuple) for one in given)


def _as_pairs(edges: Sequence[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """Return edges; a tuple is one edge, however many there are, and never a row of an index."""
    for edge in edges:
        if not all(isinstance(node, numbers.Integral) for node in edge):
            _refuse_edge(edge)
    return [(int(i), int(j)) for i, j in _checked_pairs(edges)]


def _checked_pairs(edges: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    for edge in edges:
        if len(edge) != 2:
            _refuse_edge(edge)
    return edges


def _refuse_edge(edge: tuple[Any, ...]) -> NoReturn:
    raise InvalidArgumentError(
        "graph, as a list of tuples, must hold pairs of whole numbers, or of the players' names, "
        f"the two nodes of each edge; got {edge!r}. Pass an edge index as an array or tensor, "
        "(2, E)."
    )


def _as_edge_index(edge_index: Any) -> IntArray:
    if hasattr(edge_index, "detach"):  # a tensor, without importing torch
        edge_index = edge_index.detach().cpu().numpy()
    try:
        pairs: npt.NDArray[Any] = np.asarray(edge_index)
    except ValueError:
        pairs = np.zeros(0)
    if isinstance(edge_index, str) or pairs.dtype.kind not in "iufb" or pairs.ndim == 0:
        raise InvalidArgumentTypeError(
            f"graph must be {GRAPH_FORMS}; got {type(edge_index).__name__}."
        )
    if pairs.ndim != 2 or len(pairs) != 2 or (pairs.size and pairs.dtype.kind not in "iu"):
        raise InvalidArgumentError(
            "graph, as an edge index, must hold whole numbers in the shape (2, E): one column for "
            f"each edge; got shape {pairs.shape} of {pairs.dtype}. An adjacency matrix must be "
            "sparse: scipy.sparse.csr_array(matrix)."
        )
    return pairs.astype(np.intp)

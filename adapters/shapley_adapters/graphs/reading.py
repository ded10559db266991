"""Conversion of users' graphs to graphs of players, one for all rows or one for each."""

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
from ..hierarchies.player_tree import PlayerTree
from .causal_graph import CausalGraph
from .named_graphs import (
    check_number_of_nodes,
    from_adjacency_frame,
    from_named_edges,
    from_networkx,
    refuse_numbered_names,
)
from .player_graph import PlayerGraph

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from torch import Tensor


NAMED_GRAPHS = ("line", "ring", "grid")

GRAPH_FORMS = (
    "'line', 'ring', 'grid', a networkx graph, an adjacency matrix of scipy or pandas, edges "
    "(2, E) or [(i, j)], data with edge_index, or a PlayerGraph"
)


class HasEdgeIndex(Protocol):
    """Data of PyTorch Geometric, or the like."""

    @property
    def edge_index(self) -> Any:
        """The ends of the edges, (2, E)."""


Edges: TypeAlias = "npt.NDArray[Any] | Tensor | HasEdgeIndex | Sequence[Any]"
"""An edge index, (2, E), data that has one, or a list of edges."""

Structure: TypeAlias = PlayerGraph | PlayerTree | CausalGraph
"""What an estimate may depend on beside the game."""

GraphLike: TypeAlias = "str | PlayerGraph | nx.Graph | pd.DataFrame | scipy.sparse.spmatrix | Edges"
"""A graph that users pass; a list may also hold one graph for each row."""


def read_graph(graph: Any, n_players: int, names: Sequence[Hashable] | None = None) -> PlayerGraph:
    """Return a user's graph as a graph of players.

    Parameters
    ----------
    graph : PlayerGraph, networkx graph, matrix, frame, (2, E) array, list of pairs, or PyG data
        Directions, weights, multiple edges and loops are ignored. The nodes of a networkx graph or
        of an adjacency frame are the players' names; numbers match names by their text. If no node
        is a name, the nodes must be the players' numbers from 0. A list of edges holds numbers, or
        names. The rows of a sparse matrix and the numbers of an edge index are indices of players.
    n_players : int
        The number of players. A `PlayerGraph` may have fewer: the last players then have no edges.
    names : sequence, optional
        Names of the players, which may be the nodes of the graph.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If it is not a graph of that many players, or the player of a node is unknown.
    """
    if isinstance(graph, PlayerGraph):
        check_number_of_nodes(graph.n_players, n_players, may_be_less=True)
        return graph.embedded(np.arange(graph.n_players), n_players)
    if hasattr(graph, "nodes") and hasattr(graph, "edges") and hasattr(graph, "adj"):
        return from_networkx(graph, n_players, names)
    if hasattr(graph, "columns") and hasattr(graph, "index") and hasattr(graph, "to_numpy"):
        return from_adjacency_frame(graph, n_players, names)
    if scipy.sparse.issparse(graph):
        if graph.shape[0] != graph.shape[1]:
            raise InvalidArgumentError(
                f"graph must be a square adjacency matrix; got one of shape {graph.shape}."
            )
        check_number_of_nodes(graph.shape[0], n_players)
        coordinates = graph.tocoo()
        is_edge = np.asarray(coordinates.data) != 0
        return PlayerGraph.from_edges(
            n_players, np.stack([coordinates.row[is_edge], coordinates.col[is_edge]], axis=1)
        )
    edge_index = getattr(graph, "edge_index", graph)
    n_nodes = getattr(graph, "num_nodes", None)
    if n_nodes is not None:
        check_number_of_nodes(int(n_nodes), n_players)
    player_graph = _from_edges(edge_index, n_players, names)
    if n_nodes is None:
        _check_reach(player_graph)
    return player_graph


def read_graphs(
    graph: Any,
    layouts: Sequence[Sequence[IntArray]],
    n_players: int,
    names: Sequence[Hashable] | None = None,
) -> PlayerGraph | list[PlayerGraph]:
    """Return the graph of the players, or one graph per row, from the argument `graph`.

    Parameters
    ----------
    graph : "line", "ring", "grid", a graph, or a list with one graph for each row
        Named graphs are computed from the positions of the players; see `graph_of_layout`. For
        other graphs see `read_graph`.
    layouts : sequence of sequences of arrays
        For each row, or once for all rows: the player of each entry of each input, in the shape of
        the input.
    n_players : int
        The number of players.
    names : sequence, optional
        Names of the players.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the graph cannot be used.
    """
    if isinstance(graph, str):
        graphs_by_layout: dict[Any, PlayerGraph] = {}
        graphs = []
        for layout in layouts:
            key = tuple((players.shape, players.tobytes()) for players in layout)
            if key not in graphs_by_layout:
                graphs_by_layout[key] = graph_of_layout(graph, layout, n_players)
            graphs.append(graphs_by_layout[key])
        return graphs[0] if len(graphs_by_layout) == 1 else graphs
    if _is_one_for_each_row(graph):
        return [read_graph(row_graph, n_players, names) for row_graph in graph]
    return read_graph(graph, n_players, names)


def graph_of_layout(kind: str, layout: Sequence[IntArray], n_players: int) -> PlayerGraph:
    """Return the graph of players that are adjacent in the same input.

    Parameters
    ----------
    kind : {"line", "ring", "grid"}
        `"line"`: entries are adjacent in their order. `"ring"`: the last and the first entry are
        adjacent too. `"grid"`: entries are adjacent along each dimension of the input. A player
        with several entries, such as a superpixel, is a neighbour of all players that touch it.
    layout : sequence of arrays
        The player of each entry of each input, in the shape of the input.
    n_players : int
        The number of players. Players without entries have no edges.
    """
    checked_choice("graph", kind, NAMED_GRAPHS)
    graphs = []
    for players in layout:
        ordered = players if kind == "grid" else players.ravel()
        if kind == "ring":
            ordered = np.append(ordered, ordered[:1])
        graphs.append(PlayerGraph.touching(ordered, n_players=n_players))
    if len(graphs) == 1:
        return graphs[0]
    return PlayerGraph.from_edges(
        n_players, np.concatenate([input_graph.edges for input_graph in graphs])
    )


def _is_one_for_each_row(graph: Any) -> bool:
    """Return whether `graph` is a list of graphs, rather than an edge index or a list of edges."""
    if not isinstance(graph, (list, tuple)):
        return False
    return len(graph) > 0 and not any(
        isinstance(row_graph, (list, tuple, str, numbers.Number))
        or getattr(row_graph, "ndim", 2) < 2
        for row_graph in graph
    )


def _from_edges(edges: Any, n_players: int, names: Sequence[Hashable] | None) -> PlayerGraph:
    is_list = isinstance(edges, (list, tuple)) and len(edges) > 0
    are_pairs = is_list and all(isinstance(edge, tuple) for edge in edges)
    if are_pairs and names and all(isinstance(node, str) for edge in edges for node in edge):
        return from_named_edges(_checked_pairs(edges), n_players, names)
    pairs = _as_pairs(edges) if are_pairs else _as_edge_index(edges).T
    refuse_numbered_names(names, n_players)
    return PlayerGraph.from_edges(n_players, pairs)


def _check_reach(graph: PlayerGraph) -> None:
    """Refuse edges of few players: probably each number of a node became a player."""
    n_named = int(graph.edges.max(initial=-1)) + 1
    if 0 < 2 * n_named <= graph.n_players:
        raise InvalidArgumentError(
            f"graph names {n_named} nodes, but there are {graph.n_players} players, of which the "
            "others would have no edges. If a node has several numbers, pass a feature_mask, or "
            "groups of columns, that makes them one player. If the others have no edges indeed, "
            f"pass PlayerGraph.from_edges({graph.n_players}, edges)."
        )


def _as_pairs(edges: Sequence[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """Return a list of tuples as edges; a tuple is one edge, never a row of an edge index."""
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


_WORDS = {
    PlayerGraph: ("graph", "nodes"),
    PlayerTree: ("hierarchy", "players"),
    CausalGraph: ("order", "features"),
}


def graphs_of_rows(
    graph: Structure | Sequence[Structure] | None, n_rows: int, n_players: int, name: str
) -> Sequence[Structure]:
    """Return the graph, or the tree, of each row.

    Parameters
    ----------
    graph : PlayerGraph, PlayerTree, CausalGraph, sequence of them, or None
        One graph for all rows, or one graph per row.
    n_rows, n_players : int
        Numbers of rows and players of the game.
    name : str
        Name of the estimator, for errors.

    Raises
    ------
    InvalidArgumentError
        If there is no graph, the number of graphs differs from the number of rows, or the nodes of
        a graph are not the players.
    """
    if graph is None:
        raise InvalidArgumentError(
            f"graph is missing: {name} needs the neighbours of each player. Pass graph= to "
            "Settings."
        )
    graphs = [graph] * n_rows if isinstance(graph, Structure) else graph
    if len(graphs) != n_rows:
        raise InvalidArgumentError(
            f"graph holds {len(graphs)} graphs, but there are {n_rows} rows."
        )
    for row_graph in graphs:
        argument, nodes = _WORDS[type(row_graph)]
        if row_graph.n_players != n_players:
            raise InvalidArgumentError(
                f"{argument} has {row_graph.n_players} {nodes}, but there are {n_players} players."
            )
    return graphs

"""Graphs with named nodes: of networkx, adjacency frames, and edges between names."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError
from .player_graph import PlayerGraph

Names = Sequence[Hashable] | None

_MOST_SHOWN = 4
"""Largest number of nodes in an error message."""


def from_networkx(graph: Any, n_players: int, names: Names) -> PlayerGraph:
    """Convert a networkx graph whose nodes are the players' names, or their numbers from 0.

    Raises
    ------
    InvalidArgumentError
        If the nodes are neither, because the player of a node would be a guess.
    """
    remedy = (
        "pass the node of each player: PlayerGraph.from_networkx(graph, nodelist=[…]); list(graph) "
        "is the order of nodes in the graph"
    )
    number = _numbers(list(graph.nodes), n_players, names, remedy)
    return PlayerGraph.from_edges(n_players, [(number[e[0]], number[e[1]]) for e in graph.edges])


def from_adjacency_frame(frame: Any, n_players: int, names: Names) -> PlayerGraph:
    """Return the graph of a pandas frame with a row and a column for each node.

    Raises
    ------
    InvalidArgumentError
        If rows and columns are not the same nodes, the nodes are not the players, or a number is
        NaN.
    """
    rows, columns = list(frame.index), list(frame.columns)
    if len(rows) != len(columns) or set(rows) != set(columns) or len(set(rows)) < len(rows):
        raise InvalidArgumentError(
            "graph, as a frame, must be an adjacency matrix, with each node once in the index and "
            f"once in the columns. Got the index {_first_nodes(rows)} and the columns "
            f"{_first_nodes(columns)}. For a frame of edges, pass a networkx "
            "graph: nx.from_pandas_edgelist(frame, …)."
        )
    remedy = (
        "pass scipy.sparse.csr_array(graph.to_numpy()), whose rows and columns are in the order of "
        "the players"
    )
    number = _numbers(rows, n_players, names, remedy)
    weights = np.asarray(frame.to_numpy(), dtype=np.float64)
    if np.isnan(weights).any():
        raise InvalidArgumentError("graph, as a frame, holds NaN; fill it with 0 for no edge.")
    source, sink = np.nonzero(weights)
    player_of_row = np.array([number[node] for node in rows], dtype=np.intp)
    player_of_column = np.array([number[node] for node in columns], dtype=np.intp)
    return PlayerGraph.from_edges(
        n_players, np.stack([player_of_row[source], player_of_column[sink]], axis=1)
    )


def from_named_edges(edges: Sequence[tuple[Any, ...]], n_players: int, names: Names) -> PlayerGraph:
    """Return the graph of edges between players' names.

    Raises
    ------
    InvalidArgumentError
        If a node of an edge is not the name of a player.
    """
    player_of = {str(name): player for player, name in enumerate(names or ())}
    for node in (node for edge in edges for node in edge):
        if node not in player_of:
            raise InvalidArgumentError(
                f"graph has an edge to {node!r}, which is not the name of a player; the names are "
                f"{_first_nodes(list(player_of))}. If players have no names, use numbers from 0."
            )
    return PlayerGraph.from_edges(n_players, [(player_of[i], player_of[j]) for i, j in edges])


def refuse_numbered_names(names: Names, n_players: int) -> None:
    """Refuse edges between numbers if the names of the players are other numbers.

    Whether 3 is the player named 3, or the player at index 3, would be a guess.
    """
    texts = [str(name) for name in names or ()]
    are_numbers = bool(texts) and all(text.isdecimal() for text in texts)
    if are_numbers and texts != [str(player) for player in range(n_players)]:
        raise InvalidArgumentError(
            f"graph has edges between numbers, and the names of the players are "
            f"{_first_nodes(texts)}: a number may be a name or an index. For names, pass a "
            f"networkx graph, nx.Graph(edges). For indices from 0, pass "
            f"PlayerGraph.from_edges({n_players}, edges)."
        )


def check_number_of_nodes(n_nodes: int, n_players: int, may_be_less: bool = False) -> None:
    """Refuse a graph unless it has one node per player."""
    if n_nodes > n_players or (n_nodes < n_players and not may_be_less):
        raise InvalidArgumentError(
            f"graph has {n_nodes} nodes, but there are {n_players} players; it must have one node "
            "for each player, in the order of the players. If rows have different players, pass a "
            "list with one graph for each row."
        )


def _numbers(
    nodes: Sequence[Any], n_players: int, names: Names, remedy: str
) -> Mapping[Hashable, int]:
    """Return the player of each node: by name, or by number."""
    check_number_of_nodes(len(nodes), n_players)
    by_name = _by_name(nodes, names)
    if by_name is not None:
        return by_name
    are_numbers = all(
        isinstance(node, numbers.Integral) and not isinstance(node, bool) for node in nodes
    )
    if are_numbers and set(nodes) == set(range(n_players)):
        return {node: int(node) for node in nodes}
    known_names = f" ({_first_nodes(list(names))})" if names else ""
    raise InvalidArgumentError(
        f"graph: the player of each node is unknown. The nodes {_first_nodes(nodes)} are neither "
        f"the names of the players{known_names} nor the numbers from 0 to {n_players - 1}. "
        f"Use these names or numbers, or {remedy}."
    )


def _by_name(nodes: Sequence[Hashable], names: Names) -> dict[Hashable, int] | None:
    """Return the player of each node by its name; None if no node is a name."""
    player_of = {str(name): player for player, name in enumerate(names or ())}
    if not any(str(node) in player_of for node in nodes):
        return None
    unknown_nodes = [node for node in nodes if str(node) not in player_of]
    node_names = {str(node) for node in nodes}
    nodeless = [name for name in player_of if name not in node_names]
    if unknown_nodes and nodeless:
        raise InvalidArgumentError(
            f"graph: node {unknown_nodes[0]!r} is not the name of a player, and player "
            f"{nodeless[0]!r} has no node, although other nodes are names. Use the players' names "
            "for all nodes, or for none."
        )
    if len(node_names) < len(nodes) or nodeless:
        raise InvalidArgumentError(
            "graph: different nodes or players have names with the same text, such as 1 and '1'. "
            "Give each of them another name."
        )
    return {node: player_of[str(node)] for node in nodes}


def _first_nodes(nodes: Sequence[Hashable]) -> str:
    """Return the first of some nodes as text."""
    ending = ", …" if len(nodes) > _MOST_SHOWN else ""
    return f"[{', '.join(repr(node) for node in nodes[:_MOST_SHOWN])}{ending}]"

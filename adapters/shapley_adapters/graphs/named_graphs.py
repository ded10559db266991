"""Graphs whose nodes have names: of networkx, frames of adjacency, and edges between names."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError
from .player_graph import PlayerGraph

Names = Sequence[Hashable] | None

_MOST_SHOWN = 4
"""Nodes listed in an error."""


def of_networkx(graph: Any, n_players: int, names: Names) -> PlayerGraph:
    """Return a networkx graph; its nodes are the players' names, or their numbers from 0.

    Raises
    ------
    InvalidArgumentError
        If they are neither. Which player a node is would be a guess.
    """
    remedy = (
        "say which node each player is: PlayerGraph.of_networkx(graph, nodelist=[…]); list(graph) "
        "is the graph's own order"
    )
    number = _numbers(list(graph.nodes), n_players, names, remedy)
    return PlayerGraph.of_edges(n_players, [(number[e[0]], number[e[1]]) for e in graph.edges])


def of_adjacency_frame(frame: Any, n_players: int, names: Names) -> PlayerGraph:
    """Return the graph of a pandas frame with a row and a column for each node.

    Raises
    ------
    InvalidArgumentError
        If the rows and columns are not the same nodes, these not the players, or a number is NaN.
    """
    rows, columns = list(frame.index), list(frame.columns)
    if len(rows) != len(columns) or set(rows) != set(columns) or len(set(rows)) < len(rows):
        raise InvalidArgumentError(
            "graph, as a frame, must be an adjacency: its index and its columns must hold the same "
            f"nodes, each once; got the index {_shown(rows)} and the columns {_shown(columns)}. "
            "For a frame of edges, pass a networkx graph: nx.from_pandas_edgelist(frame, …)."
        )
    remedy = (
        "pass scipy.sparse.csr_array(graph.to_numpy()), whose rows and columns are the players in "
        "turn"
    )
    number = _numbers(rows, n_players, names, remedy)
    weights = np.asarray(frame.to_numpy(), dtype=np.float64)
    if np.isnan(weights).any():
        raise InvalidArgumentError("graph, as a frame, holds NaN; fill it with 0 for no edge.")
    source, sink = np.nonzero(weights)
    place_of_row = np.array([number[node] for node in rows], dtype=np.intp)
    place_of_column = np.array([number[node] for node in columns], dtype=np.intp)
    return PlayerGraph.of_edges(
        n_players, np.stack([place_of_row[source], place_of_column[sink]], axis=1)
    )


def of_named_edges(edges: Sequence[tuple[Any, ...]], n_players: int, names: Names) -> PlayerGraph:
    """Return the graph of edges between players' names.

    Raises
    ------
    InvalidArgumentError
        If an edge has another name.
    """
    place_of = {str(name): place for place, name in enumerate(names or ())}
    for node in (node for edge in edges for node in edge):
        if node not in place_of:
            raise InvalidArgumentError(
                f"graph has an edge to {node!r}, which is the name of no player; they are called "
                f"{_shown(list(place_of))}. Where players have no names, number them from 0."
            )
    return PlayerGraph.of_edges(n_players, [(place_of[i], place_of[j]) for i, j in edges])


def refuse_numbered_names(names: Names, n_players: int) -> None:
    """Refuse edges between numbers where the players are called by other numbers.

    Whether 3 is the player called 3, or the one at place 3, would be a guess.
    """
    texts = [str(name) for name in names or ()]
    are_numbers = bool(texts) and all(text.isdecimal() for text in texts)
    if are_numbers and texts != [str(place) for place in range(n_players)]:
        raise InvalidArgumentError(
            f"graph has edges between numbers, and the players are called {_shown(texts)}: a "
            "number may be a name or a place. Pass a networkx graph of the names, "
            f"nx.Graph(edges), or PlayerGraph.of_edges({n_players}, edges) of the places, counted "
            "from 0."
        )


def check_number_of_nodes(n_nodes: int, n_players: int, may_be_less: bool = False) -> None:
    """Refuse a graph that has not one node for each player."""
    if n_nodes > n_players or (n_nodes < n_players and not may_be_less):
        raise InvalidArgumentError(
            f"graph has {n_nodes} nodes, but there are {n_players} players; it must have one node "
            "for each player, in their order. Where rows have players of their own, pass a list "
            "with one graph for each row."
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
    called = f" ({_shown(list(names))})" if names else ""
    raise InvalidArgumentError(
        f"graph: its nodes {_shown(nodes)} are neither the names of the players{called} nor the "
        f"numbers from 0 to {n_players - 1}, so that it is not known which node is which player. "
        f"Name or number them so, or {remedy}."
    )


def _by_name(nodes: Sequence[Hashable], names: Names) -> dict[Hashable, int] | None:
    """Return the player of each node by its name; None where no node is a name."""
    place_of = {str(name): place for place, name in enumerate(names or ())}
    if not any(str(node) in place_of for node in nodes):
        return None
    strange = [node for node in nodes if str(node) not in place_of]
    named = {str(node) for node in nodes}
    left = [name for name in place_of if name not in named]
    if strange and left:
        raise InvalidArgumentError(
            f"graph: node {strange[0]!r} is the name of no player, and player {left[0]!r} has no "
            "node, although other nodes are names. Name each node as its player, or none."
        )
    if len(named) < len(nodes) or left:
        raise InvalidArgumentError(
            "graph: names of nodes or players are not told apart by their text, such as 1 and "
            "'1'. Give each another name."
        )
    return {node: place_of[str(node)] for node in nodes}


def _shown(nodes: Sequence[Hashable]) -> str:
    """Return the first of some nodes as text."""
    more = ", …" if len(nodes) > _MOST_SHOWN else ""
    return f"[{', '.join(repr(node) for node in nodes[:_MOST_SHOWN])}{more}]"

"""Checks of the graphs of a game's rows."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidArgumentError
from .player_graph import PlayerGraph


def graphs_of_rows(
    graph: PlayerGraph | Sequence[PlayerGraph] | None, n_rows: int, n_players: int, name: str
) -> Sequence[PlayerGraph]:
    """Return the graph of each row.

    Parameters
    ----------
    graph : PlayerGraph or sequence of them, or None
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
    graphs = [graph] * n_rows if isinstance(graph, PlayerGraph) else graph
    if len(graphs) != n_rows:
        raise InvalidArgumentError(
            f"graph holds {len(graphs)} graphs, but there are {n_rows} rows."
        )
    for row_graph in graphs:
        if row_graph.n_players != n_players:
            raise InvalidArgumentError(
                f"graph has {row_graph.n_players} nodes, but there are {n_players} players."
            )
    return graphs

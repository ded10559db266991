"""The graphs of a game's rows, checked."""

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
        The graph of all rows, or that of each.
    n_rows, n_players : int
        Rows and players of the game.
    name : str
        Name of the estimator, for errors.

    Raises
    ------
    InvalidArgumentError
        If there is none, not one for each row, or one with other nodes than the players.
    """
    if graph is None:
        raise InvalidArgumentError(
            f"graph is missing: {name} has to know which players are neighbours. Pass graph= to "
            "Settings."
        )
    graphs = [graph] * n_rows if isinstance(graph, PlayerGraph) else graph
    if len(graphs) != n_rows:
        raise InvalidArgumentError(
            f"graph holds {len(graphs)} graphs, but there are {n_rows} rows."
        )
    for one in graphs:
        if one.n_players != n_players:
            raise InvalidArgumentError(
                f"graph has {one.n_players} nodes, but there are {n_players} players."
            )
    return graphs

"""The positions of the players in the inputs, and graphs of adjacent players."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shapley_adapters import PlayerGraph
from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.graphs.reading import GRAPH_FORMS, GraphLike, read_graphs


@dataclass(frozen=True)
class PlayerLayout:
    """The player of each entry of the inputs.

    Attributes
    ----------
    players : sequence of arrays, (D_r,)
        For each row, the player of each entry of the mask.
    shapes : sequence of sequences of tuples
        The shape of each input, for each row.
    has_neighbours : sequence of bool
        Whether adjacent entries of each input are neighbours.
    n_players : int
        The number of players.
    names : list of str, optional
        Names of the players, if all rows have the same.
    """

    players: Sequence[IntArray]
    shapes: Sequence[Sequence[tuple[int, ...]]]
    has_neighbours: Sequence[bool]
    n_players: int
    names: list[str] | None = None

    def graph(self, graph: GraphLike | None) -> PlayerGraph | list[PlayerGraph]:
        """Return the graph of the argument `graph`; for None, the grid of texts and images."""
        if graph is None:
            if not all(self.has_neighbours):
                raise InvalidArgumentError(
                    "graph is missing: without it, neighbours are known only for texts and images, "
                    "with shap.maskers.Text and Image or with backgrounds in their shape. Pass "
                    f"graph=, {GRAPH_FORMS}."
                )
            graph = "grid"
        rows = [self._row_players(row) for row in range(len(self.players))]
        return read_graphs(graph, rows, self.n_players, self.names)

    def _row_players(self, row: int) -> list[IntArray]:
        shapes = [of_input[row] for of_input in self.shapes]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        parts = np.split(self.players[row], ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

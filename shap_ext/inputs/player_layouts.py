"""Where the players stand in the inputs, and the graphs that this makes of them."""

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
    """The places of all inputs, and the players that they belong to.

    Attributes
    ----------
    places : sequence of arrays, (D_r,)
        The player of each place of the mask of each row.
    shapes : sequence of sequences of tuples
        The shape of each input, for each row.
    has_neighbours : sequence of bool
        Whether places of each input that are next to each other are neighbours.
    n_players : int
        How many players there are.
    names : list of str, optional
        Their names, where all rows have the same.
    """

    places: Sequence[IntArray]
    shapes: Sequence[Sequence[tuple[int, ...]]]
    has_neighbours: Sequence[bool]
    n_players: int
    names: list[str] | None = None

    def graph(self, graph: GraphLike | None) -> PlayerGraph | list[PlayerGraph]:
        """Return the graph that a user passed, or that of texts and images where it is None."""
        if graph is None:
            if not all(self.has_neighbours):
                raise InvalidArgumentError(
                    "graph is missing: which features are neighbours can be found out for texts "
                    "and images only, of shap.maskers.Text and Image or with backgrounds in their "
                    f"shape. Pass graph=, {GRAPH_FORMS}."
                )
            graph = "grid"
        rows = [self._of_row(row) for row in range(len(self.places))]
        return read_graphs(graph, rows, self.n_players, self.names)

    def _of_row(self, row: int) -> list[IntArray]:
        shapes = [of_input[row] for of_input in self.shapes]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        parts = np.split(self.places[row], ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

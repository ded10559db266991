"""The positions of the players in the inputs, graphs of adjacent players, and zero references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from shapley_adapters import PlayerGraph
from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, warn_user
from shapley_adapters.graphs.reading import GRAPH_FORMS, GraphLike, read_graphs

from .backgrounds import Background
from .datasets import Dataset, one_array


def zero_background(datasets: Sequence[Dataset]) -> Background:
    """Return the reference of a call without a masker: zeros.

    Raises
    ------
    InvalidArgumentError
        If the rows are not one table of numbers.
    """
    dataset = datasets[0]
    values = dataset.values if dataset.is_sparse else one_array(dataset.values)
    if len(datasets) > 1:
        raise InvalidArgumentError(_no_reference(f"{len(datasets)} inputs were passed."))
    unusable = [
        column
        for column, dtype in zip(dataset.columns or [], _dtypes(dataset), strict=True)
        if not pd.api.types.is_numeric_dtype(dtype) or dtype.kind == "c"
    ]
    if unusable:
        raise InvalidArgumentError(
            _no_reference(f"The columns {unusable[:5]} hold no real numbers.")
        )
    if dataset.columns is None and values.dtype.kind not in "biuf":
        raise InvalidArgumentError(_no_reference(f"X holds {values.dtype}, not real numbers."))
    warn_user(
        "No masker was given, so absent features are zero. Pass background rows as masker= to "
        "choose another reference."
    )
    n_columns = int(np.prod(dataset.row_shape))
    if dataset.is_sparse:
        zeros = scipy.sparse.csr_matrix((1, n_columns), dtype=values.dtype)
        return Background(zeros, is_sparse=True)
    columns = None if dataset.columns is None else dataset.dtypes.index
    return Background(np.zeros((1, n_columns), dtype=values.dtype), columns, dataset.dtypes)


def _dtypes(dataset: Dataset) -> list[Any]:
    return [] if dataset.dtypes is None else list(dataset.dtypes)


def _no_reference(reason: str) -> str:
    return (
        f"masker=None does not define the values of absent features: {reason} Pass background "
        "rows as masker=, such as a sample of the training data."
    )


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

"""Which features are neighbours, by the shape of the inputs."""

from __future__ import annotations

from torch import Tensor

from shapley_adapters import PlayerGraph
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.graphs.reading import GraphLike, read_graphs

from ..games.forward_function_game import ForwardFunctionGame


def graph_of_inputs(
    graph: GraphLike | None, game: ForwardFunctionGame
) -> PlayerGraph | list[PlayerGraph]:
    """Return the graph of the players: by default the grid of the inputs."""
    if graph is None:
        _refuse_tables(game.inputs)
    layouts = game.groups.layouts([tuple(tensor.shape[1:]) for tensor in game.inputs])
    return read_graphs("grid" if graph is None else graph, layouts, game.n_players)


def _refuse_tables(inputs: tuple[Tensor, ...]) -> None:
    """Refuse inputs whose shape says nothing about neighbours."""
    for index, tensor in enumerate(inputs):
        if tensor.dim() == 2 and tensor.shape[1] > 1 and tensor.is_floating_point():
            raise InvalidArgumentError(
                f"graph is missing: inputs[{index}] of shape {tuple(tensor.shape)} is a table of "
                "numbers, whose columns are not neighbours because they stand side by side. Pass "
                "graph= with the graph of its features, or graph='line' if they are a sequence. "
                "Token ids, embeddings, images and volumes bring their graph with them."
            )

"""Base of the attribution methods on graphs."""

from __future__ import annotations

from torch import Tensor

from shapley_adapters import PlayerGraph
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.graphs.reading import GraphLike, read_graphs

from ..games.forward_function_game import ForwardFunctionGame
from .sampling_attribution import SamplingAttribution


@write_constructor
class GraphAttribution(SamplingAttribution):
    """Base of the attribution methods that look at which features are neighbours."""

    graph: GraphLike | None = None

    def _graph(self, game: ForwardFunctionGame) -> PlayerGraph | list[PlayerGraph]:
        if self.graph is None:
            _refuse_tables(game.inputs)
        layouts = game.groups.layouts([tuple(tensor.shape[1:]) for tensor in game.inputs])
        graph = "grid" if self.graph is None else self.graph
        return read_graphs(graph, layouts, game.n_players)


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

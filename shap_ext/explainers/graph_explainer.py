"""Base of the explainers on graphs."""

from __future__ import annotations

from shapley_adapters import PlayerGraph
from shapley_adapters.constructors import write_constructor
from shapley_adapters.graphs.reading import GraphLike

from ..inputs.player_layouts import PlayerLayout
from .sampling_explainer import SamplingExplainer


@write_constructor
class GraphExplainer(SamplingExplainer):
    """Base of the explainers that look at which features are neighbours."""

    graph: GraphLike | None = None

    def _graph(self, layout: PlayerLayout) -> PlayerGraph | list[PlayerGraph]:
        return layout.graph(self.graph)

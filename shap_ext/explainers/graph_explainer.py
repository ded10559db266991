"""What the explainers on graphs share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import shap

from shapley_adapters import PlayerGraph

from ..inputs.player_layouts import PlayerLayout
from .coalition_explainer import CoalitionExplainer


class GraphExplainer(CoalitionExplainer):
    """Base of the explainers that look at which features are neighbours."""

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Callable[[Any], Any] | str = shap.links.identity,
        feature_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        linearize_link: bool = True,
        seed: int | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        value_function: Any = "raw",
        algorithm: str | None = None,  # shap passes it back in when it unwraps a pipeline
        graph: Any = None,
    ) -> None:
        super().__init__(
            model,
            masker,
            link,
            feature_names,
            output_names,
            linearize_link,
            seed,
            groups,
            value_function,
        )
        self.graph = graph

    def _graph(self, layout: PlayerLayout) -> PlayerGraph | list[PlayerGraph]:
        return layout.graph(self.graph)

"""Shapley attributions for captum, with fewer model calls and with error bars."""

from shapley_adapters.errors import required_packages

with required_packages("captum_ext needs captum and torch", extra="captum"):
    import captum
    import torch

    del captum, torch

from shapley_adapters import (
    Estimate,
    PlayerGraph,
    PlayerTree,
    RemoteModel,
    ValueFunction,
    draw_graph,
    windows,
)
from shapley_adapters import __version__ as __version__

from . import attributions, conditional, criteria
from .aggregates import AVA, Centroid, Convex, LowComplexity
from .aggregates.methods import combine
from .attributions import *  # noqa: F403, who adds an estimator adds no name here
from .attributions.surrogate import Surrogate
from .captum_tools.data_loaders import DataLoaderAttribution
from .captum_tools.embeddings import EmbeddingAttribution
from .captum_tools.graph_networks import StackedGraphs
from .captum_tools.images import superpixels, visualize_image_attr_with_error
from .captum_tools.language_models import LLMAttribution, RemoteLLMAttribution
from .explained_games import GameAttributions, explain_game
from .inputs.baselines import BaselineDistribution
from .inputs.forward_arguments import PerExample, Shared
from .results.tensor_results import StreamedAttributions

__all__ = [
    "AVA",
    "BaselineDistribution",
    "Centroid",
    "Convex",
    "DataLoaderAttribution",
    "EmbeddingAttribution",
    "Estimate",
    "GameAttributions",
    "LLMAttribution",
    "LowComplexity",
    "PerExample",
    "PlayerGraph",
    "PlayerTree",
    "RemoteLLMAttribution",
    "RemoteModel",
    "Shared",
    "StackedGraphs",
    "StreamedAttributions",
    "Surrogate",
    "ValueFunction",
    "combine",
    "conditional",
    "criteria",
    "draw_graph",
    "explain_game",
    "superpixels",
    "visualize_image_attr_with_error",
    "windows",
]
__all__ += attributions.__all__

"""Shapley attributions for captum with fewer evaluations: SHEAR and its relatives."""

from shapley_adapters import Estimate, PlayerGraph, ValueFunction, draw_graph

from . import criteria
from .aggregates import Centroid, Convex, LowComplexity
from .attributions import Exact, LeastSquares, RandomOrder, Semivalue, SimSemivalue
from .ava import AVA
from .baselines import BaselineDistribution
from .combining import combine
from .cooperator_attributions import OddGP, Shear
from .data_loaders import DataLoaderAttribution
from .forward_arguments import PerExample, Shared
from .graph_attributions import CShapley, LShapley, Myerson
from .graph_networks import StackedGraphs
from .language_models import LLMAttribution
from .surrogates import Surrogate
from .trained_networks import FastShap, SimShap

__all__ = [
    "AVA",
    "BaselineDistribution",
    "CShapley",
    "Centroid",
    "Convex",
    "DataLoaderAttribution",
    "Estimate",
    "Exact",
    "FastShap",
    "LLMAttribution",
    "LShapley",
    "LeastSquares",
    "LowComplexity",
    "Myerson",
    "OddGP",
    "PerExample",
    "PlayerGraph",
    "RandomOrder",
    "Semivalue",
    "Shared",
    "Shear",
    "SimSemivalue",
    "SimShap",
    "StackedGraphs",
    "Surrogate",
    "ValueFunction",
    "combine",
    "criteria",
    "draw_graph",
]

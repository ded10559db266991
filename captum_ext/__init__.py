"""Shapley attributions for captum with fewer evaluations: SHEAR and its relatives."""

from shapley_adapters import Estimate, PlayerGraph, ValueFunction, draw_graph

from .attributions import (
    Exact,
    LeastSquares,
    OddGP,
    RandomOrder,
    Semivalue,
    Shear,
    SimSemivalue,
)
from .baselines import BaselineDistribution
from .data_loaders import DataLoaderAttribution
from .graph_attributions import CShapley, LShapley, Myerson
from .language_models import LLMAttribution
from .trained_networks import FastShap, SimShap

__all__ = [
    "BaselineDistribution",
    "CShapley",
    "DataLoaderAttribution",
    "Estimate",
    "Exact",
    "FastShap",
    "LLMAttribution",
    "LShapley",
    "LeastSquares",
    "Myerson",
    "OddGP",
    "PlayerGraph",
    "RandomOrder",
    "Semivalue",
    "Shear",
    "SimSemivalue",
    "SimShap",
    "ValueFunction",
    "draw_graph",
]

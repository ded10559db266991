"""Shapley attributions for captum with fewer evaluations: SHEAR and its relatives."""

from shapley_adapters import Estimate, ValueFunction

from .trained_networks import FastShap, SimShap
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
from .language_models import LLMAttribution

__all__ = [
    "BaselineDistribution",
    "DataLoaderAttribution",
    "Estimate",
    "Exact",
    "FastShap",
    "LLMAttribution",
    "LeastSquares",
    "OddGP",
    "RandomOrder",
    "Semivalue",
    "Shear",
    "SimSemivalue",
    "SimShap",
    "ValueFunction",
]

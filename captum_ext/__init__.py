"""Shapley attributions for captum with fewer evaluations: SHEAR and its relatives."""

from shapley_adapters import Estimate, ValueFunction

from . import criteria
from .aggregates import Centroid, Convex, LowComplexity
from .attributions import (
    Exact,
    LeastSquares,
    OddGP,
    RandomOrder,
    Semivalue,
    Shear,
    SimSemivalue,
)
from .ava import AVA
from .baselines import BaselineDistribution
from .combining import combine
from .data_loaders import DataLoaderAttribution
from .language_models import LLMAttribution

__all__ = [
    "AVA",
    "BaselineDistribution",
    "Centroid",
    "Convex",
    "DataLoaderAttribution",
    "Estimate",
    "Exact",
    "LLMAttribution",
    "LeastSquares",
    "LowComplexity",
    "OddGP",
    "RandomOrder",
    "Semivalue",
    "Shear",
    "SimSemivalue",
    "ValueFunction",
    "combine",
    "criteria",
]

"""Shapley explainers for shap with fewer evaluations: SHEAR and its relatives.

Importing this package makes `shap.Explainer` know them by name: see `algorithms`.
"""

from shapley_adapters import Estimate, ValueFunction

from . import criteria
from .combining import combine
from .explainers import (
    AVAExplainer,
    CentroidExplainer,
    ConvexExplainer,
    EnumerationExplainer,
    LeastSquaresExplainer,
    LowComplexityExplainer,
    OddGPExplainer,
    RandomOrderExplainer,
    SemivalueExplainer,
    ShearExplainer,
    SimSemivalueExplainer,
)
from .registration import algorithms, register, unregister

__all__ = [
    "AVAExplainer",
    "CentroidExplainer",
    "ConvexExplainer",
    "EnumerationExplainer",
    "Estimate",
    "LeastSquaresExplainer",
    "LowComplexityExplainer",
    "OddGPExplainer",
    "RandomOrderExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
    "ValueFunction",
    "algorithms",
    "combine",
    "criteria",
    "register",
    "unregister",
]

register()

"""Shapley explainers for shap with fewer evaluations: SHEAR and its relatives.

Importing this package makes `shap.Explainer` know them by name: see `algorithms`.
"""

from shapley_adapters import Estimate, PlayerGraph, ValueFunction, draw_graph

from . import criteria
from .combining import combine
from .explainers import (
    AVAExplainer,
    CentroidExplainer,
    ConvexExplainer,
    CShapleyExplainer,
    EnumerationExplainer,
    FastShapExplainer,
    LeastSquaresExplainer,
    LowComplexityExplainer,
    LShapleyExplainer,
    MyersonExplainer,
    OddGPExplainer,
    RandomOrderExplainer,
    SemivalueExplainer,
    ShearExplainer,
    SimSemivalueExplainer,
    SimShapExplainer,
)
from .registration import algorithms, register, unregister
from .surrogates import Surrogate

__all__ = [
    "AVAExplainer",
    "CShapleyExplainer",
    "CentroidExplainer",
    "ConvexExplainer",
    "EnumerationExplainer",
    "Estimate",
    "FastShapExplainer",
    "LShapleyExplainer",
    "LeastSquaresExplainer",
    "LowComplexityExplainer",
    "MyersonExplainer",
    "OddGPExplainer",
    "PlayerGraph",
    "RandomOrderExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
    "SimShapExplainer",
    "Surrogate",
    "ValueFunction",
    "algorithms",
    "combine",
    "criteria",
    "draw_graph",
    "register",
    "unregister",
]

register()

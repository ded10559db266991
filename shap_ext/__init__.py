"""Shapley explainers for shap with fewer evaluations: SHEAR and its relatives.

Importing this package makes `shap.Explainer` know them by name: see `algorithms`.
"""

from shapley_adapters import Estimate, PlayerGraph, ValueFunction, draw_graph

from .explainers import (
    CShapleyExplainer,
    EnumerationExplainer,
    LeastSquaresExplainer,
    LShapleyExplainer,
    MyersonExplainer,
    OddGPExplainer,
    RandomOrderExplainer,
    SemivalueExplainer,
    ShearExplainer,
    SimSemivalueExplainer,
)
from .registration import algorithms, register, unregister

__all__ = [
    "CShapleyExplainer",
    "EnumerationExplainer",
    "Estimate",
    "LShapleyExplainer",
    "LeastSquaresExplainer",
    "MyersonExplainer",
    "OddGPExplainer",
    "PlayerGraph",
    "RandomOrderExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
    "ValueFunction",
    "algorithms",
    "draw_graph",
    "register",
    "unregister",
]

register()

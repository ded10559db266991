"""Shapley explainers for shap with fewer evaluations: SHEAR and its relatives.

Importing this package makes `shap.Explainer` know them by name: see `algorithms`.
"""

from shapley_adapters import Estimate, PlayerGraph, ValueFunction, draw_graph

from .explainers import (
    CShapleyExplainer,
    EnumerationExplainer,
    FastShapExplainer,
    LeastSquaresExplainer,
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

__all__ = [
    "CShapleyExplainer",
    "EnumerationExplainer",
    "Estimate",
    "FastShapExplainer",
    "LShapleyExplainer",
    "LeastSquaresExplainer",
    "MyersonExplainer",
    "OddGPExplainer",
    "PlayerGraph",
    "RandomOrderExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
    "SimShapExplainer",
    "ValueFunction",
    "algorithms",
    "draw_graph",
    "register",
    "unregister",
]

register()

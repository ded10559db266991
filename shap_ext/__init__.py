"""Shapley explainers for shap with fewer evaluations: SHEAR and its relatives.

Importing this package makes `shap.Explainer` know them by name: see `algorithms`.
"""

from shapley_adapters import Estimate, ValueFunction

from .explainers import (
    EnumerationExplainer,
    FastShapExplainer,
    LeastSquaresExplainer,
    OddGPExplainer,
    RandomOrderExplainer,
    SemivalueExplainer,
    ShearExplainer,
    SimSemivalueExplainer,
    SimShapExplainer,
)
from .registration import algorithms, register, unregister

__all__ = [
    "EnumerationExplainer",
    "Estimate",
    "FastShapExplainer",
    "LeastSquaresExplainer",
    "OddGPExplainer",
    "RandomOrderExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
    "SimShapExplainer",
    "ValueFunction",
    "algorithms",
    "register",
    "unregister",
]

register()

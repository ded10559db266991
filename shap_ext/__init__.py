"""Shapley explainers for shap with fewer evaluations: SHEAR and its relatives.

Importing this package makes `shap.Explainer` know them by name: see `algorithms`.
"""

from shapley_adapters import Estimate

from .explainers import (
    EnumerationExplainer,
    LeastSquaresExplainer,
    RandomOrderExplainer,
    ShearExplainer,
)
from .registration import algorithms, register, unregister

__all__ = [
    "EnumerationExplainer",
    "Estimate",
    "LeastSquaresExplainer",
    "RandomOrderExplainer",
    "ShearExplainer",
    "algorithms",
    "register",
    "unregister",
]

register()

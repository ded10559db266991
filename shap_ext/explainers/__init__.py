"""The explainers: each is its options and its estimator."""

from .methods import (
    AsymmetricExplainer,
    BestExplainer,
    CShapleyExplainer,
    EnumerationExplainer,
    HierarchyExplainer,
    LeastSquaresExplainer,
    LShapleyExplainer,
    MyersonExplainer,
    OddGPExplainer,
    RandomOrderExplainer,
    SemivalueExplainer,
    ShearExplainer,
    SimSemivalueExplainer,
)
from .networks import FastShapExplainer, SimShapExplainer

__all__ = [
    "AsymmetricExplainer",
    "BestExplainer",
    "CShapleyExplainer",
    "EnumerationExplainer",
    "FastShapExplainer",
    "HierarchyExplainer",
    "LShapleyExplainer",
    "LeastSquaresExplainer",
    "MyersonExplainer",
    "OddGPExplainer",
    "RandomOrderExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
    "SimShapExplainer",
]

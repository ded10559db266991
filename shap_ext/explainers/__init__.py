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
    OwenExplainer,
    RandomOrderExplainer,
    SemivalueExplainer,
    ShearExplainer,
    SimSemivalueExplainer,
    SVARMExplainer,
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
    "OwenExplainer",
    "RandomOrderExplainer",
    "SVARMExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
    "SimShapExplainer",
]

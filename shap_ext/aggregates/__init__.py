"""Explainers that are made of other explainers: each is its options and its aggregator."""

from .ava import AVAExplainer
from .methods import CentroidExplainer, ConvexExplainer, LowComplexityExplainer

__all__ = [
    "AVAExplainer",
    "CentroidExplainer",
    "ConvexExplainer",
    "LowComplexityExplainer",
]

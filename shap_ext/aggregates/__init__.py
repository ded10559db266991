"""Explainers that are made of other explainers: each is its options and its aggregator."""

from .ava import AVAExplainer
from .convex import ConvexExplainer
from .methods import CentroidExplainer, LowComplexityExplainer

__all__ = [
    "AVAExplainer",
    "CentroidExplainer",
    "ConvexExplainer",
    "LowComplexityExplainer",
]

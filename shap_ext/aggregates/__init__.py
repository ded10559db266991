"""Explainers that are made of other explainers: each is its options and its aggregator."""

from .methods import AVAExplainer, CentroidExplainer, ConvexExplainer, LowComplexityExplainer

__all__ = [
    "AVAExplainer",
    "CentroidExplainer",
    "ConvexExplainer",
    "LowComplexityExplainer",
]

"""Explainers that are made of other explainers: each is its options and its aggregator."""

from .ava import AVAExplainer
from .centroid import CentroidExplainer
from .convex import ConvexExplainer
from .low_complexity import LowComplexityExplainer

__all__ = [
    "AVAExplainer",
    "CentroidExplainer",
    "ConvexExplainer",
    "LowComplexityExplainer",
]

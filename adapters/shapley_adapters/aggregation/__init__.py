"""Combining several explanations into one, on arrays with features last."""

from .aggregators import Aggregate, Aggregator, Centroid, Convex, LowComplexity, on_one_scale
from .base_explainers import SpentEvaluations
from .centroids import KemenyRanking, kemeny_young
from .convex import (
    ComplexityLoss,
    CriterionLoss,
    LearnedWeights,
    SensitivityLoss,
    UnfaithfulnessLoss,
    learned_weights,
)
from .neighbours import NeighbourIndex, NeighbourSearch, averaged_over_neighbours

__all__ = [
    "Aggregate",
    "Aggregator",
    "Centroid",
    "ComplexityLoss",
    "Convex",
    "CriterionLoss",
    "KemenyRanking",
    "LearnedWeights",
    "LowComplexity",
    "NeighbourIndex",
    "NeighbourSearch",
    "SensitivityLoss",
    "SpentEvaluations",
    "UnfaithfulnessLoss",
    "averaged_over_neighbours",
    "kemeny_young",
    "learned_weights",
    "on_one_scale",
]

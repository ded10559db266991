"""Combining several explanations into one, on arrays with features last."""

from .aggregators import Aggregate, Aggregator, Centroid, Convex, LowComplexity
from .centroids import KemenyRanking, kemeny_young
from .convex import LearnedWeights, learned_weights
from .members import SpentEvaluations
from .neighbours import NeighbourIndex, NeighbourSearch, averaged_over_neighbours

__all__ = [
    "Aggregate",
    "Aggregator",
    "Centroid",
    "Convex",
    "KemenyRanking",
    "LearnedWeights",
    "LowComplexity",
    "NeighbourIndex",
    "NeighbourSearch",
    "SpentEvaluations",
    "averaged_over_neighbours",
    "kemeny_young",
    "learned_weights",
]

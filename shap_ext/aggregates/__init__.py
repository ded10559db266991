"""Explainers that are made of other explainers: each is its options and its aggregator.

`__init__.pyi` has them for type checkers and editors.
"""

from .methods import AVAExplainer, CentroidExplainer, ConvexExplainer, LowComplexityExplainer

__all__ = [
    "AVAExplainer",
    "CentroidExplainer",
    "ConvexExplainer",
    "LowComplexityExplainer",
]

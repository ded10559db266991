"""The explainers: each is its options and its estimator."""

from .ava import AVAExplainer
from .centroid import CentroidExplainer
from .convex import ConvexExplainer
from .enumeration import EnumerationExplainer
from .least_squares import LeastSquaresExplainer
from .low_complexity import LowComplexityExplainer
from .odd_gp import OddGPExplainer
from .random_order import RandomOrderExplainer
from .semivalue import SemivalueExplainer
from .shear import ShearExplainer
from .sim_semivalue import SimSemivalueExplainer

__all__ = [
    "AVAExplainer",
    "CentroidExplainer",
    "ConvexExplainer",
    "EnumerationExplainer",
    "LeastSquaresExplainer",
    "LowComplexityExplainer",
    "OddGPExplainer",
    "RandomOrderExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
]

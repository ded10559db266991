"""The explainers: each is its options and its estimator."""

from .ava import AVAExplainer
from .centroid import CentroidExplainer
from .connected_shapley import CShapleyExplainer
from .convex import ConvexExplainer
from .enumeration import EnumerationExplainer
from .least_squares import LeastSquaresExplainer
from .local_shapley import LShapleyExplainer
from .low_complexity import LowComplexityExplainer
from .myerson import MyersonExplainer
from .odd_gp import OddGPExplainer
from .random_order import RandomOrderExplainer
from .semivalue import SemivalueExplainer
from .shear import ShearExplainer
from .sim_semivalue import SimSemivalueExplainer
from .trained_networks import FastShapExplainer, SimShapExplainer

__all__ = [
    "AVAExplainer",
    "CShapleyExplainer",
    "CentroidExplainer",
    "ConvexExplainer",
    "EnumerationExplainer",
    "FastShapExplainer",
    "LShapleyExplainer",
    "LeastSquaresExplainer",
    "LowComplexityExplainer",
    "MyersonExplainer",
    "OddGPExplainer",
    "RandomOrderExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
    "SimShapExplainer",
]

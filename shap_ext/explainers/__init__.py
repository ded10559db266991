"""The explainers: each is its options and its estimator."""

from .trained_networks import FastShapExplainer, SimShapExplainer
from .enumeration import EnumerationExplainer
from .least_squares import LeastSquaresExplainer
from .odd_gp import OddGPExplainer
from .random_order import RandomOrderExplainer
from .semivalue import SemivalueExplainer
from .shear import ShearExplainer
from .sim_semivalue import SimSemivalueExplainer

__all__ = [
    "EnumerationExplainer",
    "FastShapExplainer",
    "LeastSquaresExplainer",
    "OddGPExplainer",
    "RandomOrderExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
    "SimShapExplainer",
]

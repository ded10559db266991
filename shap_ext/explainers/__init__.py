"""The explainers: each is its options and its estimator."""

from .best import BestExplainer
from .c_shapley import CShapleyExplainer
from .exact import EnumerationExplainer
from .l_shapley import LShapleyExplainer
from .least_squares import LeastSquaresExplainer
from .myerson import MyersonExplainer
from .networks import FastShapExplainer, SimShapExplainer
from .odd_gp import OddGPExplainer
from .owen import OwenExplainer
from .random_order import RandomOrderExplainer
from .semivalue import SemivalueExplainer
from .shear import ShearExplainer
from .sim_semivalue import SimSemivalueExplainer
from .svarm import SVARMExplainer

__all__ = [
    "BestExplainer",
    "CShapleyExplainer",
    "EnumerationExplainer",
    "FastShapExplainer",
    "LShapleyExplainer",
    "LeastSquaresExplainer",
    "MyersonExplainer",
    "OddGPExplainer",
    "OwenExplainer",
    "RandomOrderExplainer",
    "SVARMExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
    "SimShapExplainer",
]

"""Shapley value estimation on cooperative games, without models, maskers or tensors.

This is what `shap_ext` and `captum_ext` share: players, coalitions, games, designs, one batched
evaluation, and estimates.
"""

from .estimates import Estimate
from .estimation import Settings, default_budget, estimate
from .estimators.exact import Exact
from .estimators.least_squares import LeastSquares
from .estimators.odd_gp import OddGP
from .estimators.random_order import RandomOrder
from .estimators.semivalue import Semivalue
from .estimators.shear import Shear
from .estimators.sim_semivalue import SimSemivalue
from .estimators.unbiased_least_squares import UnbiasedLeastSquares
from .games import DifferentiableGame, Game
from .least_squares_forms import least_squares
from .tolerances import Tolerance
from .value_functions import ValueFunction

__all__ = [
    "DifferentiableGame",
    "Estimate",
    "Exact",
    "Game",
    "LeastSquares",
    "OddGP",
    "RandomOrder",
    "Semivalue",
    "Settings",
    "Shear",
    "SimSemivalue",
    "Tolerance",
    "UnbiasedLeastSquares",
    "ValueFunction",
    "default_budget",
    "estimate",
    "least_squares",
]

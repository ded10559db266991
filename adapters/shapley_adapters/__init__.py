"""Shapley value estimation on cooperative games, without models, maskers or tensors.

This is what `shap_ext` and `captum_ext` share: players, coalitions, games, designs, one batched
evaluation, and estimates.
"""

from .budgets import default_budget
from .connected_forms import c_shapley
from .estimates import Estimate
from .estimation import estimate
from .estimators.connected_regression import ConnectedRegression
from .estimators.connected_shapley import CShapley
from .estimators.exact import Exact
from .estimators.least_squares import LeastSquares
from .estimators.local_shapley import LShapley
from .estimators.myerson import Myerson
from .estimators.odd_gp import OddGP
from .estimators.random_order import RandomOrder
from .estimators.semivalue import Semivalue
from .estimators.shear import Shear
from .estimators.sim_semivalue import SimSemivalue
from .estimators.unbiased_least_squares import UnbiasedLeastSquares
from .games import DifferentiableGame, Game
from .graph_drawing import draw_graph
from .graph_reading import read_graph
from .least_squares_forms import least_squares
from .player_graphs import PlayerGraph
from .settings import Settings
from .tolerances import Tolerance
from .value_functions import ValueFunction

__all__ = [
    "CShapley",
    "ConnectedRegression",
    "DifferentiableGame",
    "Estimate",
    "Exact",
    "Game",
    "LShapley",
    "LeastSquares",
    "Myerson",
    "OddGP",
    "PlayerGraph",
    "RandomOrder",
    "Semivalue",
    "Settings",
    "Shear",
    "SimSemivalue",
    "Tolerance",
    "UnbiasedLeastSquares",
    "ValueFunction",
    "c_shapley",
    "default_budget",
    "draw_graph",
    "estimate",
    "least_squares",
    "read_graph",
]

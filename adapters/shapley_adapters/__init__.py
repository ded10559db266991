"""Shapley value estimation on cooperative games, without models, maskers or tensors.

`shap_ext` and `captum_ext` share it: players, coalitions, games, designs, batched evaluation and
estimates.
"""

from .estimators.best import Best
from .estimators.exact import Exact
from .estimators.graph.asymmetric import Asymmetric
from .estimators.graph.c_shapley import CShapley, c_shapley
from .estimators.graph.c_shapley_regression import ConnectedRegression
from .estimators.graph.hierarchy import Hierarchy
from .estimators.graph.l_shapley import LShapley
from .estimators.graph.myerson import Myerson
from .estimators.least_squares.regression import LeastSquares, UnbiasedLeastSquares, least_squares
from .estimators.odd_gp.estimator import OddGP
from .estimators.random_order import RandomOrder
from .estimators.semivalues import Semivalue, SimSemivalue
from .estimators.shear.estimator import Shear
from .games.game import Game
from .games.value_functions import ValueFunction
from .graphs.drawing import draw_graph
from .graphs.player_graph import PlayerGraph
from .graphs.reading import read_graph
from .hierarchies.player_tree import PlayerTree
from .pipeline.estimate import estimate
from .pipeline.result import Estimate
from .pipeline.settings import Settings, Tolerance, default_budget
from .remote import RemoteModel
from .series_windows import windows

__version__ = "0.1.0"

__all__ = [
    "Asymmetric",
    "Best",
    "CShapley",
    "ConnectedRegression",
    "Estimate",
    "Exact",
    "Game",
    "Hierarchy",
    "LShapley",
    "LeastSquares",
    "Myerson",
    "OddGP",
    "PlayerGraph",
    "PlayerTree",
    "RandomOrder",
    "RemoteModel",
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
    "windows",
]

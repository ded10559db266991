"""Shapley value estimation on cooperative games, without models, maskers or tensors.

This is what `shap_ext` and `captum_ext` share: players, coalitions, games, designs, one batched
evaluation, and estimates.
"""

from .estimates import Estimate
from .estimation import Settings, default_budget, estimate
from .estimators.exact import Exact
from .estimators.least_squares import LeastSquares
from .estimators.random_order import RandomOrder
from .estimators.shear import Shear
from .games import DifferentiableGame, Game

__all__ = [
    "DifferentiableGame",
    "Estimate",
    "Exact",
    "Game",
    "LeastSquares",
    "RandomOrder",
    "Settings",
    "Shear",
    "default_budget",
    "estimate",
]

"""Shapley attributions for captum with fewer evaluations: SHEAR and its relatives."""

from shapley_adapters import Estimate, ValueFunction

from .attributions import Exact, LeastSquares, RandomOrder, Semivalue, Shear, SimSemivalue

__all__ = [
    "Estimate",
    "Exact",
    "LeastSquares",
    "RandomOrder",
    "Semivalue",
    "Shear",
    "SimSemivalue",
    "ValueFunction",
]

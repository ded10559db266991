"""Shapley attributions for captum with fewer evaluations: SHEAR and its relatives."""

from shapley_adapters import Estimate

from .attributions import Exact, LeastSquares, RandomOrder, Shear

__all__ = ["Estimate", "Exact", "LeastSquares", "RandomOrder", "Shear"]

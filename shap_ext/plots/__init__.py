"""Plots of Explanations with bounds."""

from .comparison_plot import comparison
from .convergence_plot import convergence

__all__ = ["comparison", "convergence"]

"""Plots of Explanations with bounds."""

from .comparison_plot import comparison

__all__ = ["comparison"]

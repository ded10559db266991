"""shap's plots with error bars, for Explanations that have bounds.

A function with the name of a plot of shap takes its arguments, calls it, and draws the intervals on
its axes. `interactions` is a plot of our own. The Explanation needs bounds:
`explainer(X, error_bounds=True)`.

An Explanation has an interval for each attribution, but not how their errors correlate. Sums over
features, and means over rows, have the largest error that any correlation allows: the sum, or
the mean, of the errors. So their intervals are never too narrow, and often too wide.
"""

from .bar_plots import bar, waterfall
from .decision_plot import decision
from .dot_plots import beeswarm, scatter
from .image_plot import image
from .interaction_plot import interactions
from .text_plot import text

__all__ = [
    "bar",
    "beeswarm",
    "decision",
    "image",
    "interactions",
    "scatter",
    "text",
    "waterfall",
]

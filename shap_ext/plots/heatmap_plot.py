"""Heat maps with hatched cells where the sign of an attribution is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import shap
from shap.utils import OpChain

from shapley_adapters.array_types import FloatArray
from shapley_adapters.hatching import hatch_cells, hatch_style
from shapley_adapters.pipeline.result import percent

from ..shap_internals import resolved_order
from .features import lines_of_features
from .host_plots import HostPlot, check_values
from .intervals import intervals_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_REMEDY = "Choose one output, such as explanation[..., 0]; plots.bar draws one row."

_LEGEND_DISTANCE = 36  # points, below the label of the x axis


def heatmap(*arguments: Any, level: float = 0.95, **options: Any) -> Axes | None:
    """Draw shap's heat map, and hatch the cells whose interval contains 0.

    Parameters
    ----------
    *arguments, **options
        Those of `shap.plots.heatmap`: an Explanation with bounds of several rows; `instance_order`,
        `feature_order`, `max_display`, `cmap`, `show` and all others.
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.

    Returns
    -------
    Axes or None
        The axes with `show=False`, else None.

    Raises
    ------
    InvalidArgumentError
        If the Explanation has no bounds, or several outputs.

    Notes
    -----
    "Sum of 5 other features" has the summed width of the five intervals: the error of the sum is at
    most that, however the errors correlate.
    """
    plot = HostPlot.from_call("heatmap", arguments, options)
    explanation = plot.arguments["shap_values"]
    shapes = {2: "(rows, features)"}
    intervals = intervals_of(explanation, level, "heatmap", shapes, _REMEDY)
    rows = resolved_order(plot.arguments["instance_order"], explanation)
    order = _feature_order(plot, intervals.values)
    sums = intervals.sums(lines_of_features(order, plot.arguments["max_display"]))
    drawing = plot.draw(instance_order=rows, feature_order=order)
    image: Any = drawing.axes.images[-1].get_array()
    check_values(np.ma.filled(image, np.nan), sums.values[rows].T, "heatmap", "cells")
    hatch_cells(drawing.axes, sums.contain_zero[rows].T)
    _add_legend(drawing.axes, level)
    return plot.finish(drawing.axes)


def _feature_order(plot: HostPlot, values: FloatArray) -> Any:
    """Return the features from the top, by shap's rules."""
    order = plot.arguments["feature_order"]
    if isinstance(order, OpChain):
        order = order.apply(shap.Explanation(values))
    if order is None:
        sizes = plot.arguments["feature_values"]
        if isinstance(sizes, OpChain):
            sizes = sizes.apply(shap.Explanation(values))
        order = np.argsort(-np.asarray(getattr(sizes, "values", sizes)))
    return np.asarray(getattr(order, "values", order))


def _add_legend(axes: Axes, level: float) -> None:
    """Explain the hatching below the plot."""
    from matplotlib.patches import Patch
    from matplotlib.transforms import ScaledTranslation

    patch = Patch(**hatch_style(), label=f"{percent(level)} interval contains 0")
    figure: Any = axes.figure
    below = ScaledTranslation(0, -_LEGEND_DISTANCE / 72, figure.dpi_scale_trans)
    axes.legend(
        handles=[patch],
        loc="upper right",
        bbox_to_anchor=(1.0, 0.0),
        bbox_transform=axes.transAxes + below,
        frameon=False,
        fontsize=11,
    )

"""Beeswarm plots with the interval of each dot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shapley_adapters.array_types import FloatArray
from shapley_adapters.pipeline.result import percent

from ..argument_types import Explanation
from ..shap_internals import resolved_order
from .features import lines_of_features
from .host_plots import HostPlot, check_values
from .intervals import Intervals, intervals_of
from .scatter_plot import Dots, rows_of_dots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

_REMEDY = "Choose one output, such as explanation[..., 0]; plots.bar draws one row."
_OPACITY = 0.5
_WIDTH = 1.2  # points


def beeswarm(*arguments: Any, level: float = 0.95, **options: Any) -> Axes | None:
    """Draw shap's beeswarm plot with a thin band for each dot: the interval of its attribution.

    Parameters
    ----------
    *arguments, **options
        Those of `shap.plots.beeswarm`: an Explanation with bounds of several rows; `max_display`,
        `order`, `color`, `show` and all others.
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
    The band of "Sum of 5 other features" has the summed width of the five intervals: the error of
    the sum is at most that, however the errors correlate.
    """
    plot = HostPlot.from_call("beeswarm", arguments, options)
    explanation = plot.arguments["shap_values"]
    shapes = {2: "(rows, features)"}
    intervals = intervals_of(explanation, level, "beeswarm", shapes, _REMEDY)
    members = lines_of_features(
        resolved_order(plot.arguments["order"], intervals.values.copy()),
        plot.arguments["max_display"],
        group_rest=plot.arguments.get("group_remaining_features", True),
    )
    drawing = plot.draw()
    axes = drawing.axes
    for position, features in enumerate(reversed(members)):
        dots = _dots_of_line(drawing, position)
        _draw_bands(axes, dots, intervals.sums([features]), explanation, features[0])
    axes.set_xlabel(f"{axes.get_xlabel()}\nBands: {percent(level)} intervals", fontsize=13)
    return plot.finish(axes)


def _dots_of_line(drawing: Any, position: int) -> list[PathCollection]:
    """Return the collections of the dots in a line; those of other lines are at other heights."""
    from matplotlib.collections import PathCollection

    return [
        collection
        for collection in drawing.artists_of_kind(PathCollection)
        if len(collection.get_offsets())
        and round(float(np.asarray(collection.get_offsets())[0, 1])) == position
    ]


def _draw_bands(
    axes: Axes,
    collections: list[PathCollection],
    interval: Intervals,
    explanation: Explanation,
    feature: int,
) -> None:
    """Draw the interval of each dot of a line at the height of the dot."""
    dots = Dots.from_collections(collections)
    values = interval.values[:, 0]
    limits = [c.get_clim() for c in collections if c.get_array() is not None]
    shades = _shades(explanation.data, feature, limits) if limits else np.full(len(values), np.nan)
    of_dots, of_rows = rows_of_dots([dots.x, dots.shades], [values, shades])
    check_values(dots.x[of_dots], values[of_rows], "beeswarm", "dots")
    axes.hlines(
        dots.y[of_dots],
        interval.lower[of_rows, 0],
        interval.upper[of_rows, 0],
        colors=dots.colours[of_dots],
        alpha=_OPACITY,
        linewidth=_WIDTH,
        zorder=2,
    )


def _shades(data: Any, feature: int, limits: list[Any]) -> FloatArray:
    """Return the numbers that shap shows as colours of the rows: feature values within limits."""
    column = np.asarray(data.toarray() if hasattr(data, "toarray") else data)[:, feature]
    shades: FloatArray = np.clip(column.astype(np.float64), *limits[0])
    return shades

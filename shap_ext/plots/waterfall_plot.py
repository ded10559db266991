"""Waterfall plots with error bars at any level, also for the sum of the other features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import shap

from shapley_adapters.array_types import FloatArray
from shapley_adapters.pipeline.result import percent

from ..shap_internals import copied, set_bounds
from .bar_plot import BAR_COLOUR, make_room, make_room_for_labels
from .features import lines_of_features
from .host_plots import Drawing, HostPlot, check_values, pyplot
from .intervals import Intervals, intervals_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

_GAP = 5  # points between an error bar and its label, as in shap
_LABEL_DISTANCE = 20  # points, below the label E[f(X)]
_REMEDY = "Choose one row and one output, such as explanation[0] or explanation[0, :, 1]."


def waterfall(*arguments: Any, level: float = 0.95, **options: Any) -> Axes | None:
    """Draw shap's waterfall plot with an error bar at the end of each arrow.

    `shap.plots.waterfall` draws bounds, too: at 95 %, in a light colour, and none for the other
    features together.

    Parameters
    ----------
    *arguments, **options
        Those of `shap.plots.waterfall`: an Explanation with bounds of one row; `max_display` and
        `show`.
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.

    Returns
    -------
    Axes or None
        The axes with `show=False`, else None.

    Raises
    ------
    InvalidArgumentError
        If the Explanation has no bounds, several rows or several outputs.

    Notes
    -----
    An error bar belongs to the attribution of its line. It does not include the errors of the
    arrows below, which move all arrows above. The error bar of "5 other features" has the
    summed width of the five intervals: the error of the sum is at most that, however the errors
    correlate.
    """
    plot = HostPlot.from_call("waterfall", arguments, options)
    explanation = plot.arguments["shap_values"]
    intervals = intervals_of(explanation, level, "waterfall", {1: "(features)"}, _REMEDY)
    order = np.argsort(-np.abs(intervals.values))
    lines = intervals.sums(lines_of_features(order, plot.arguments["max_display"]))
    without_bounds = copied(explanation)
    set_bounds(without_bounds, None, None, None)
    drawing = plot.draw(shap_values=without_bounds)
    _draw_errors(drawing, lines, float(explanation.base_values))
    label = f"Error bars: {percent(level)} intervals"
    drawing.axes.set_xlabel(label, fontsize=12, labelpad=_LABEL_DISTANCE)
    return plot.finish(drawing.axes)


def _draw_errors(drawing: Drawing, lines: Intervals, base: float) -> None:
    """Draw the error bars at the ends of the arrows, and move the labels behind them."""
    from matplotlib.text import Text

    axes = drawing.axes
    ends = base + np.cumsum(lines.values[::-1])[::-1]
    _check_arrows(drawing, ends - lines.values, ends)
    axes.errorbar(
        ends,
        np.arange(len(ends))[::-1],
        xerr=[lines.below, lines.above],
        fmt="none",
        ecolor=BAR_COLOUR,
        capsize=3,
        zorder=4,
    )
    make_room(axes, ends - lines.below, ends + lines.above)
    labels = sorted(drawing.artists_of_kind(Text), key=lambda label: -label.get_position()[1])
    _place_labels(axes, labels, lines, ends)
    make_room_for_labels(axes, labels)
    for other in pyplot().gcf().axes:  # of the labels E[f(X)] and f(x)
        other.set_xlim(axes.get_xlim())


def _place_labels(axes: Axes, labels: list[Text], lines: Intervals, ends: FloatArray) -> None:
    """Centre labels between arrow and error bar; behind the error bar where there is no room."""
    left, right = axes.get_xlim()
    points = 72 * axes.get_window_extent().width / axes.figure.dpi
    gap = _GAP * (right - left) / points
    for label, value, below, above, end in zip(
        labels, lines.values, lines.below, lines.above, ends, strict=True
    ):
        sign = 1.0 if value >= 0 else -1.0
        inner, outer = np.nan_to_num((below, above) if value >= 0 else (above, below))
        box = axes.transData.inverted().transform_bbox(label.get_window_extent())
        if box.width + gap < abs(value) - inner:
            label.set_x(end - value + (value - sign * inner) / 2)
        else:
            label.set_x(end + sign * (outer + gap))
            label.set_horizontalalignment("left" if value >= 0 else "right")
            style = shap.plots.colors
            label.set_color(style.red_rgb if value >= 0 else style.blue_rgb)


def _check_arrows(drawing: Drawing, starts: FloatArray, ends: FloatArray) -> None:
    """Check that each arrow starts where expected, from the top, to the precision of the ends."""
    from matplotlib.patches import FancyArrow

    corners = [np.asarray(arrow.get_xy()) for arrow in drawing.artists_of_kind(FancyArrow)]
    corners.sort(key=lambda points: -float(points[:, 1].min()))
    drawn = [
        points[np.argmin(np.abs(points[:, 0] - start)), 0]
        for points, start in zip(corners, starts, strict=False)
    ]
    drawn_lines = np.concatenate([drawn, ends])  # all starts may be 0 but for rounding
    check_values(drawn_lines, np.concatenate([starts, ends]), "waterfall", "arrows")

"""Bar and waterfall plots with error bars at any level, also for the sum of other features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import shap

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError

from ..shap_internals import copied, set_bounds
from .features import lines_of_features, order_of_bars
from .host_plots import Drawing, HostPlot, check_values, pyplot
from .intervals import Intervals, intervals_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text


_BAR_COLOUR = "#333333"
"""The colour of error bars."""

_MARGIN = 0.03
"""The smallest distance from error bars to the ends of the axis, as a share of its length."""

_LABEL_MARGIN = 0.005

_ROUNDS = 3
"""Labels keep their size in points while the axis becomes longer, so that room is made again."""


_SHAPES = {1: "(features)", 2: "(rows, features)"}

_REMEDY = "Choose one output, such as explanation[..., 0]."
_ONE_ROW = "Choose one row and one output, such as explanation[0] or explanation[0, :, 1]."
_LABEL_GAP = 5  # points between an error bar and the label of an arrow, as in shap
_LABEL_DISTANCE = 20  # points, below the label E[f(X)] of a waterfall


def _make_room(axes: Axes, lower: FloatArray, upper: FloatArray) -> None:
    """Lengthen the x axis so that it holds some intervals."""
    left, right = axes.get_xlim()
    first, last = np.nanmin(lower, initial=np.inf), np.nanmax(upper, initial=-np.inf)
    margin = _MARGIN * (max(right, last) - min(left, first))
    axes.set_xlim(
        min(left, first - margin) if first < left + margin else left,
        max(right, last + margin) if last > right - margin else right,
    )


def _make_room_for_labels(axes: Axes, labels: Sequence[Text]) -> None:
    """Lengthen the x axis so that it holds some labels beside bars."""
    for _ in range(_ROUNDS):
        to_data = axes.transData.inverted()
        boxes = [to_data.transform_bbox(label.get_window_extent()) for label in labels]
        if not boxes:
            return
        left, right = axes.get_xlim()
        margin = _LABEL_MARGIN * (right - left)
        first, last = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
        axes.set_xlim(
            first - margin if first < left else left, last + margin if last > right else right
        )


def bar(
    *arguments: Any, level: float = 0.95, independent_rows: bool = False, **options: Any
) -> Axes | None:
    """Draw shap's bar plot with an error bar on each bar.

    Parameters
    ----------
    *arguments, **options
        Those of `shap.plots.bar`: an Explanation with bounds of one row or of several rows, of
        which the mean absolute attributions are drawn, or a dict of them; `max_display`, `order`,
        `clustering`, `ax`, `show` and all others.
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.
    independent_rows : bool
        Whether each row has random draws of its own, as with the estimators' option of this name.
        The errors of the rows then cancel in the mean. By default they do not.

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
    The error bars say how far the attributions are known that the rows have. They do not say how
    other rows would differ. Where several features share a bar, such as in "Sum of 5 other
    features", their errors are added, because an Explanation does not store correlations. The same
    holds for the mean over rows, unless `independent_rows`. So these bars are never too short,
    and often too long.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: np.exp(x @ np.linspace(-1, 1, 12))
    >>> explainer = shap_ext.OddGPExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explanation = explainer(np.ones((3, 12)), max_evals=60, error_bounds=True)
    >>> axes = shap_ext.plots.bar(explanation, max_display=5, level=0.9, show=False)
    >>> print(axes.get_xlabel())
    mean(|SHAP value|)
    Error bars: 90 % intervals
    """
    plot = HostPlot.from_call("bar", arguments, options)
    cohorts = [
        _sizes(explanation, level, independent_rows)
        for explanation in _explanations(plot.arguments["shap_values"])
    ]
    members = _members(plot, cohorts)
    drawing = plot.draw()
    _draw_errors(drawing, [cohort.sums(members) for cohort in cohorts])
    labels = {cohort.label("Error bars", level) for cohort in cohorts}
    label = f"{drawing.axes.get_xlabel()}\n{min(labels)}"  # in the alphabet, "Exact" comes last
    drawing.axes.set_xlabel(label, fontsize=13)
    return plot.finish(drawing.axes)


def _explanations(argument: Any) -> list[Any]:
    """Return the Explanations of the cohorts, in shap's order."""
    if isinstance(argument, shap.Cohorts):
        return list(argument.cohorts.values())
    return list(argument.values()) if isinstance(argument, dict) else [argument]


def _sizes(explanation: shap.Explanation, level: float, independent_rows: bool) -> Intervals:
    """Return the intervals of one row, or of the mean absolute attributions over rows."""
    intervals = intervals_of(explanation, level, "bar", _SHAPES, _REMEDY)
    if intervals.values.ndim == 1:
        return intervals
    return intervals.mean_sizes(independent_rows=independent_rows)


def _members(plot: HostPlot, cohorts: list[Intervals]) -> list[list[int]]:
    """Return the features of each bar."""
    if len({len(cohort.values) for cohort in cohorts}) != 1:
        raise InvalidArgumentError(
            "plots.bar needs the same features in all Explanations; got "
            f"{', '.join(str(len(cohort.values)) for cohort in cohorts)} features."
        )
    n_lines = plot.arguments["max_display"]
    order = order_of_bars(
        np.array([cohort.values for cohort in cohorts]),
        plot.arguments["order"],
        n_lines,
        _clustering(plot),
        plot.arguments["clustering_cutoff"],
    )
    return lines_of_features(order, n_lines)


def _clustering(plot: HostPlot) -> Any:
    """Return the clustering that shap uses: that of the call, or the one that all rows share."""
    tree = plot.arguments["clustering"]
    if tree is None:
        first = _explanations(plot.arguments["shap_values"])[0]
        averaged = first.abs.mean(0) if np.ndim(first.values) > 1 else first
        tree = getattr(averaged, "clustering", None)
    # shap refuses what is no clustering of all features, such as that of a column.
    return tree if np.ndim(tree) == 2 else None


def _draw_errors(drawing: Drawing, lines: list[Intervals]) -> None:
    """Draw the error bars of all cohorts, and move the labels of the bars behind them."""
    from matplotlib.patches import Rectangle
    from matplotlib.text import Text

    axes = drawing.axes
    bars = drawing.artists_of_kind(Rectangle)
    values, below, above = (
        np.concatenate([getattr(line, name) for line in lines])
        for name in ("values", "below", "above")
    )
    check_values(np.array([patch.get_width() for patch in bars]), values, "bar", "bars")
    heights = [patch.get_y() + patch.get_height() / 2 for patch in bars]
    axes.errorbar(
        values, heights, xerr=[below, above], fmt="none", ecolor=_BAR_COLOUR, capsize=3, zorder=4
    )
    labels = drawing.artists_of_kind(Text)[: len(bars)]  # the next one belongs to the clustering
    # Labels at the ends of bars move behind the error bars; centred ones stay.
    for label, left, right in zip(labels, below, above, strict=True):
        side = label.get_horizontalalignment()
        shift = {"left": np.nan_to_num(right), "right": -np.nan_to_num(left)}.get(side, 0.0)
        label.set_x(label.get_position()[0] + shift)
    _make_room(axes, values - below, values + above)
    _make_room_for_labels(axes, labels)


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
    intervals = intervals_of(explanation, level, "waterfall", {1: "(features)"}, _ONE_ROW)
    order = np.argsort(-np.abs(intervals.values))
    lines = intervals.sums(lines_of_features(order, plot.arguments["max_display"]))
    without_bounds = copied(explanation)
    set_bounds(without_bounds, None, None, None)
    drawing = plot.draw(shap_values=without_bounds)
    _draw_arrow_errors(drawing, lines, float(explanation.base_values))
    label = intervals.label("Error bars", level)
    drawing.axes.set_xlabel(label, fontsize=12, labelpad=_LABEL_DISTANCE)
    return plot.finish(drawing.axes)


def _draw_arrow_errors(drawing: Drawing, lines: Intervals, base: float) -> None:
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
        ecolor=_BAR_COLOUR,
        capsize=3,
        zorder=4,
    )
    _make_room(axes, ends - lines.below, ends + lines.above)
    labels = sorted(drawing.artists_of_kind(Text), key=lambda label: -label.get_position()[1])
    _place_labels(axes, labels, lines, ends)
    _make_room_for_labels(axes, labels)
    for other in pyplot().gcf().axes:  # of the labels E[f(X)] and f(x)
        other.set_xlim(axes.get_xlim())


def _place_labels(axes: Axes, labels: list[Text], lines: Intervals, ends: FloatArray) -> None:
    """Centre labels between arrow and error bar; behind the error bar where there is no room."""
    left, right = axes.get_xlim()
    points = 72 * axes.get_window_extent().width / axes.figure.dpi
    gap = _LABEL_GAP * (right - left) / points
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

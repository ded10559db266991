"""Heat maps of the interactions of pairs, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import shap
from shap.utils import OpChain

from shapley_adapters.arguments import checked_count
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.hatching import hatch_cells, hatch_style
from shapley_adapters.pipeline.result import percent

from ..argument_types import Explanation
from ..shap_internals import resolved_order
from .features import lines_of_features, names_of_features, without_formulas
from .host_plots import HostPlot, check_values, pyplot
from .intervals import Intervals, intervals_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SHAPES = {2: "(features, features)", 3: "(rows, features, features)"}
_REMEDY = (
    "explainer(X, interactions=True, error_bounds=True) returns interactions; choose one output, "
    "such as explanation[..., 0]."
)
_INCHES_PER_CELL = 0.62
_STRONG = 0.6  # share of the largest value from which a cell is so dark that its number is white
_FIRST_DIGITS = (-2, 5)
"""The decimals of numbers without a power of ten: of the largest values from .001 to 99,999."""

_PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.8}

_ONE_OUTPUT = "Choose one output, such as explanation[..., 0]; plots.bar draws one row."

_LEGEND_DISTANCE = 36  # points, below the label of the x axis


def interactions(
    explanation: Explanation,
    max_display: int | None = 10,
    *,
    level: float = 0.95,
    independent_rows: bool = False,
    cmap: Any = None,
    ax: Axes | None = None,
    show: bool = True,
) -> Axes | None:
    """Draw a heat map of interactions, and hatch the pairs whose interval contains 0.

    A cell off the diagonal has the interaction of a pair, which is twice the value in the
    Explanation: both entries of a pair have half of it. The diagonal has the main effects.

    Parameters
    ----------
    explanation : Explanation
        Interactions with bounds, from `explainer(X, interactions=True, error_bounds=True)`. Of one
        row, the interactions are drawn; of several rows, their mean absolute values.
    max_display : int or None
        The largest number of features, those with the largest sum of absolute values first; None
        for all.
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.
    independent_rows : bool
        Whether each row has random draws of its own, as with the estimators' option of this name.
        The errors of the rows then cancel in the mean. By default they do not.
    cmap : colour map, optional
        By default shap's from blue over white to red, and from white to red for mean absolute
        values.
    ax : Axes, optional
        The axes; by default the current ones.
    show : bool
        Whether to show the figure.

    Returns
    -------
    Axes or None
        The axes with `show=False`, else None.

    Raises
    ------
    InvalidArgumentError
        If the Explanation has no interactions, no bounds or several outputs.
    """
    if max_display is not None:
        checked_count("max_display", max_display)
    intervals = intervals_of(explanation, level, "interactions", _SHAPES, _REMEDY)
    _check_square(intervals.values)
    names = names_of_features(explanation, intervals.values.shape[-1])
    axes = draw_pairs(
        intervals, names, max_display, independent_rows=independent_rows, cmap=cmap, ax=ax
    )
    axes.set_xlabel(f"Hatched: the {percent(level)} interval contains 0", fontsize=11)
    if not show:
        return axes
    pyplot().show()
    return None


def draw_pairs(
    intervals: Intervals,
    names: Sequence[str],
    max_display: int | None,
    *,
    independent_rows: bool = False,
    cmap: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the heat map of some intervals, (M, M) or (R, M, M); unknown ones are not hatched."""
    pairs = _whole_pairs(intervals)
    is_mean = pairs.values.ndim == 3
    if is_mean:
        pairs = pairs.mean_sizes(independent_rows=independent_rows)
    features = np.argsort(-np.abs(pairs.values).sum(axis=0), kind="stable")[:max_display]
    cells = pairs.mapped(lambda array: array[np.ix_(features, features)])
    axes = _axes(ax, len(features))
    _draw_cells(axes, cells, cmap, is_mean)
    _add_names(axes, [without_formulas(names[feature]) for feature in features])
    return axes


def _check_square(values: FloatArray) -> None:
    if values.shape[-1] != values.shape[-2]:
        raise InvalidArgumentError(
            f"plots.interactions needs a square of features for each row; got the shape "
            f"{values.shape}. {_REMEDY}"
        )


def _whole_pairs(intervals: Intervals) -> Intervals:
    """Return whole interactions in place of the halves that both entries of a pair have."""
    n_features = intervals.values.shape[-1]
    shares = 2.0 - np.eye(n_features)
    return intervals.mapped(lambda array: array * shares)


def _axes(ax: Axes | None, n_features: int) -> Axes:
    """Return the axes; a figure that the call did not name gets the size of the matrix."""
    plt = pyplot()
    if ax is not None:
        return ax
    axes: Axes = plt.gca()
    side = n_features * _INCHES_PER_CELL
    plt.gcf().set_size_inches(side + 3.2, side + 2.0)
    return axes


def _draw_cells(axes: Axes, cells: Intervals, cmap: Any, is_mean: bool) -> None:
    """Draw the matrix with numbers, hatching and a colour bar."""
    from shap.plots import colors

    limit = float(np.nanmax(np.abs(cells.values), initial=0.0)) or 1.0
    default = "Reds" if is_mean else colors.red_white_blue
    colour_map = default if cmap is None else cmap
    image = axes.imshow(cells.values, cmap=colour_map, vmin=0.0 if is_mean else -limit, vmax=limit)
    for (row, column), value in np.ndenumerate(cells.values):
        is_strong = abs(value) > _STRONG * limit
        axes.text(
            column,
            row,
            _number(value, limit, is_mean),
            ha="center",
            va="center",
            fontsize=9,
            color="white" if is_strong else "#333333",
            bbox=_PLATE if cells.contain_zero[row, column] else None,
        )
    hatch_cells(axes, cells.contain_zero)
    label = "mean |interaction|" if is_mean else "interaction"
    axes.figure.colorbar(image, ax=axes, label=label, fraction=0.046, pad=0.03)


def _number(value: float, limit: float, is_mean: bool) -> str:
    """Return a number with its sign, except for means of absolute values; never minus zero.

    It has three significant digits of the largest value. Very large and very small ones have a
    power of ten, so that they fit into the cell.
    """
    digits = 2 - int(np.floor(np.log10(limit)))
    rounded = round(float(value), digits) + 0.0
    if rounded == 0:
        return "0"
    style = f".{max(0, digits)}f" if _FIRST_DIGITS[0] <= digits <= _FIRST_DIGITS[1] else ".1e"
    number = f"{rounded:{style}}" if is_mean else f"{rounded:+{style}}"
    return number.replace("-", "\N{MINUS SIGN}")


def _add_names(axes: Axes, labels: list[str]) -> None:
    """Write the names of the features at both sides."""
    ticks = np.arange(len(labels))
    axes.set_xticks(ticks, labels, rotation=45, ha="right", rotation_mode="anchor", fontsize=11)
    axes.set_yticks(ticks, labels, fontsize=11)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


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
    intervals = intervals_of(explanation, level, "heatmap", shapes, _ONE_OUTPUT)
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

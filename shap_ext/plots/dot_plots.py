"""Scatter and beeswarm plots with the interval of each dot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shapley_adapters.array_types import BoolArray, FloatArray, IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from ..argument_types import Explanation
from ..shap_internals import encoded_features, resolved_order
from .features import lines_of_features
from .host_plots import Drawing, HostPlot, check_values, pyplot
from .intervals import Intervals, intervals_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection


_SHAPES = {1: "(rows) of one feature", 2: "(rows, features)"}

_ONE_OUTPUT = "Choose one output, such as explanation[..., 0]; plots.bar draws one row."

_REMEDY = "Choose features and one output, such as explanation[:, 'age', 0]."

_WIDTH = 1.2  # points


@dataclass(frozen=True)
class _Dots:
    """Dots of a plot.

    Attributes
    ----------
    x, y : array, (D,)
        Their positions.
    shades : array, (D,)
        The numbers that shap shows as colours; NaN for dots without.
    colours : array, (D, 4)
        Their colours.
    """

    x: FloatArray
    y: FloatArray
    shades: FloatArray
    colours: Any

    @classmethod
    def from_collections(cls, collections: Sequence[Any]) -> _Dots:
        """Return the dots of some collections of matplotlib."""
        parts = []
        for collection in collections:
            offsets: Any = np.ma.asarray(collection.get_offsets(), dtype=float)
            positions: FloatArray = np.ma.filled(offsets, np.nan).reshape(-1, 2)
            collection.update_scalarmappable()
            colours, shades = collection.get_facecolor(), collection.get_array()
            if shades is None:
                shades = np.full(len(positions), np.nan)
            shades = np.ma.filled(np.ma.asarray(shades, dtype=float), np.nan)
            shape = (len(positions), 4)
            colours = np.broadcast_to(colours, shape) if len(colours) else np.empty((0, 4))
            parts.append((*positions.T, shades, colours))
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def where(self, are_wanted: BoolArray) -> _Dots:
        """Return some of the dots."""
        return _Dots(
            self.x[are_wanted],
            self.y[are_wanted],
            self.shades[are_wanted],
            self.colours[are_wanted],
        )


def _rows_of_dots(
    dots: Sequence[FloatArray], rows: Sequence[FloatArray]
) -> tuple[IntArray, IntArray]:
    """Pair the dots with the rows: shap draws the rows in a random order.

    Parameters
    ----------
    dots, rows : sequences of arrays
        Numbers of each dot and of each row, first those that decide, such as the attributions,
        then those for ties, such as the feature values. Ties in all of them are dots that look the
        same.

    Returns
    -------
    tuple of arrays
        Indices of dots, and the indices of their rows.
    """
    return np.lexsort(tuple(reversed(dots))), np.lexsort(tuple(reversed(rows)))


def scatter(*arguments: Any, level: float = 0.95, **options: Any) -> Axes | None:
    """Draw shap's scatter plot with a vertical error bar for each dot.

    Parameters
    ----------
    *arguments, **options
        Those of `shap.plots.scatter`: a column of an Explanation with bounds, such as
        `explanation[:, "age"]`, or several columns; `color`, `x_jitter`, `ax`, `show` and all
        others.
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.

    Returns
    -------
    Axes or None
        The axes with `show=False`, those of the last column if there are several; else None.

    Raises
    ------
    InvalidArgumentError
        If the Explanation has no bounds, or several outputs.
    """
    plot = HostPlot.from_call("scatter", arguments, options)
    explanation = plot.arguments["shap_values"]
    is_one = isinstance(getattr(explanation, "feature_names", None), str)
    shapes = {1: _SHAPES[1]} if is_one else _SHAPES
    intervals = intervals_of(explanation, level, "scatter", shapes, _REMEDY)
    _check_features(explanation)
    _check_features(plot.arguments["color"])
    if intervals.values.ndim == 1 and not is_one:
        raise InvalidArgumentError(
            "plots.scatter needs columns of features, but got one row. Choose a feature: "
            "explanation[:, 'age']; plots.bar draws a row."
        )
    if is_one:
        drawing = plot.draw(on_current_axes=False)
        _draw_errors(drawing, explanation, intervals)
        _add_label(drawing.axes, intervals.label("bars", level))
        return plot.finish(drawing.axes)
    plot.function(**{**plot.arguments, "show": False})
    axes_of_columns: list[Axes] = pyplot().gcf().axes[: intervals.values.shape[1]]
    for feature, axes in enumerate(axes_of_columns):
        column = Intervals(
            *(a[:, feature] for a in (intervals.values, intervals.below, intervals.above))
        )
        _draw_errors(Drawing(axes, axes.get_children()), explanation[:, feature], column)
    _add_label(axes_of_columns[0], intervals.label("bars", level))
    return plot.finish(axes_of_columns[-1])


def _check_features(explanation: Any) -> None:
    """Refuse feature values that shap can place neither on an axis nor on a scale of colours."""
    data = getattr(explanation, "data", None)
    if not isinstance(data, np.ndarray) or data.dtype.kind not in "OMm":
        return
    columns = data.reshape(len(data), -1).T
    for name, column in zip(np.atleast_1d(explanation.feature_names), columns, strict=True):
        try:
            encoded_features(column)
        except TypeError as error:
            kinds = ", ".join(sorted({type(cell).__name__ for cell in column}, reverse=True))
            raise InvalidArgumentTypeError(
                f"plots.scatter draws numbers or texts; the data of feature {str(name)!r} hold "
                f"{kinds}. Number them: column = explanation[:, {str(name)!r}]; column.data = "
                "pd.factorize(column.data, sort=True)[0], and pass column."
            ) from error


def _draw_errors(drawing: Drawing, explanation: Explanation, intervals: Intervals) -> None:
    """Draw the interval of each dot at the place of the dot, which shap may have moved sideways."""
    from matplotlib.collections import PathCollection

    dots = _Dots.from_collections(drawing.artists_of_kind(PathCollection))
    dots = dots.where(~np.isnan(dots.x))
    # Rows without a feature value are drawn last, at the left end.
    features = encoded_features(np.asarray(explanation.data))
    n_known = int((~np.isnan(features)).sum())
    is_known = np.arange(len(dots.x)) < n_known
    for are_dots, are_rows in ((is_known, ~np.isnan(features)), (~is_known, np.isnan(features))):
        of_dots = dots.where(are_dots)
        values = intervals.values[are_rows]
        dot_order, row_order = _rows_of_dots(
            [of_dots.y, of_dots.x], [values, np.nan_to_num(features[are_rows])]
        )
        rows = np.flatnonzero(are_rows)[row_order]
        check_values(of_dots.y[dot_order], intervals.values[rows], "scatter", "dots")
        drawing.axes.vlines(
            of_dots.x[dot_order],
            intervals.lower[rows],
            intervals.upper[rows],
            colors=of_dots.colours[dot_order],
            alpha=0.6,
            linewidth=_WIDTH,
            zorder=0.9,
        )


def _add_label(axes: Axes, label: str) -> None:
    """Say on the y axis what the error bars are."""
    axes.set_ylabel(f"{axes.get_ylabel()}\n({label})")


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
    from matplotlib.collections import PathCollection

    explanation = plot.arguments["shap_values"]
    shapes = {2: "(rows, features)"}
    intervals = intervals_of(explanation, level, "beeswarm", shapes, _ONE_OUTPUT)
    members = lines_of_features(
        resolved_order(plot.arguments["order"], intervals.values.copy()),
        plot.arguments["max_display"],
        group_rest=plot.arguments.get("group_remaining_features", True),
    )
    drawing = plot.draw()
    axes = drawing.axes
    for position, features in enumerate(reversed(members)):
        in_line = [
            collection
            for collection in drawing.artists_of_kind(PathCollection)
            if len(np.asarray(collection.get_offsets()))
            and round(float(np.asarray(collection.get_offsets())[0, 1])) == position
        ]
        _draw_bands(axes, in_line, intervals.sums([features]), explanation, features[0])
    axes.set_xlabel(f"{axes.get_xlabel()}\n{intervals.label('Bands', level)}", fontsize=13)
    return plot.finish(axes)


def _draw_bands(
    axes: Axes,
    collections: list[PathCollection],
    interval: Intervals,
    explanation: Explanation,
    feature: int,
) -> None:
    """Draw the interval of each dot of a line at the height of the dot."""
    dots = _Dots.from_collections(collections)
    values = interval.values[:, 0]
    limits = [c.get_clim() for c in collections if c.get_array() is not None]
    shades = np.full(len(values), np.nan)
    if limits:  # the colours show feature values within limits
        data = explanation.data
        table = np.asarray(data.toarray() if hasattr(data, "toarray") else data)
        shades = np.clip(table[:, feature].astype(np.float64), *limits[0])
    of_dots, of_rows = _rows_of_dots([dots.x, dots.shades], [values, shades])
    check_values(dots.x[of_dots], values[of_rows], "beeswarm", "dots")
    axes.hlines(
        dots.y[of_dots],
        interval.lower[of_rows, 0],
        interval.upper[of_rows, 0],
        colors=dots.colours[of_dots],
        alpha=0.5,
        linewidth=_WIDTH,
        zorder=2,
    )

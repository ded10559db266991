"""Decision plots with a band around each path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special
import shap

from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.errors import InvalidArgumentError

from ..argument_types import Explanation
from .host_plots import Drawing, HostPlot, check_values
from .intervals import Intervals, intervals_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHAPES = {1: "(features)", 2: "(rows, features)"}
_REMEDY = "Choose one output, such as explanation[..., 0]."
_OPACITY = 0.15
_MARGIN = 0.02  # of the x axis, as in shap
_N_SHOWN = 20  # shap's number of features without feature_display_range


def decision(
    explanation: Explanation,
    *arguments: Any,
    level: float = 0.95,
    efficient: bool = False,
    **options: Any,
) -> Axes | None:
    """Draw shap's decision plot with a band around the path of each row.

    Parameters
    ----------
    explanation : Explanation
        With bounds, of one row or several. It takes the place of `base_value` and `shap_values` of
        `shap.plots.decision`.
    *arguments, **options
        The other arguments of `shap.plots.decision`, from `features` on; by default the
        features are those of the Explanation.
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.
    efficient : bool
        Whether attributions and base value sum to the model's output exactly. Then the end of a
        path has no error, and the band closes there. It holds for our estimators unless you
        passed `efficient=False`, except methods on graphs and aggregates, and as long as no
        feature was cut out of the Explanation. If it does not hold, the bands are too narrow.

    Returns
    -------
    Axes or None
        The axes with `show=False`, else None.

    Raises
    ------
    InvalidArgumentError
        If the Explanation has no bounds, several outputs, or rows with different base values.

    Notes
    -----
    A path adds up attributions from the bottom. The error of a sum depends on the correlations of
    the errors, which an Explanation does not store. The band has the largest width that any
    correlation allows: the sum of the widths of the features below. With `efficient=True`, it is
    also at most the sum of the widths above, because both parts together have no error. So the
    bands are never too narrow, and often too wide.
    """
    intervals = intervals_of(explanation, level, "decision", _SHAPES, _REMEDY)
    bases = np.unique(np.asarray(explanation.base_values, dtype=np.float64))
    if len(bases) != 1:
        raise InvalidArgumentError(
            f"plots.decision needs one base value for all rows; got {len(bases)} different ones, "
            f"from {bases.min():.6g} to {bases.max():.6g}. Draw rows with the same background, or "
            "one row: explanation[0]."
        )
    base = float(bases[0])
    values = intervals.values if intervals.values.ndim == 2 else intervals.values[None]
    plot = HostPlot.from_call("decision", (base, values, *arguments), options)
    widths = [np.atleast_2d(array) for array in (intervals.below, intervals.above)]
    paths = _Paths.from_plot(plot, Intervals(values, *widths), base, efficient)
    defaults = _defaults(plot, explanation)
    drawing = plot.draw(feature_order=paths.features, xlim=paths.limits(plot), **defaults)
    _draw_bands(drawing, paths)
    axes = drawing.axes
    axes.set_xlabel(f"{axes.get_xlabel()}\n{intervals.label('Bands', level)}", fontsize=13)
    return plot.finish(axes)


@dataclass(frozen=True)
class _Paths:
    """The paths of all rows, from the first to the last feature that is shown.

    Attributes
    ----------
    base : float
        The base value.
    centres, lower, upper : array, (R, features shown + 1)
        The paths and the ends of their bands, on the scale of the x axis.
    features : array of int
        All features from the bottom.
    """

    base: float
    centres: FloatArray
    lower: FloatArray
    upper: FloatArray
    features: IntArray

    @classmethod
    def from_plot(
        cls, plot: HostPlot, intervals: Intervals, base: float, efficient: bool
    ) -> _Paths:
        """Return the paths as shap draws them."""
        values, n_features = intervals.values, intervals.values.shape[1]
        new_base = plot.arguments["new_base_value"]
        if new_base is not None:
            values = values + (base - new_base) / n_features
            base = float(new_base)
        features = _feature_order(plot.arguments["feature_order"], values)
        shown = _shown(plot.arguments["feature_display_range"], n_features)
        centres = base + _running_sums(values[:, features])
        below, above = (
            _running_widths(widths[:, features], efficient)
            for widths in (intervals.below, intervals.above)
        )
        link = plot.arguments["link"]
        return cls(
            base=float(_on_axis(np.array(base), link)),
            centres=_on_axis(centres[:, shown], link),
            lower=_on_axis((centres - below)[:, shown], link),
            upper=_on_axis((centres + above)[:, shown], link),
            features=features,
        )

    def limits(self, plot: HostPlot) -> tuple[float, float] | None:
        """Return the x limits: those of the call, or shap's with the bands included."""
        if plot.arguments["xlim"] is not None or str(plot.arguments["link"]) == "logit":
            return plot.arguments["xlim"]
        ends = np.concatenate([self.centres, self.lower, self.upper])
        half = float(np.nanmax(np.abs(ends - self.base))) * (1 + 2 * _MARGIN)
        return self.base - half, self.base + half


def _defaults(plot: HostPlot, explanation: Explanation) -> dict[str, Any]:
    """Return features and their names, for arguments that the call leaves out."""
    defaults: dict[str, Any] = {}
    if plot.arguments["feature_names"] is None and explanation.feature_names is not None:
        defaults["feature_names"] = list(explanation.feature_names)
    if plot.arguments["features"] is None and explanation.data is not None:
        shown = explanation.data if explanation.display_data is None else explanation.display_data
        defaults["features"] = np.atleast_2d(np.asarray(shown))
    return defaults


def _feature_order(order: Any, values: FloatArray) -> IntArray:
    """Return the features from the bottom, by shap's rules."""
    if isinstance(order, (list, np.ndarray)):
        return np.asarray(order)
    if order is None or order.lower() == "none":
        return np.arange(values.shape[1])
    if order == "hclust":
        return np.array(shap.utils.hclust_ordering(values.T))
    if order != "importance":
        raise InvalidArgumentError(
            f"feature_order must be 'importance', 'hclust', 'none' or indices; got {order!r}."
        )
    return np.argsort(np.abs(values).sum(axis=0))


def _shown(display_range: slice | range | None, n_features: int) -> slice:
    """Return the points of the path for shap's `feature_display_range`."""
    if display_range is None:
        display_range = slice(-1, -_N_SHOWN - 1, -1)
    if isinstance(display_range, range):
        start, stop, step = display_range.start, display_range.stop, display_range.step
        display_range = slice(start, None if stop < 0 else stop, step)
    start, stop, step = display_range.indices(n_features)
    if step < 0:
        start, stop = stop + 1, start + 1
    return slice(start, stop + 1)


def _running_sums(values: FloatArray) -> FloatArray:
    """Return sums of the first 0, 1, … columns."""
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


def _running_widths(widths: FloatArray, efficient: bool) -> FloatArray:
    """Return the largest errors of running sums that any correlation allows."""
    of_first = _running_sums(widths)
    if not efficient:
        return of_first
    return np.minimum(of_first, of_first[:, -1:] - of_first)


def _on_axis(values: FloatArray, link: object) -> FloatArray:
    """Return values on the x axis: as they are, or as probabilities."""
    is_logit = str(link) == "logit"
    return scipy.special.expit(values) if is_logit else values


def _draw_bands(drawing: Drawing, paths: _Paths) -> None:
    """Fill the band around each path in the colour of the path."""
    from matplotlib.lines import Line2D

    lines = drawing.artists_of_kind(Line2D)[-len(paths.centres) :]
    drawn = np.array([line.get_xdata() for line in lines])
    check_values(drawn, paths.centres, "decision", "paths")
    for line, lower, upper in zip(lines, paths.lower, paths.upper, strict=True):
        drawing.axes.fill_betweenx(
            line.get_ydata(),
            lower,
            upper,
            color=line.get_color(),
            alpha=_OPACITY,
            linewidth=0,
            zorder=1,
        )

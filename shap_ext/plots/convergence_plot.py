"""The plot of attributions against the evaluations of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shapley_adapters.arguments import checked_count
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError, required_packages

from ..argument_types import Explanation
from ..results.traces import RowTrace, trace_of
from .features import names_of_features, without_formulas

if TYPE_CHECKING:
    import shap
    from matplotlib.axes import Axes


def convergence(
    explanation: Explanation,
    *,
    exact: npt.ArrayLike | Explanation | None = None,
    max_display: int = 6,
    ax: Axes | None = None,
    show: bool = True,
) -> Axes | None:
    """Draw attributions and their 95 % intervals against the evaluations of one run.

    Each point is the estimate from the first evaluations of the run, so that the plot costs no
    further evaluations. Where lines have become level and bands narrow, more evaluations change
    little.

    Parameters
    ----------
    explanation : shap.Explanation
        One row and one output of `explainer(X, trace=True)`, such as `explanation[0]`.
    exact : array, (M,), or shap.Explanation, optional
        Exact values, drawn as dashed lines.
    max_display : int
        The largest number of features, those with the largest attributions.
    ax : Axes, optional
        The axes; by default those of a new figure.
    show : bool
        Whether to show the figure.

    Returns
    -------
    Axes or None
        The axes with `show=False`, else None.

    Raises
    ------
    InvalidArgumentError
        If the Explanation has no trace, several rows or several outputs, or was enumerated.

    Notes
    -----
    The points of a line share evaluations, so that they are closer to each other than separate runs
    would be. `Shear` plans its draws for the whole budget; its first points need a large part of
    it.
    """
    trace = _checked_trace(explanation)
    checked_count("max_display", max_display)
    truth = None if exact is None else _checked_exact(exact, len(trace.values))
    with required_packages("shap_ext.plots needs matplotlib", extra="plots"):
        import matplotlib.pyplot as plt

    axes: Axes = plt.subplots(figsize=(8, 5))[1] if ax is None else ax
    order = np.argsort(-np.abs(trace.values[:, -1]), kind="stable")[:max_display]
    names = names_of_features(explanation, len(trace.values))
    for index, feature in enumerate(order):
        colour = f"C{index % 10}"
        level = None if truth is None else float(truth[feature])
        _draw_feature(axes, trace, int(feature), names[feature], colour, level)
    _add_labels(axes, has_exact=truth is not None)
    if not show:
        return axes
    plt.show()
    return None


def _checked_trace(explanation: shap.Explanation) -> RowTrace:
    shape = np.shape(explanation.values)
    if len(shape) != 1 or np.asarray(explanation.values).dtype == object:
        raise InvalidArgumentError(
            f"plots.convergence needs one row and one output; got values of the shape {shape}. "
            "Choose them, such as explanation[0] or explanation[0, :, 1]."
        )
    trace = trace_of(explanation)
    if trace is None:
        raise InvalidArgumentError(
            "explanation has no trace. Call the explainer with trace=True, and pass its result or "
            "a part of it: scaling, sums and means remove the trace."
        )
    if len(trace.evaluations) < 2:
        raise InvalidArgumentError(
            f"the trace has one point, at {int(trace.evaluations[-1])} evaluations: all coalitions "
            "were evaluated, or the method needs the whole budget for its first estimate. Choose "
            "another max_evals."
        )
    return trace


def _checked_exact(exact: Any, n_features: int) -> FloatArray:
    values: FloatArray = np.asarray(getattr(exact, "values", exact), dtype=np.float64)
    if values.shape != (n_features,):
        raise InvalidArgumentError(
            f"exact must hold one number for each of the {n_features} features; got the shape "
            f"{values.shape}."
        )
    if not np.isfinite(values).all():
        raise InvalidArgumentError(f"exact must hold finite numbers; got {values}.")
    return values


def _draw_feature(
    axes: Axes, trace: RowTrace, feature: int, name: str, colour: str, exact: float | None
) -> None:
    """Draw the line of a feature, its band, and its exact value."""
    label = without_formulas(name)
    x, values = trace.evaluations, trace.values[feature]
    axes.plot(x, values, color=colour, marker="o", markersize=3, label=label)
    lower, upper = trace.lower[feature], trace.upper[feature]
    axes.fill_between(x, lower, upper, color=colour, alpha=0.18, linewidth=0)
    if exact is not None:
        axes.axhline(exact, color=colour, linestyle="--", linewidth=1)


def _add_labels(axes: Axes, *, has_exact: bool) -> None:
    """Add the axes' names, the logarithmic axis, limits for the lines, and the legend."""
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    exact = "; dashed: exact" if has_exact else ""
    axes.set_xlabel(f"evaluations of the row\nBands: 95 % intervals{exact}")
    axes.set_ylabel("SHAP value")
    lines = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines])
    room = 0.25 * (float(np.ptp(lines)) or 1.0)  # the first bands may be very wide
    axes.set_ylim(lines.min() - room, lines.max() + room)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)

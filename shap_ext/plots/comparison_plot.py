"""The plot that compares two Explanations of the same features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shapley_adapters.arguments import checked_count
from shapley_adapters.array_types import BoolArray, FloatArray, IntArray
from shapley_adapters.errors import InvalidArgumentError, required_packages
from shapley_adapters.errors_of_means import errors_of_sums

from ..argument_types import Explanation
from ..results.bounded_explanation import have_independent_draws, removed_bounds
from .features import names_of_features, without_formulas
from .intervals import Intervals

if TYPE_CHECKING:
    import shap
    from matplotlib.axes import Axes

_COLOURS = ("#ff0051", "#008bfb")  # those of shap
_DISTANCE = 0.16
"""Of the dots of a feature from its line, where lines are 1 apart."""


def comparison(
    first: Explanation,
    second: Explanation,
    *,
    names: Sequence[str] = ("first", "second"),
    max_display: int = 15,
    ax: Axes | None = None,
    show: bool = True,
) -> Axes | None:
    """Draw the attributions of two Explanations side by side, with their intervals.

    Of one row, the attributions are drawn; of several rows, the mean sizes of the attributions of
    each feature. A star marks features whose difference is significant at 5 %. Errors are compared
    as in `first - second`: as independent ones where the seeds differ, and else without any
    assumption, so that intervals must not overlap. The axis says which rule applies. Each feature
    is tested by itself: of twenty features without a difference, one has a star on average.

    Parameters
    ----------
    first, second : shap.Explanation
        Values (M,) or (R, M) of the same features, of one output. Those without bounds are drawn
        without error bars. They count as exact, as those of TreeExplainer are.
    names : sequence of str
        Their names in the legend.
    max_display : int
        The largest number of features, those with the largest sizes in either Explanation.
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
        If the Explanations have different shapes or features, or several outputs.

    Notes
    -----
    The interval of a mean size has the mean width of the intervals of the rows: no correlation of
    their errors makes the error larger. It says how well the mean over these rows is known, and
    nothing about other rows.
    """
    _check_pair(first, second, names)
    checked_count("max_display", max_display)
    pair = _Pair.from_explanations(first, second)
    order = np.argsort(-np.maximum(*np.abs(pair.values)), kind="stable")[:max_display]
    with required_packages("shap_ext.plots needs matplotlib", extra="plots"):
        import matplotlib.pyplot as plt

    axes: Axes = plt.subplots(figsize=(8, 1.8 + 0.42 * len(order)))[1] if ax is None else ax
    _draw(axes, pair, order, names)
    _add_labels(axes, pair, order, names_of_features(first, pair.values.shape[1]))
    if not show:
        return axes
    plt.show()
    return None


@dataclass(frozen=True)
class _Pair:
    """The numbers of a comparison.

    Attributes
    ----------
    values, below, above : arrays, (2, M)
        Attributions, or their mean sizes, and the distances to the ends of their intervals.
    rule : str
        How the errors of a difference are computed.
    is_mean : bool
        Whether the values are means over rows.
    """

    values: FloatArray
    below: FloatArray
    above: FloatArray
    are_independent: bool
    is_mean: bool

    @classmethod
    def from_explanations(cls, first: Explanation, second: Explanation) -> _Pair:
        """Return the numbers of two Explanations."""
        sides = [_intervals(one) for one in (first, second)]
        is_mean = np.ndim(first.values) == 2
        if is_mean:
            sides = [side.mean_sizes() for side in sides]
        values, below, above = (
            np.stack([getattr(side, name) for side in sides])
            for name in ("values", "below", "above")
        )
        are_independent = have_independent_draws(first, second)
        return cls(values, below, above, are_independent, is_mean)

    @property
    def is_significant(self) -> BoolArray:
        """Whether the interval of each difference excludes 0, (M,)."""
        high = np.argmax(self.values, axis=0)[None]
        low = 1 - high
        gap = np.abs(self.values[0] - self.values[1])
        towards_low = np.take_along_axis(self.below, high, axis=0)[0]
        towards_high = np.take_along_axis(self.above, low, axis=0)[0]
        significant: BoolArray = gap > errors_of_sums(
            towards_low, towards_high, self.are_independent
        )
        return significant

    @property
    def rule(self) -> str:
        """What a star means."""
        if self.are_independent:
            return "★ significant at 5 %, each by itself (independent random draws)"
        return "★ intervals do not overlap (the errors may be correlated)"


def _intervals(explanation: shap.Explanation) -> Intervals:
    """Return the values with their intervals, which have no width without bounds."""
    values: FloatArray = np.asarray(explanation.values, dtype=np.float64)
    if explanation.lower_bounds is None:
        return Intervals(values, np.zeros_like(values), np.zeros_like(values))
    return Intervals(values, values - explanation.lower_bounds, explanation.upper_bounds - values)


def _check_pair(first: shap.Explanation, second: shap.Explanation, names: Sequence[str]) -> None:
    shapes = [np.shape(one.values) for one in (first, second)]
    if shapes[0] != shapes[1] or len(shapes[0]) not in (1, 2) or first.values.dtype == object:
        raise InvalidArgumentError(
            f"plots.comparison needs two Explanations of the same rows and features and of one "
            f"output; got the shapes {shapes[0]} and {shapes[1]}. Choose an output by e[..., k]."
        )
    of_first, of_second = (names_of_features(one, shapes[0][-1]) for one in (first, second))
    if of_first != of_second:
        raise InvalidArgumentError(
            "plots.comparison needs Explanations of the same features in the same order; their "
            "feature_names differ. Assign one list to both, if they mean the same."
        )
    for one in (first, second):
        removed = removed_bounds(one)
        if removed is not None:
            raise InvalidArgumentError(
                f"plots.comparison needs bounds: {removed}. Pass the Explanations as the "
                "explainers returned them; the plot averages their sizes by itself."
            )
    if len(names) != 2 or isinstance(names, str):
        raise InvalidArgumentError(f"names must hold two names; got {names!r}.")


def _draw(axes: Axes, pair: _Pair, order: IntArray, names: Sequence[str]) -> None:
    """Draw a dot with an error bar for each Explanation and feature."""
    lines = np.arange(len(order))[::-1]
    for side, sign in ((0, 1), (1, -1)):
        axes.errorbar(
            pair.values[side, order],
            lines + sign * _DISTANCE,
            xerr=[pair.below[side, order], pair.above[side, order]],
            fmt="o" if side == 0 else "s",
            color=_COLOURS[side],
            markersize=5,
            capsize=3,
            label=names[side],
        )


def _add_labels(axes: Axes, pair: _Pair, order: IntArray, features: Sequence[str]) -> None:
    """Add the names of the features, stars, the legend and the meaning of the bars."""
    stars = pair.is_significant[order]
    labels = [
        without_formulas(f"{'★ ' if star else ''}{features[index]}")
        for index, star in zip(order, stars, strict=True)
    ]
    axes.set_yticks(np.arange(len(order))[::-1], labels)
    axes.set_ylim(-0.6, len(order) - 0.4)
    if not pair.is_mean:
        axes.axvline(0, color="#999999", linewidth=0.8, zorder=0)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    quantity = "mean |SHAP value|" if pair.is_mean else "SHAP value"
    axes.set_xlabel(f"{quantity}, with 95 % intervals\n{pair.rule}")
    axes.legend(loc="best")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)

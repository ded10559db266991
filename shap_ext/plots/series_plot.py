"""Time series over the attributions of their windows, with error bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.series_drawing import draw_series

from ..argument_types import Explanation
from .host_plots import pyplot
from .intervals import intervals_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_REMEDY = "Choose one row and one output, such as explanation[0] or explanation[0][..., 1]."


def series(
    explanation: Explanation,
    labels: npt.ArrayLike | None = None,
    *,
    x_values: npt.ArrayLike | None = None,
    channel_labels: Sequence[str] | None = None,
    channels_last: bool = True,
    level: float = 0.95,
    axes: Sequence[Any] | None = None,
    show: bool = True,
) -> Figure | None:
    """Draw a time series over the attributions of its windows, with error bars.

    Each channel has its panel. A bar has the attribution of a window, or the part of it that this
    channel has where a window holds several; without labels, that of each time.

    Parameters
    ----------
    explanation : shap.Explanation
        One row and one output with bounds, such as that of `Superpixels(shap_ext.windows(...))`:
        values (times, channels), or (times,).
    labels : array of int, of the same shape, optional
        The windows, such as `shap_ext.windows(...)`.
    x_values : array, (times,), optional
        Where the times are drawn; by default at 0, 1, …
    channel_labels : sequence of str, optional
        The name of each channel.
    channels_last : bool
        Whether values are (times, channels), and not (channels, times).
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.
    axes : sequence of Axes, optional
        The axes of each channel; by default those of a new figure.
    show : bool
        Whether to show the figure.

    Returns
    -------
    Figure or None
        The figure with `show=False`, else None.

    Raises
    ------
    InvalidArgumentError
        If the Explanation has no bounds, or is not one of a series.
    """
    shapes = {1: "(times,)", 2: "(times, channels)"}
    intervals = intervals_of(explanation, level, "series", shapes, _REMEDY)
    numbers = np.asarray(explanation.data)
    if numbers.shape != intervals.values.shape:
        raise InvalidArgumentError(
            f"plots.series needs a series, and attributions of its shape; got {numbers.shape} and "
            f"{intervals.values.shape}. {_REMEDY}"
        )

    def by_times(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if array.ndim == 1:
            return array[:, None]
        return array if channels_last else array.T

    plt, n_channels = pyplot(), by_times(numbers).shape[1]
    if axes is None:
        figure = plt.figure(figsize=(8, 1 + 1.7 * n_channels), layout="constrained")
        axes = figure.subplots(n_channels, 1, sharex=True, squeeze=False)[:, 0]
    parts = [by_times(part) for part in (intervals.values, intervals.below, intervals.above)]
    draw_series(
        parts,
        by_times(numbers),
        axes,
        labels=None if labels is None else by_times(np.asarray(labels)),
        x_values=x_values,
        channel_labels=channel_labels,
    )
    if not show:
        drawn: Figure = axes[0].figure
        return drawn
    plt.show()
    return None

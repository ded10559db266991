"""Drawing a time series over the attributions of its windows, with error bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .array_types import FloatArray, IntArray
from .errors import InvalidArgumentError

_COLOURS = ("tab:blue", "tab:red")
"""Of negative and positive attributions."""


def draw_series(
    attributions: Sequence[FloatArray],
    series: npt.ArrayLike,
    axes: Sequence[Any],
    *,
    labels: IntArray | None = None,
    x_values: npt.ArrayLike | None = None,
    channel_labels: Sequence[str] | None = None,
) -> None:
    """Draw each channel of a series over the attributions of its windows.

    Without labels, successive times with equal attributions and intervals have one bar, with the
    attribution of each.

    Parameters
    ----------
    attributions : three arrays, (times, channels)
        The attribution of each number, and the distances to the lower and upper end of its
        interval, NaN where it is unknown.
    series : array, (times, channels)
        The series.
    axes : sequence of Axes, (channels,)
        The axes of each channel.
    labels : array of int, (times, channels), optional
        The windows, where each number has its share of the attribution of its window: a bar has the
        sum over the window.
    x_values : array, (times,), optional
        Where the times are drawn, rising; by default at 0, 1, …
    channel_labels : sequence of str, optional
        The name of each channel.

    Raises
    ------
    InvalidArgumentError
        If the arguments do not fit each other.
    """
    values, numbers = attributions[0], np.asarray(series, dtype=np.float64)
    if values.shape != numbers.shape or values.ndim != 2:
        raise InvalidArgumentError(
            f"Attributions and series must be those of one series, (times, channels); got "
            f"{values.shape} and {numbers.shape}."
        )
    n_times, n_channels = values.shape
    x = np.asarray(np.arange(n_times) if x_values is None else x_values, dtype=np.float64)
    if x.shape != (n_times,) or (np.diff(x) <= 0).any():
        raise InvalidArgumentError(
            f"x_values must be {n_times} numbers that rise, one for each time; got an array of the "
            f"shape {x.shape}."
        )
    if channel_labels is not None and len(channel_labels) != n_channels:
        raise InvalidArgumentError(
            f"channel_labels has {len(channel_labels)} names for {n_channels} channels."
        )
    if labels is not None and np.shape(labels) != values.shape:
        raise InvalidArgumentError(
            f"labels must have the shape of the series, {values.shape}; got {np.shape(labels)}."
        )
    if len(axes) != n_channels:
        raise InvalidArgumentError(
            f"There must be one of the axes for each of the {n_channels} channels; got {len(axes)}."
        )
    edges = _edges(x)
    for channel, panel in enumerate(axes):
        of_channel = np.stack([part[:, channel] for part in attributions])
        windows = None if labels is None else np.asarray(labels)[:, channel]
        _draw_windows(panel, edges, of_channel, windows)
        line = panel.twinx()
        line.plot(x, numbers[:, channel], color="0.25", linewidth=1.2)
        line.set_ylabel("series" if channel_labels is None else str(channel_labels[channel]))
    axes[-1].set_xlabel("time")


def _edges(x: FloatArray) -> FloatArray:
    """Return where the interval around each time begins and ends, (n_times + 1,)."""
    middles = (x[1:] + x[:-1]) / 2
    first, last = (x[:2], x[-2:]) if len(x) > 1 else ([x[0], x[0] + 1], [x[0] - 1, x[0]])
    return np.array([(3 * first[0] - first[1]) / 2, *middles, (3 * last[1] - last[0]) / 2])


def _draw_windows(
    panel: Any, edges: FloatArray, attributions: FloatArray, windows: IntArray | None
) -> None:
    """Draw the bars of a channel with their error bars; attributions are (3, T)."""
    changes = attributions[:, 1:] != attributions[:, :-1]
    changes &= ~np.isnan(attributions[:, 1:])
    is_new = changes.any(axis=0) if windows is None else np.diff(windows) != 0
    starts = np.flatnonzero([True, *is_new])
    lengths = np.diff([*starts, len(edges) - 1])
    # The shares of one window have the same relative errors, so that these add up.
    heights, below, above = attributions[:, starts] * (1 if windows is None else lengths)
    panel.bar(
        edges[starts],
        heights,
        edges[starts + lengths] - edges[starts],
        align="edge",
        color=[_COLOURS[int(value > 0)] for value in heights],
        alpha=0.5,
        edgecolor="white",
        linewidth=0.5,
        yerr=np.nan_to_num([below, above]),
        ecolor="0.2",
        capsize=2,
    )
    panel.axhline(0, color="0.5", linewidth=0.8)
    panel.set_ylabel("attribution")

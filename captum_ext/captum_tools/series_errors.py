"""Attributions of time series with error bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from shapley_adapters.arguments import checked_probability
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError, required_packages
from shapley_adapters.pipeline.result import quantiles
from shapley_adapters.series_drawing import draw_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def visualize_timeseries_attr_with_error(
    attr: Tensor | npt.NDArray[Any],
    standard_error: Tensor | npt.NDArray[Any],
    data: Tensor | npt.NDArray[Any],
    x_values: npt.ArrayLike | None = None,
    *,
    channel_labels: Sequence[str] | None = None,
    channels_last: bool = True,
    level: float = 0.95,
    plt_fig_axis: tuple[Figure, Sequence[Axes]] | None = None,
    title: str | None = None,
    fig_size: tuple[float, float] | None = None,
    use_pyplot: bool = True,
) -> tuple[Figure, Sequence[Axes]]:
    """Draw a time series over the attributions of its windows, with error bars.

    The arguments are those of captum's `visualize_timeseries_attr`, which fails with matplotlib 3.9
    and later. Each channel has its panel. A bar has the attribution of a window; one that holds
    several channels is drawn in each of them.

    Parameters
    ----------
    attr, standard_error, data : arrays or tensors, (times, channels) or (times,)
        Attributions of one series and their standard errors, as
        `attribute(..., return_standard_error=True)` returns them, and the series.
    x_values : array, (times,), optional
        Where the times are drawn; by default at 0, 1, …
    channel_labels : sequence of str, optional
        The name of each channel.
    channels_last : bool
        Whether the arrays are (times, channels), and not (channels, times).
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.
        The intervals are normal.
    plt_fig_axis : (figure, axes), optional
        A figure and one of its axes for each channel.
    title : str, optional
        The title of the figure.
    fig_size : (width, height), optional
        The size of a new figure in inches.
    use_pyplot : bool
        Whether the figure is made and shown by pyplot.

    Returns
    -------
    figure, axes
        The figure and its axes, one for each channel.

    Raises
    ------
    InvalidArgumentError
        If the arrays are not those of one series, or the arguments do not fit them.
    """
    checked_probability("level", level)
    given = (("attr", attr), ("standard_error", standard_error), ("data", data))
    values, errors, numbers = (_by_times(name, array, channels_last) for name, array in given)
    if values.shape != errors.shape:
        raise InvalidArgumentError(
            f"attr and standard_error must have the same shape; got {values.shape} and "
            f"{errors.shape}. attribute(..., return_standard_error=True) returns both."
        )
    n_channels = values.shape[1]
    if plt_fig_axis is None:
        figure = _new_figure(fig_size or (8, 1 + 1.7 * n_channels), use_pyplot)
        axes = list(figure.subplots(n_channels, 1, sharex=True, squeeze=False)[:, 0])
    else:
        figure, axes = plt_fig_axis[0], list(np.ravel(np.asarray(plt_fig_axis[1], dtype=object)))
    widths = float(quantiles(level)) * errors
    draw_series(
        (values, widths, widths),
        numbers,
        axes,
        x_values=x_values,
        channel_labels=channel_labels,
    )
    if title is not None:
        figure.suptitle(title)
    if use_pyplot:
        _pyplot().show()
    return figure, axes


def _by_times(name: str, array: Tensor | npt.NDArray[Any], channels_last: bool) -> FloatArray:
    """Return the numbers of one series, (times, channels)."""
    numbers = array.detach().cpu().numpy() if isinstance(array, Tensor) else np.asarray(array)
    if numbers.ndim not in (1, 2):
        raise InvalidArgumentError(
            f"{name} must be of one series, (times, channels) or (times,); got shape "
            f"{numbers.shape}. For a batch of tensors, pass {name}[0]."
        )
    numbers = numbers.astype(np.float64)
    if numbers.ndim == 1:
        return numbers[:, None]
    return numbers if channels_last else numbers.T


def _new_figure(size: tuple[float, float], use_pyplot: bool) -> Any:
    options: dict[str, Any] = {"figsize": size, "layout": "constrained"}
    if use_pyplot:
        return _pyplot().figure(**options)
    from matplotlib.figure import Figure

    return Figure(**options)


def _pyplot() -> Any:
    with required_packages("visualize_timeseries_attr_with_error needs matplotlib", "captum"):
        import matplotlib.pyplot as plt

    return plt

"""Windows of time series as players."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arguments import checked_count
from .array_types import IntArray
from .errors import InvalidArgumentError


def windows(
    shape: Sequence[int],
    width: int | None = None,
    *,
    change_points: Sequence[int] | None = None,
    offset: int = 0,
    channels: str | Sequence[Any] = "apart",
    channels_last: bool = True,
) -> IntArray:
    """Divide a time series into windows: labels, one for each number.

    In shap they are `Superpixels(labels)`, or `groups=labels`; in captum
    `feature_mask=torch.as_tensor(labels)[None]`.

    Parameters
    ----------
    shape : (times, channels), (channels, times) or (times,)
        The shape of one series, such as `x.shape[1:]`.
    width : int, optional
        The number of times in a window; the last window may have fewer. By default there is one
        window, so that whole channels are the players.
    change_points : sequence of int, optional
        In place of `width`: the times at which windows begin, but for the first one, which begins
        at 0. Packages such as ruptures find change points.
    offset : int
        By how many times windows of a fixed width are shifted: so many are in the first window.
    channels : {"apart", "together"} or sequence
        Whether a window holds one channel or all; or a name or number for each channel, such as its
        sensor: windows hold the channels with the same one.
    channels_last : bool
        Whether the shape is (times, channels).

    Returns
    -------
    array of int, of the given shape
        The labels from 0: those of the first window, then those of the next one.

    Raises
    ------
    InvalidArgumentError
        If a window would be empty, or the arguments do not fit the shape.

    Notes
    -----
    A time is in one window only: in two that overlap it would be present and absent at once. For
    sliding windows, average the attributions for several offsets.

    Examples
    --------
    >>> from shapley_adapters import windows
    >>> windows((5, 2), 2).tolist()
    [[0, 1], [0, 1], [2, 3], [2, 3], [4, 5]]
    >>> windows((5,), change_points=[1, 4]).tolist()
    [0, 1, 1, 1, 2]
    """
    shape = tuple(checked_count("shape", length) for length in shape)
    if len(shape) not in (1, 2):
        raise InvalidArgumentError(
            f"shape={shape} must be that of one series, (times, channels) or (times,). Of a batch "
            "pass x.shape[1:]."
        )
    is_plain = len(shape) == 1
    n_times, n_channels = (*shape, 1) if is_plain else shape[:: 1 if channels_last else -1]
    of_times = _windows_of_times(n_times, width, change_points, offset)
    of_channels = _groups_of_channels(n_channels, channels)
    labels: IntArray = of_times[:, None] * (of_channels.max() + 1) + of_channels
    if not (is_plain or channels_last):
        labels = np.ascontiguousarray(labels.T)  # captum's samplers fail with other tensors
    return labels.reshape(shape)


def _windows_of_times(
    n_times: int, width: int | None, change_points: Sequence[int] | None, offset: int
) -> IntArray:
    """Return the window of each time, (n_times,)."""
    if change_points is not None:
        if width is not None or offset:
            raise InvalidArgumentError(
                "change_points say where windows begin: leave width and offset out."
            )
        starts = np.array([0, *change_points, n_times])
        if starts.dtype.kind not in "iu" or (np.diff(starts) <= 0).any():
            raise InvalidArgumentError(
                f"change_points must be whole numbers that rise, from 1 to {n_times - 1}; got "
                f"{list(change_points)}. Others would leave a window empty."
            )
        return np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    width = n_times if width is None else checked_count("width", width)
    checked_count("offset", offset, minimum=0)
    if width > n_times or offset >= width:
        raise InvalidArgumentError(
            f"width={width} and offset={offset} do not fit {n_times} times: width may be up to "
            f"{n_times}, and offset must be less than width."
        )
    return (np.arange(n_times) - offset) // width + (offset > 0)


def _groups_of_channels(n_channels: int, channels: str | Sequence[Any]) -> IntArray:
    """Return the group of each channel, (n_channels,), numbered as they appear."""
    if isinstance(channels, str):
        if channels not in ("apart", "together"):
            raise InvalidArgumentError(
                f"channels={channels!r} must be 'apart', 'together', or one name for each channel."
            )
        return np.arange(n_channels) if channels == "apart" else np.zeros(n_channels, dtype=int)
    if len(channels) != n_channels:
        raise InvalidArgumentError(
            f"channels has {len(channels)} names, but the series has {n_channels} channels."
        )
    numbers = {name: number for number, name in enumerate(dict.fromkeys(channels))}
    return np.array([numbers[name] for name in channels])

"""Room on the axes for error bars, and for the labels behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shapley_adapters.array_types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

BAR_COLOUR = "#333333"
"""The colour of error bars."""

_MARGIN = 0.03
"""The smallest distance from error bars to the ends of the axis, as a share of its length."""

_LABEL_MARGIN = 0.005

_ROUNDS = 3
"""Labels keep their size in points while the axis becomes longer, so that room is made again."""


def make_room(axes: Axes, lower: FloatArray, upper: FloatArray) -> None:
    """Lengthen the x axis so that it holds some intervals."""
    left, right = axes.get_xlim()
    first, last = np.nanmin(lower, initial=np.inf), np.nanmax(upper, initial=-np.inf)
    margin = _MARGIN * (max(right, last) - min(left, first))
    axes.set_xlim(
        min(left, first - margin) if first < left + margin else left,
        max(right, last + margin) if last > right - margin else right,
    )


def make_room_for_labels(axes: Axes, labels: Sequence[Text]) -> None:
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


def move_labels(labels: Sequence[Text], below: FloatArray, above: FloatArray) -> None:
    """Move labels at the ends of bars behind the error bars; centred ones stay."""
    for label, left, right in zip(labels, below, above, strict=True):
        side = label.get_horizontalalignment()
        shift = {"left": np.nan_to_num(right), "right": -np.nan_to_num(left)}.get(side, 0.0)
        label.set_x(label.get_position()[0] + shift)

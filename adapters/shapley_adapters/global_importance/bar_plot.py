"""A bar for the importance of each feature, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import required_packages
from ..pipeline.result import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POSITIVE, _NEGATIVE = "#ff0051", "#008bfb"
"""The colours of shap's bars."""


def draw_importance(frame: pd.DataFrame, title: str, confidence: float, ax: Axes | None) -> Any:
    """Draw a table of `GlobalImportance.to_frame`, its first row at the top."""
    with required_packages("plot needs matplotlib", extra="shap"):
        import matplotlib.pyplot as plt

    axes: Any = ax
    if ax is None:
        axes = plt.subplots(figsize=(7, 1 + 0.4 * len(frame)), layout="constrained")[1]
    importance = frame["importance"].to_numpy()
    below = importance - frame["lower"].to_numpy()
    above = frame["upper"].to_numpy() - importance
    axes.barh(
        range(len(frame)),
        importance,
        xerr=[below, above],
        color=[_POSITIVE if value >= 0 else _NEGATIVE for value in importance],
        ecolor="0.25",
        capsize=3,
    )
    axes.set_yticks(range(len(frame)), [str(name).replace("$", r"\$") for name in frame.index])
    axes.invert_yaxis()
    axes.axvline(0, color="0.5", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"{title}, with {percent(confidence)} intervals")
    return axes

"""Pictures of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .training import Record


def draw_history(history: Sequence[Record], ax: Any = None) -> Any:
    """Draw the validation error against the evaluations spent; returns matplotlib's axes.

    Labels cost their evaluations before the first epoch, so that epochs are then on the other axis.
    """
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    spent = [record.evaluations for record in history]
    is_at_once = len(set(spent)) == 1
    at = [record.epoch for record in history] if is_at_once else spent
    ax.plot(at, [record.absolute_error for record in history], label="sum of absolute errors")
    ax.plot(at, [record.squared_error for record in history], label="root of the sum of squares")
    ax.set(
        xlabel=f"epoch (after {spent[0]:,} evaluations)" if is_at_once else "evaluations",
        ylabel="error on held-out rows",
        yscale="log",
    )
    ax.legend(frameon=False)
    return ax

"""Plots of training."""

from __future__ import annotations

from typing import Any

from .amortized import AmortizedShapley


def draw_history(explainer: AmortizedShapley, ax: Any = None) -> Any:
    """Plot the validation error against the evaluations; returns matplotlib's axes.

    The title names the preset, if the network was trained by one.

    Labels cost all their evaluations before the first epoch. The horizontal axis then shows epochs.
    """
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    history, preset = explainer.trained.history, explainer.saved.description.settings["preset"]
    evaluations = [record.evaluations for record in history]
    is_at_once = len(set(evaluations)) == 1
    positions = [record.epoch for record in history] if is_at_once else evaluations
    ax.plot(
        positions, [record.absolute_error for record in history], label="sum of absolute errors"
    )
    ax.plot(
        positions, [record.squared_error for record in history], label="root of the sum of squares"
    )
    ax.set(
        xlabel=f"epoch (after {evaluations[0]:,} evaluations)" if is_at_once else "evaluations",
        ylabel="error on held-out rows",
        yscale="log",
    )
    if preset != str(None):
        ax.set_title(f"preset={preset!r}")
    ax.legend(frameon=False)
    return ax

"""Plots of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .amortized import AmortizedShapley
from .training import EpochMetrics


def draw_history(explainer: AmortizedShapley, ax: Any = None) -> Any:
    """Plot validation errors and losses against the evaluations; returns matplotlib's axes.

    The title names the preset, if the network was trained by one.

    Labels cost all their evaluations before the first epoch. The horizontal axis then shows epochs.
    The band is one standard error of the sum of absolute errors. Losses have an axis of their own.
    """
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    history, preset = explainer.trained.history, explainer.saved.description.settings["preset"]
    evaluations = [record.evaluations for record in history]
    is_at_once = len(set(evaluations)) == 1
    positions = [record.epoch for record in history] if is_at_once else evaluations
    absolute = np.array([record.absolute_error for record in history])
    uncertainty = np.array([record.standard_error for record in history])
    lines = ax.plot(positions, absolute, label="sum of absolute errors")
    ax.fill_between(positions, absolute - uncertainty, absolute + uncertainty, alpha=0.25)
    lines += ax.plot(
        positions, [record.squared_error for record in history], label="root of the sum of squares"
    )
    ax.set(
        xlabel=f"epoch (after {evaluations[0]:,} evaluations)" if is_at_once else "evaluations",
        ylabel="error on held-out rows",
        yscale="log",
    )
    if preset != str(None):
        ax.set_title(f"preset={preset!r}")
    if is_at_once:
        ax.xaxis.get_major_locator().set_params(integer=True)
    lines += _draw_losses(history, positions, ax.twinx())
    ax.legend(lines, [line.get_label() for line in lines], frameon=False)
    return ax


def _draw_losses(history: Sequence[EpochMetrics], positions: Sequence[int], ax: Any) -> Any:
    losses = [record.loss for record in history]
    lines = ax.plot(positions, losses, color="0.6", linestyle="--", label="training loss (right)")
    ax.set(ylabel="training loss", yscale="log")
    return lines

"""The picture of the benchmark of networks that explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt


@dataclass(frozen=True)
class Learned:
    """A trained network.

    Attributes
    ----------
    name : str
        What tables call it.
    error : float
        Mean over test rows of Σ|φ̂ − φ|.
    seconds : float
        Time of a pass for a row.
    history : list of float
        Errors on held-out training rows, epoch by epoch.
    """

    name: str
    error: float
    seconds: float
    history: list[float]


@dataclass(frozen=True)
class Curve:
    """An estimator over budgets: evaluations, errors and seconds a row."""

    name: str
    budgets: list[int]
    errors: list[float]
    seconds: list[float]


def draw(learned: Sequence[Learned], curves: Sequence[Curve], title: str, path: Path) -> None:
    """Draw the learning curves, and the networks' errors among those of estimators."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained", sharey=True)
    for place, one in enumerate(learned):
        epochs = range(1, len(one.history) + 1)
        left.plot(epochs, one.history, color=f"C{place}", label=one.name)
        right.axhline(one.error, color=f"C{place}", linestyle="--", linewidth=1.2)
    for curve, marker in zip(curves, "os^D", strict=True):
        right.plot(curve.budgets, curve.errors, color="0.35", marker=marker, label=curve.name)
    left.set(xlabel="epoch", ylabel="mean Σ|φ̂ − φ|", title="Learning: held-out training rows")
    right.set(
        xlabel="evaluations a row, of estimators (networks: dashed, one pass)",
        title="Test rows",
        xscale="log",
        yscale="log",
    )
    for panel in (left, right):
        panel.legend(frameon=False, fontsize=8)
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    plt.close(figure)

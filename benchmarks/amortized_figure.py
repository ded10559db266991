"""The picture of the benchmark of networks that explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter


@dataclass(frozen=True)
class Learned:
    """A trained network.

    Attributes
    ----------
    name : str
        What tables call it.
    seed : int
        Seed of the training.
    error, l2 : float
        Means over test rows of Σ|φ̂ − φ| and of √Σ(φ̂ − φ)².
    evaluations, validation_evaluations : int
        All evaluations of the training, and those of them that validation took.
    training_seconds, validation_seconds : float
        Time of the processor for the training, and for validation in it.
    seconds : float
        Time of a pass for a row.
    history : list of float
        Errors on held-out training rows, epoch by epoch, or losses.
    has_errors : bool
        Whether the history holds errors; the authors' recipe has only losses.
    areas : str
        Areas under the curves of insertion and deletion; empty for tables.
    """

    name: str
    seed: int
    error: float
    l2: float
    evaluations: int
    validation_evaluations: int
    training_seconds: float
    validation_seconds: float
    seconds: float
    history: list[float]
    has_errors: bool
    areas: str = ""


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
    for place, one in enumerate(sorted(learned, key=lambda one: -one.error)):
        # Thinner from line to line: where two overlap, both are seen.
        style = {"color": f"C{place}", "linewidth": max(1.0, 3.0 - 0.4 * place)}
        right.axhline(one.error, linestyle="--", **style)
        label = f"{one.name}, seed {one.seed}: {one.error:.3g} on test rows"
        if one.has_errors:
            left.plot(range(1, len(one.history) + 1), one.history, label=label, **style)
        else:
            left.plot([], [], linestyle="--", label=label, **style)
    for curve, marker in zip(curves, "os^D", strict=True):
        right.plot(curve.budgets, curve.errors, color="0.35", marker=marker, label=curve.name)
    left.set(xlabel="epoch", ylabel="mean Σ|φ̂ − φ|", title="Learning: held-out training rows")
    right.set(
        xlabel="evaluations a row, of estimators (networks: dashed, one pass)",
        title="Test rows",
        xscale="log",
        yscale="log",
    )
    left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    left.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    left.yaxis.set_minor_formatter(NullFormatter())
    right.minorticks_off()
    right.set_xticks(curves[0].budgets, labels=[str(budget) for budget in curves[0].budgets])
    for panel in (left, right):
        panel.legend(frameon=False, fontsize=8, loc="lower left")
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    plt.close(figure)

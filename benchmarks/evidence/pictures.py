"""How the pictures of the items are drawn."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

Lines = Mapping[str, Any]
"""Abscissas and ordinates by the names of the lines."""


def draw_lines(
    panels: Mapping[str, Lines],
    xlabel: str,
    ylabel: str,
    path: Path,
    *,
    scales: tuple[str, str] = ("linear", "linear"),
    style: str = "o-",
) -> None:
    """Draw lines or points, a panel for each title, into a file; logarithms have the base 2."""
    size = (6.5 * len(panels), 4.3)
    figure, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained", squeeze=False)
    for panel, (title, lines) in zip(axes[0], panels.items(), strict=True):
        for name, (x, y) in lines.items():
            panel.plot(x, y, style, label=name)
        panel.set(xlabel=xlabel, ylabel=ylabel, title=title, yscale=scales[1])
        panel.set_xscale(scales[0], **({"base": 2} if scales[0] == "log" else {}))
        panel.grid(alpha=0.3)
    axes[0, -1].legend(fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def draw_budgets(lines: Lines, metric: str, path: Path) -> None:
    """Draw the mean scores of estimators over numbers of evaluations."""
    scales = ("log", "log" if metric == "absolute error" else "linear")
    draw_lines({"": lines}, "N, evaluations per player", metric, path, scales=scales)


def draw_images(rows: Mapping[str, Any], path: Path) -> None:
    """Draw rows of images into a file: colours, or numbers, blue above 0 and red below."""
    size = len(rows), max(map(len, rows.values()))
    inches = (1.5 * size[1] + 1, 1.5 * size[0])
    figure, panels = plt.subplots(*size, figsize=inches, layout="constrained", squeeze=False)
    for line, (name, images) in zip(panels, rows.items(), strict=True):
        for panel, image in zip(line, images, strict=True):
            most = np.abs(image).max() or 1.0
            panel.imshow(image, cmap="RdBu", vmin=-most, vmax=most)
            panel.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, fontsize=8)
    figure.savefig(path, dpi=80)
    plt.close(figure)

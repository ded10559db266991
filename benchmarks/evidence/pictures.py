"""What the pictures of the items have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt


@contextmanager
def picture(
    path: Path,
    size: tuple[float, float],
    xlabel: str = "",
    ylabel: str = "",
    *,
    title: str = "",
    dpi: int = 100,
    has_grid: bool = True,
    legend: int | None = 10,
) -> Iterator[Any]:
    """Give a panel to draw in, and write it to a file.

    Parameters
    ----------
    path, size, dpi
        The file, and the size in inches and dots.
    xlabel, ylabel, title : str
        The words beside the axes and above.
    has_grid : bool
        Whether the panel has a grid.
    legend : int or None
        The size of the letters of the legend; None for no legend.
    """
    figure, panel = plt.subplots(figsize=size, layout="constrained")
    yield panel
    panel.set(xlabel=xlabel, ylabel=ylabel, title=title)
    if has_grid:
        panel.grid(alpha=0.3)
    if legend is not None:
        panel.legend(fontsize=legend)
    figure.savefig(path, dpi=dpi)
    plt.close(figure)


def draw_budgets(
    path: Path,
    size: tuple[float, float],
    dpi: int,
    budgets: Sequence[int],
    means: Mapping[str, Any],
    metric: str,
) -> None:
    """Draw the mean scores of estimators over numbers of evaluations."""
    with picture(path, size, "N, evaluations per player", metric, dpi=dpi, legend=8) as panel:
        for name, of_budgets in means.items():
            panel.plot(budgets, of_budgets, marker="o", label=name)
        panel.set_xscale("log", base=2)
        if metric == "absolute error":
            panel.set_yscale("log")

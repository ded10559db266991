"""The pictures of a report."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable

import numpy as np
import shap

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import required_packages

from .. import plots
from ..global_generator import seeded_generator

_DOTS_PER_INCH = 100
_LONGEST_NAME = 40
_MOST_DOTS = 20_000
"""Dots of a beeswarm; of more rows, some at equal distances are drawn."""


def draw(name: str, explanation: shap.Explanation, max_display: int) -> bytes:
    """Draw a plot of shap, with error bars where the explanation has bounds; return it as PNG."""
    explanation_copy = copy.copy(explanation)
    names = explanation_copy.feature_names
    if names is not None:
        explanation_copy.feature_names = [name_in_picture(str(one)) for one in names]
    has_bounds = explanation.lower_bounds is not None
    plot = getattr(plots if has_bounds else shap.plots, name)
    return as_png(lambda: plot(explanation_copy, max_display=max_display, show=False))


def evenly_chosen(n_rows: int, n_features: int) -> list[int]:
    """Return rows at equal distances, so many that a plot of dots stays readable."""
    n_drawn = max(1, min(n_rows, _MOST_DOTS // max(1, n_features)))
    return [int(row) for row in np.linspace(0, n_rows - 1, n_drawn).round()]


def draw_interactions(values: FloatArray, names: list[str]) -> bytes:
    """Draw a heat map of mean sizes of interactions, (M, M)."""
    return as_png(lambda: _heat_map(values, [name_in_picture(name) for name in names]))


def _heat_map(values: FloatArray, names: list[str]) -> None:
    import matplotlib.pyplot as plt

    side = 2.5 + 0.55 * len(names)
    plt.gcf().set_size_inches(side + 1, side)
    axes = plt.gca()
    image = axes.imshow(values, cmap="Reds", vmin=0)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axes.set_yticks(range(len(names)), names)
    limit = float(values.max(initial=0.0))
    for (row, column), value in np.ndenumerate(values):
        colour = "white" if value > 0.6 * limit else "black"
        text = f"{value:.2g}" if value > 1e-3 * limit else "0"
        axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=8)
    plt.gcf().colorbar(image, ax=axes, label="mean |interaction|", shrink=0.7)


def draw_convergence(explanation: shap.Explanation) -> None:
    """Draw the attributions of a row with a trace on the current figure."""
    import matplotlib.pyplot as plt

    plots.convergence(explanation, ax=plt.gca(), show=False)


def draw_image(values: FloatArray) -> bytes:
    """Draw the attributions of an image, summed over its channels."""
    return as_png(lambda: _image(values))


def _image(values: FloatArray) -> None:
    import matplotlib.pyplot as plt

    sums = values if values.ndim == 2 else values.reshape(*values.shape[:2], -1).sum(axis=2)
    limit = float(np.abs(sums).max(initial=0.0)) or 1.0
    axes = plt.gca()
    image = axes.imshow(sums, cmap=shap.plots.colors.red_transparent_blue, vmin=-limit, vmax=limit)
    axes.set_axis_off()
    plt.gcf().colorbar(image, ax=axes, label="attribution", shrink=0.7)


def name_in_picture(name: str) -> str:
    """Return a name that is short enough and has no formulas of matplotlib."""
    middle = _LONGEST_NAME // 2 - 1
    short = name if len(name) <= _LONGEST_NAME else f"{name[:middle]}…{name[-middle:]}"
    return short.replace("$", r"\$")


def as_png(plot: Callable[[], object]) -> bytes:
    """Return the drawing of a function on a new figure, and close the figure."""
    with required_packages("a report needs matplotlib", extra="plots"):
        import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    with plt.style.context("default"), plt.ioff(), seeded_generator(0):
        figure = plt.figure(figsize=(8, 5))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # shap's plots use deprecated parts of matplotlib
                plot()
                figure.savefig(buffer, format="png", dpi=_DOTS_PER_INCH, bbox_inches="tight")
        finally:
            plt.close(figure)
    return buffer.getvalue()

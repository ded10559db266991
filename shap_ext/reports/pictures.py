"""The pictures of a report."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable

import numpy as np
import shap

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import required_packages

from .. import plots
from ..global_generator import seeded_generator
from ..plots.features import without_formulas
from ..plots.interaction_plot import draw_pairs
from ..plots.intervals import Intervals
from ..shap_internals import copied

_DOTS_PER_INCH = 100
_LONGEST_NAME = 40
_MOST_DOTS = 20_000
"""Dots of a beeswarm; of more rows, some at equal distances are drawn."""


def draw(name: str, explanation: shap.Explanation, max_display: int) -> bytes:
    """Draw a plot of shap, with error bars where the explanation has bounds; return it as PNG."""
    explanation_copy = copied(explanation)
    names = explanation_copy.feature_names
    if names is not None:
        explanation_copy.feature_names = [name_in_picture(str(one)) for one in names]
    plot = getattr(plots if has_known_bounds(explanation) else shap.plots, name)
    return as_png(lambda: plot(explanation_copy, max_display=max_display, show=False))


def has_known_bounds(explanation: shap.Explanation) -> bool:
    """Return whether there are bounds; those of too few draws are NaN."""
    lower = explanation.lower_bounds
    return lower is not None and not np.isnan(lower).all()


def evenly_chosen(n_rows: int, n_features: int) -> list[int]:
    """Return rows at equal distances, so many that a plot of dots stays readable."""
    n_drawn = max(1, min(n_rows, _MOST_DOTS // max(1, n_features)))
    return [int(row) for row in np.linspace(0, n_rows - 1, n_drawn).round()]


def draw_interactions(explanation: shap.Explanation, names: list[str], n_shown: int) -> bytes:
    """Draw a heat map of mean sizes of interactions, hatched where there are bounds."""
    shown_names = [short_name(name) for name in names]
    if has_known_bounds(explanation):
        explanation_copy = copied(explanation)
        explanation_copy.feature_names = shown_names
        return as_png(lambda: plots.interactions(explanation_copy, n_shown, show=False))
    values = np.asarray(explanation.values, dtype=np.float64)
    unknown = np.full(values.shape, np.nan)
    return as_png(lambda: draw_pairs(Intervals(values, unknown, unknown), shown_names, n_shown))


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
    return without_formulas(short_name(name))


def short_name(name: str) -> str:
    """Return a name of which the middle is left out if it is long."""
    middle = _LONGEST_NAME // 2 - 1
    return name if len(name) <= _LONGEST_NAME else f"{name[:middle]}…{name[-middle:]}"


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

"""The picture of the accuracy benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from contenders import ABLATIONS, AUTHORS, PUBLISHED, SHEAR
from scores import Score

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

_TITLES = {
    "AE": "Absolute error (less is better)",
    "ACC": "Accuracy of the ranking",
    "Faithfulness": "Faithfulness",
    "Monotonicity": "Monotonicity",
}
_STYLES = {
    SHEAR: ("tab:red", "o", "-", 2.4),
    AUTHORS: ("tab:orange", "s", "-", 1.4),
    PUBLISHED: ("tab:orange", "x", ":", 1.4),
    "randomorder (ours)": ("tab:purple", "v", "-", 1.4),
    "leastsquares, kernel (ours)": ("tab:blue", "D", "-", 1.4),
    "shap permutation": ("tab:green", "^", "--", 1.4),
    "shap kernel, l1_reg=False": ("tab:olive", "P", "--", 1.4),
    "APS": ("dimgrey", "v", "--", 1.0),
    "PS": ("darkgrey", "v", ":", 1.0),
    "KS-Pair, pooled": ("dimgrey", "D", "--", 1.0),
    "KS, pooled": ("darkgrey", "D", ":", 1.0),
    "KS, averaged": ("lightgrey", "D", "-.", 1.0),
}
"""Colour, marker, line and width of each contender that is drawn."""

_OUT_OF_VIEW = "KS, averaged"
"""So far off that it may leave two of the panels."""

_ABLATED_AT = 16


def draw(scores: Sequence[Score], title: str, path: Path) -> None:
    """Draw each metric against the budget, the ratio of errors, and the options of SHEAR."""
    figure, grid = plt.subplots(2, 3, figsize=(15, 9), layout="constrained")
    places = {"AE": (0, 0), "ACC": (0, 1), "Faithfulness": (1, 0), "Monotonicity": (1, 1)}
    for metric, place in places.items():
        _draw_metric(grid[place], scores, metric)
    _draw_options(grid[0, 2], scores)
    _draw_ratios(grid[1, 2], scores)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_metric(panel: Axes, scores: Sequence[Score], metric: str) -> None:
    for name in _STYLES:
        own = [score for score in scores if score.name == name]
        values = [score.means[metric] for score in own]
        _draw_line(panel, name, own, values, [score.errors[metric] for score in own])
    if metric == "AE":
        panel.set_yscale("log")
    if metric in ("Faithfulness", "Monotonicity"):
        seen = [s for s in scores if s.name in _STYLES and s.name != _OUT_OF_VIEW]
        least = min(score.means[metric] - 2 * score.errors[metric] for score in seen)
        panel.set_ylim(bottom=least)
    _label(panel, scores, _TITLES[metric])


def _draw_ratios(panel: Axes, scores: Sequence[Score]) -> None:
    ours = {score.per_player: score.means["AE"] for score in scores if score.name == SHEAR}
    for name in _STYLES:
        own = [score for score in scores if score.name == name]
        ratios = [score.means["AE"] / ours[score.per_player] for score in own]
        _draw_line(panel, name, own, ratios, None)
    panel.set_ylim(0, 3)
    _label(panel, scores, f"Absolute error over that of {SHEAR}")


def _draw_line(
    panel: Axes,
    name: str,
    own: Sequence[Score],
    values: Sequence[float],
    errors: Sequence[float] | None,
) -> None:
    """Draw one contender over the evaluations that it really made."""
    color, marker, line, width = _STYLES[name]
    panel.errorbar(
        [score.evaluations for score in own],
        values,
        yerr=errors,
        color=color,
        marker=marker,
        linestyle=line,
        linewidth=width,
        markersize=5,
        capsize=2,
        elinewidth=0.7,
        label=name,
        zorder=3 if name == SHEAR else 2,
    )


def _label(panel: Axes, scores: Sequence[Score], title: str) -> None:
    panel.set_xscale("log", base=2)
    budgets = sorted({round(score.evaluations) for score in scores if score.name == SHEAR})
    panel.set_xticks(budgets, [str(budget) for budget in budgets])
    panel.minorticks_off()
    panel.set_xlabel("evaluations of a row")
    panel.set_title(title)
    panel.grid(alpha=0.3)


def _draw_options(panel: Axes, scores: Sequence[Score]) -> None:
    budgets = {score.per_player for score in scores}
    shown = _ABLATED_AT if _ABLATED_AT in budgets else min(budgets)
    bars = {score.name: score for score in scores if score.per_player == shown}
    names = [SHEAR, *ABLATIONS, AUTHORS, PUBLISHED]
    panel.barh(
        names,
        [bars[name].means["AE"] for name in names],
        xerr=[bars[name].errors["AE"] for name in names],
        color=[_STYLES.get(name, ("lightcoral",))[0] for name in names],
        capsize=2,
    )
    panel.invert_yaxis()
    panel.set_title(f"Absolute error by options of SHEAR, N = {shown}")
    panel.grid(alpha=0.3, axis="x")

"""Texts with the interval of each word."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import shap

from shapley_adapters.errors import InvalidArgumentError, PlotError, required_packages
from shapley_adapters.pipeline.result import percent

from ..results.bounded_explanation import UNIONS, BoundedExplanation
from ..shap_internals import shown_nodes, tracked_of
from .host_plots import HostPlot
from .intervals import Intervals, intervals_of

_REMEDY = "Choose one output, such as explanation[..., 0]."
_WORD = re.compile(r"<div id='_tp_\w+_ind_\d+'\s+style='")
_FADED = "opacity: 0.45; border-bottom: 1px dotted #555; "


def text(*arguments: Any, level: float = 0.95, **options: Any) -> str | None:
    """Show shap's text plot with the interval of each word, and fade words of unknown sign.

    A word whose interval contains 0 is faded and has a dotted line below. The interval appears
    while the mouse is over a word. Of a hierarchy, phrases that are not split have their own.

    Parameters
    ----------
    *arguments, **options
        Those of `shap.plots.text`: an Explanation with bounds of one text or of several;
        `num_starting_labels`, `cmax`, `display` and all others.
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.

    Returns
    -------
    str or None
        The HTML with `display=False`; else None, and the notebook shows it.

    Raises
    ------
    InvalidArgumentError
        If the Explanation has no bounds, or several outputs.
    """
    plot = HostPlot.from_call("text", arguments, options)
    explanation = plot.arguments["shap_values"]
    threshold = plot.arguments.get("grouping_threshold", 0.01)
    separator = plot.arguments.get("separator", "")
    words = [
        (interval, label)
        for row in _rows(explanation)
        for interval, label in _word_notes(row, level, threshold, separator)
    ]
    with np.printoptions(legacy="1.21"):  # shap 0.51 writes NumPy's numbers into colours
        html: str = plot.function(**{**plot.arguments, "display": False})
    if len(_WORD.findall(html)) != len(words):
        raise PlotError(
            f"shap {shap.__version__} wrote its text plot in a form that plots.text does not "
            "know. Call shap.plots.text for a plot without intervals, and please report this."
        )
    marks = iter(words)

    def marked(tag: re.Match[str]) -> str:
        contains_zero, label = next(marks)
        start = tag[0].removesuffix("style='")
        return f"{start}title='{label}' style='{_FADED if contains_zero else ''}"

    html = _WORD.sub(marked, html) + (
        "<div align='center' style='color: rgb(120,120,120); font-size: 12px; margin-top: 6px;'>"
        f"Faded, with a dotted line: the {percent(level)} interval contains 0. "
        "Hold the mouse over a word for its interval.</div>"
    )
    if not plot.arguments["display"]:
        return html
    with required_packages("plots.text with display=True needs IPython", extra="plots"):
        from IPython.display import HTML, display

    display(HTML(html))  # type: ignore[no-untyped-call] # IPython is untyped
    return None


def _rows(explanation: shap.Explanation) -> list[Any]:
    """Return the Explanations of the texts, each with one axis."""
    if not isinstance(explanation, shap.Explanation):
        return [explanation]  # refused with the checks of a row
    values = explanation.values
    has_outputs = np.ndim(values) == 2 and isinstance(explanation.output_names, (list, np.ndarray))
    is_row = np.ndim(values) == 1 and np.asarray(values).dtype.kind != "O"
    if is_row or has_outputs:
        return [explanation]
    return [explanation[row] for row in range(len(values))]


def _word_notes(
    row: shap.Explanation, level: float, threshold: float, separator: str
) -> list[tuple[bool, str]]:
    """Return for each word or phrase whether its interval contains 0, and what the mouse shows."""
    if isinstance(row, BoundedExplanation) and row.hierarchical_values is not None:
        phrases = _as_shown(row, threshold, separator)
        intervals = intervals_of(phrases, level, "text", {1: "(phrases) of each text"}, _REMEDY)
        return list(zip(intervals.contain_zero, _labels(intervals, level), strict=True))
    intervals = intervals_of(row, level, "text", {1: "(words) of each text"}, _REMEDY)
    if len(intervals.values) != len(row.data):
        raise InvalidArgumentError(
            f"plots.text needs one attribution for each word; got {len(intervals.values)} for "
            f"{len(row.data)} words."
        )
    return list(zip(intervals.contain_zero, _labels(intervals, level), strict=True))


def _as_shown(row: BoundedExplanation, threshold: float, separator: str) -> shap.Explanation:
    """Return an Explanation of the words and phrases that shap shows of a hierarchy."""
    if row.lower_bounds is None or np.ndim(row.values) != 1:
        return row  # refused with the checks of a row
    nodes, values = shown_nodes(row, threshold, separator)
    n_words = len(row.values)
    widths, errors = (np.array(tracked_of(row, name)) for name in UNIONS)
    widths[:n_words], errors[:n_words] = row.upper_bounds - row.values, row.error_std
    return shap.Explanation(
        values,
        lower_bounds=values - widths[nodes],
        upper_bounds=values + widths[nodes],
        error_std=errors[nodes],
    )


def _labels(intervals: Intervals, level: float) -> list[str]:
    """Return a text for each word: its value and interval."""
    return [
        f"{value:+.3g}; {percent(level)} interval: {lower:+.3g} to {upper:+.3g}"
        for value, lower, upper in zip(
            intervals.values, intervals.lower, intervals.upper, strict=True
        )
    ]

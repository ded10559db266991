"""The sections of a report: their contents, and how to read them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import shap

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import required_packages
from shapley_adapters.reports.call_record import CallRecord, used_versions
from shapley_adapters.reports.html_page import (
    Section,
    bullets,
    coloured_words,
    heading,
    paragraph,
    picture,
    table,
)

from .. import plots
from ..global_generator import seeded_generator
from ..plots.features import without_formulas
from ..plots.interaction_plot import draw_pairs
from ..plots.intervals import Intervals
from ..results.bounded_explanation import removed_bounds
from ..results.traces import trace_of
from ..shap_internals import copied
from .views import View

_DOTS_PER_INCH = 100
_LONGEST_NAME = 40
_MOST_DOTS = 20_000
"""Dots of a beeswarm; of more rows, some at equal distances are drawn."""


Cell = str | float

_BARS = "Error bars and intervals hold 95 % of the values that unlimited evaluations would give."

_NO_BARS = "There are no error bars: call the explainer with error_bounds=True to get them."

_UNKNOWN_BARS = (
    "There are no error bars: all standard errors are unknown (NaN), because there were too few "
    "draws. A larger max_evals gives them."
)

_MOST_FEATURES = 12
"""Features of a heat map."""


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


def overall_table(view: View) -> str:
    """Return the table of the features over all rows, the most important first."""
    values = view.explanation.values
    sizes, means = np.abs(values).mean(axis=0), values.mean(axis=0)
    header = ["Feature", "Mean size", "Mean"]
    columns: list[Any] = [sizes, means]
    if view.has_bounds:
        header.append("Mean standard error of a row")
        columns.append(np.asarray(view.explanation.error_std).mean(axis=0))
    rows: list[list[Cell]] = [
        [view.names[feature], *(float(column[feature]) for column in columns)]
        for feature in np.argsort(-sizes, kind="stable")
    ]
    return table(header, rows)


def row_table(view: View, row: int, names: list[str]) -> str:
    """Return the table of the attributions of one row, the largest first."""
    values, lower, upper, errors = view.row(row)
    data = view.row_data(row)
    header = ["Feature", "Its value", "Attribution"]
    if view.has_bounds:
        header += ["Standard error", "95 % interval"]
    rows = []
    for feature in np.argsort(-np.abs(values), kind="stable"):
        cells: list[Cell] = [names[feature], data[feature], float(values[feature])]
        if view.has_bounds:
            cells += [float(errors[feature]), interval(lower[feature], upper[feature])]
        rows.append(cells)
    return table(header, rows, n_open=15)


def pair_table(view: View) -> str:
    """Return the table of the pairs of features with the largest mean interactions."""
    values = 2 * np.abs(view.explanation.values).mean(axis=0)
    first, second = np.triu_indices(len(values), 1)
    order = np.argsort(-values[first, second], kind="stable")[:100]
    header = ["First feature", "Second feature", "Mean size of the interaction"]
    names = view.names
    rows: list[list[Cell]] = [
        [names[first[pair]], names[second[pair]], float(values[first[pair], second[pair]])]
        for pair in order
    ]
    if view.has_bounds:
        errors = 2 * np.asarray(view.explanation.error_std).mean(axis=0)
        header.append("Mean standard error of a row")
        for cells, pair in zip(rows, order, strict=True):
            cells.append(float(errors[first[pair], second[pair]]))
    return table(header, rows, n_open=15)


def interval(lower: float, upper: float) -> str:
    """Return an interval as text."""
    return f"{lower:.4g} to {upper:.4g}"


def table_sections(view: View, rows: Sequence[int], max_display: int) -> list[Section]:
    """Return the sections of a table with one output."""
    sections = []
    if view.n_rows > 1:
        sections += [_importance(view, max_display), _beeswarm(view, max_display)]
    sections.append(_single_rows(view, rows, max_display))
    trace = trace_of(view.explanation[rows[0]])
    if trace is not None and len(trace.evaluations) > 1:
        sections.append(_convergence(view, rows[0]))
    return sections


def _convergence(view: View, row: int) -> Section:
    how = (
        "Where the lines have become level and the bands narrow, more evaluations of the model "
        "would change little."
    )
    png = as_png(lambda: draw_convergence(view.explanation[row]))
    about = f"The attributions of row {row} and their intervals against the evaluations"
    of_output = f", {view.output}" if view.output else ""
    title = f"Were there enough evaluations? (row {row}{of_output})"
    return Section(title, how, [picture(png, about)])


def _importance(view: View, max_display: int) -> Section:
    how = (
        "The longer the bar, the more the feature changes the output of the model: each bar is the "
        f"mean size of its attributions over {view.n_rows:,} rows."
    )
    png = draw("bar", view.explanation, max_display)
    about = f"Mean sizes of the attributions of the most important features{_output_suffix(view)}"
    return Section(
        f"Which features matter{_output_suffix(view)}",
        how,
        [picture(png, about), overall_table(view)],
    )


def _beeswarm(view: View, max_display: int) -> Section:
    how = (
        "Each dot is a row: right of the middle the feature raises the output of the model, left "
        "of it the feature lowers it, and the colour shows whether the feature's value is high."
    )
    row_indices = evenly_chosen(view.n_rows, min(max_display, len(view.names)))
    png = draw("beeswarm", view.explanation[row_indices], max_display)
    parts = [picture(png, f"The attributions of the rows{_output_suffix(view)}")]
    if len(row_indices) < view.n_rows:
        note = f"{len(row_indices):,} of the {view.n_rows:,} rows are drawn, at equal distances."
        parts.append(paragraph(note, quiet=True))
    return Section(f"How the features act{_output_suffix(view)}", how, parts)


def _single_rows(view: View, rows: Sequence[int], max_display: int) -> Section:
    how = (
        "Read from below: the model's mean output is at the bottom, each arrow adds one feature, "
        "and the top is the output for this row."
    )
    parts = []
    for row in rows:
        output = float(view.base_values[row] + np.sum(view.explanation.values[row]))
        if view.n_rows > 1:
            parts.append(heading(f"Row {row}: output {output:.4g}"))
        png = draw("waterfall", view.explanation[row], max_display)
        about = f"The attributions of row {row}, which lead from the mean output to {output:.4g}"
        parts += [picture(png, about), row_table(view, row, view.names)]
    return Section(f"{_rows_title(rows)}{_output_suffix(view)}", how, parts)


def interaction_sections(view: View) -> list[Section]:
    """Return the section of interactions with one output."""
    how = (
        "The darker the cell, the more two features act together, beyond their effects alone; "
        "the diagonal has the effect of each feature alone."
    )
    png = draw_interactions(view.explanation, view.names, _MOST_FEATURES)
    parts = [
        picture(png, f"Mean sizes of the interactions{_output_suffix(view)}"),
        pair_table(view),
    ]
    return [Section(f"Which features act together{_output_suffix(view)}", how, parts)]


def word_sections(view: View, rows: Sequence[int]) -> list[Section]:
    """Return the section of texts with one output."""
    how = (
        "Words on red raise the output of the model, words on blue lower it, and the stronger the "
        "colour, the more."
    )
    parts = []
    for row in rows:
        values, lower, upper, _ = view.row(row)
        words = [str(word) for word in _words(view, row)]
        output = float(view.base_values[row] + np.sum(values))
        notes = [f"{value:.4g}" for value in values]
        if view.has_bounds:
            ends = zip(notes, lower, upper, strict=True)
            notes = [f"{note} ({interval(low, up)})" for note, low, up in ends]
        limit = float(np.abs(values).max(initial=0.0))
        parts += [
            heading(f"Text {row}: output {output:.4g}"),
            coloured_words([*zip(words, map(float, values), notes, strict=True)], limit),
            row_table(view, row, words),
        ]
    return [Section(f"{_rows_title(rows, 'text')}{_output_suffix(view)}", how, parts)]


def _words(view: View, row: int) -> Sequence[Any]:
    names, data = view.explanation.feature_names, view.explanation.data
    words: Sequence[Any] = names[row] if names is not None else data[row]
    return words


def image_sections(view: View, rows: Sequence[int]) -> list[Section]:
    """Return the section of images with one output."""
    how = "Red pixels raise the output of the model, and blue pixels lower it."
    parts = []
    for row in rows:
        about = f"The attributions of the pixels of image {row}"
        png = draw_image(np.asarray(view.explanation.values[row]))
        parts += [heading(f"Image {row}"), picture(png, about)]
    return [Section(f"{_rows_title(rows, 'image')}{_output_suffix(view)}", how, parts)]


def error_text(view: View) -> str:
    """Return the meaning of error bars, or why there are none."""
    if view.has_bounds:
        is_known = view.kind == "words" or has_known_bounds(view.explanation)
        return _BARS if is_known else _UNKNOWN_BARS
    removed = removed_bounds(view.explanation)
    return _NO_BARS if removed is None else f"There are no error bars: {removed}."


def computation_section(record: CallRecord | None, texts_of_errors: str) -> Section:
    """Return the section that says how the numbers were computed, to repeat them."""
    how = "With the same model, data, seed and versions, the same call gives the same numbers."
    facts = _facts(record)
    parts = [paragraph(texts_of_errors), table(["", ""], facts)]
    messages = () if record is None else record.warnings
    parts.append(heading("Warnings"))
    none = "There were none." if record else "They are not known."
    parts.append(bullets(messages) if messages else paragraph(none))
    return Section("How it was computed", how, parts)


def _facts(record: CallRecord | None) -> list[list[str | float]]:
    versions = used_versions() if record is None else record.versions
    of_versions = ", ".join(f"{name} {version}" for name, version in versions.items())
    if record is None:
        unknown = (
            "not recorded in this explanation. The explanation that the explainer returns has the "
            "record, and so do its parts if it has error bounds"
        )
        return [["The call", unknown], ["Versions now", of_versions]]
    facts: list[list[str | float]] = [
        ["Model", record.model],
        ["Method", f"{record.method} ({record.explainer})"],
        ["Options", ", ".join(f"{k}={v}" for k, v in record.options.items()) or "the defaults"],
        ["Evaluations", record.spent or _evaluations(record.evaluations)],
        ["Seed", "none" if record.seed is None else str(record.seed)],
        ["Date", f"{record.date}, in {record.seconds:.3g} seconds"],
        ["Versions", of_versions],
    ]
    if record.choice:
        facts.insert(2, ["Choice", record.choice])
    return facts


def _evaluations(counts: tuple[int, int, int] | None) -> str:
    if counts is None:
        return "not counted"
    least, most, total = counts
    per_row = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f"{per_row} for each row, {total:,} in all"


def _rows_title(rows: Sequence[int], noun: str = "row") -> str:
    return f"One {noun}" if len(rows) == 1 else f"Some {noun}s, one by one"


def _output_suffix(view: View) -> str:
    return f" ({view.output})" if view.output else ""

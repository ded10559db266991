"""A report of an Explanation: one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import overload

import numpy as np

from shapley_adapters.arguments import checked_count, checked_path
from shapley_adapters.atomic_files import replaced
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.reports.call_record import CallRecord
from shapley_adapters.reports.html_page import Section, html_page

from ..argument_types import Explanation
from ..plots.features import without_surrogates
from .sections import (
    computation_section,
    error_text,
    image_sections,
    interaction_sections,
    table_sections,
    word_sections,
)
from .views import View, views_of

_MOST_OUTPUTS = 3
"""Outputs of a report; of more outputs, those with the largest attributions are shown."""


@overload
def report(
    explanation: Explanation,
    path: None = None,
    *,
    title: str = ...,
    rows: int | Sequence[int] = ...,
    max_display: int = ...,
    interactions: Explanation | None = ...,
) -> str: ...


@overload
def report(
    explanation: Explanation,
    path: str | Path,
    *,
    title: str = ...,
    rows: int | Sequence[int] = ...,
    max_display: int = ...,
    interactions: Explanation | None = ...,
) -> None: ...


def report(
    explanation: Explanation,
    path: str | Path | None = None,
    *,
    title: str = "What the model does",
    rows: int | Sequence[int] = 3,
    max_display: int = 15,
    interactions: Explanation | None = None,
) -> str | None:
    """Write an Explanation as one HTML page: plots, tables, and how it was computed.

    The page needs no network, no scripts and no other files, so that it can be sent by mail. Error
    bars are drawn where the Explanation has bounds. Needs matplotlib.

    Parameters
    ----------
    explanation : shap.Explanation
        Any Explanation of tables, texts, images or interactions. Of more than three outputs, those
        with the largest attributions are shown; `explanation[..., k]` reports one of them.
    path : str or Path, optional
        The file to write. By default the page is returned.
    title : str
        The title of the page.
    rows : int or sequence of int
        The rows to show one by one: their indices, or their number. A number chooses rows from the
        smallest to the largest output of the model.
    max_display : int
        How many features the plots show. The tables have all features.
    interactions : shap.Explanation, optional
        The interactions of the same rows, `explainer(X, interactions=True)`, for a heat map.

    Returns
    -------
    str or None
        The page if `path` is None, else None.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If an argument cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> explainer = shap_ext.OddGPExplainer(model, np.zeros((1, 3)), seed=0)
    >>> page = shap_ext.report(explainer(np.ones((2, 3)), error_bounds=True))
    >>> "How it was computed" in page
    True
    """
    file = None if path is None else checked_path("path", path)
    if file is not None and file.is_dir():
        raise InvalidArgumentError(
            f"path={str(path)!r} is a folder. Pass the path of a file, such as 'report.html'."
        )
    checked_count("max_display", max_display)
    views, n_outputs = views_of(explanation, _MOST_OUTPUTS)
    sections: list[Section] = []
    for view in views:
        sections += _sections(view, rows, max_display)
    if interactions is not None:
        sections += _interaction_sections(interactions)
    record = getattr(explanation, "call", None)
    sections.append(computation_section(record, error_text(views[0])))
    page = without_surrogates(html_page(title, _summary(views, n_outputs, record), sections))
    if file is None:
        return page
    with replaced(file) as part:
        part.write_text(page, encoding="utf-8")
    return None


def _sections(view: View, rows: int | Sequence[int], max_display: int) -> list[Section]:
    """Return the sections of one output."""
    if view.kind == "interactions":
        return interaction_sections(view)
    row_indices = _chosen_rows(view, rows)
    if view.kind == "words":
        return word_sections(view, row_indices)
    if view.kind == "images":
        return image_sections(view, row_indices)
    return table_sections(view, row_indices, max_display)


def _interaction_sections(explanation: Explanation) -> list[Section]:
    views, _ = views_of(explanation, _MOST_OUTPUTS)
    if views[0].kind != "interactions":
        raise InvalidArgumentError(
            f"interactions must hold interactions, (R, M, M) or (R, M, M, K); its values have the "
            f"shape {np.shape(explanation.values)}. explainer(X, interactions=True) returns them."
        )
    return [section for view in views for section in interaction_sections(view)]


def _chosen_rows(view: View, rows: int | Sequence[int]) -> list[int]:
    """Return the indices of the rows to show one by one."""
    if isinstance(rows, (bool, str)) or not isinstance(
        rows, (int, np.integer, Sequence, np.ndarray)
    ):
        raise InvalidArgumentTypeError(
            f"rows must be a number of rows or a list of their indices; got {type(rows).__name__}."
        )
    if not isinstance(rows, (int, np.integer)):
        if not len(rows):
            raise InvalidArgumentError(
                "rows is empty; a report shows at least one row. Leave rows out for three of them."
            )
        return [_checked_row(row, view.n_rows) for row in rows]
    n_chosen = min(checked_count("rows", rows), view.n_rows)
    sums = [float(np.sum(values)) for values in view.explanation.values]
    order = np.argsort(view.base_values + np.array(sums), kind="stable")
    positions = np.linspace(0, view.n_rows - 1, n_chosen).round().astype(int)
    return [int(row) for row in order[positions]]


def _checked_row(row: object, n_rows: int) -> int:
    index = checked_count("rows", row, minimum=0)
    if index >= n_rows:
        raise InvalidArgumentError(
            f"rows has the index {index}, but the explanation has {n_rows} rows, counted from 0."
        )
    return index


def _summary(views: Sequence[View], n_outputs: int, record: CallRecord | None) -> str:
    """Return the first sentences of the page."""
    view = views[0]
    nouns = {"table": "row", "interactions": "row", "words": "text", "images": "image"}
    noun = nouns[view.kind] + ("" if view.n_rows == 1 else "s")
    model = f"the model {record.model}" if record else "a model"
    text = f"This page explains the outputs of {model} for {view.n_rows:,} {noun}"
    if view.kind == "table":
        text += f" of {len(view.names):,} features"
    text += (
        ". An attribution says how much a feature moves the output of a row away from the mean "
        "output; the attributions of a row and the mean output sum to the output."
    )
    if n_outputs > len(views):
        output_names = ", ".join(view.output for view in views)
        text += f" Of the {n_outputs} outputs, those with the largest attributions follow: "
        text += f"{output_names}."
    return text

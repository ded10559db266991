"""The tables of a report."""

from __future__ import annotations

from typing import Any

import numpy as np

from shapley_adapters.reports.html_page import table

from .views import View

Cell = str | float


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

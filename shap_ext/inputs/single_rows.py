"""A single row instead of a table: a Series, or an object with one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..argument_types import Dtype


def table_of_row(row: Any, dtypes: pd.Series | None = None) -> Any:
    """Return a table with one row, or None if `row` is not a single row of cells.

    Parameters
    ----------
    row : object
        A Series becomes a DataFrame. Arrays, tensors and lists of one dimension become arrays.
    dtypes : Series, optional
        The column types of the background. A Series has one type for all cells, so that its cells
        are converted to these types, unless this changes a value.
    """
    if isinstance(row, pd.Series):
        frame = pd.DataFrame([row.tolist()], columns=row.index)
        return frame if dtypes is None else _in_types(frame, dtypes)
    if hasattr(row, "detach"):
        return row[None] if row.ndim == 1 else None
    is_array = isinstance(row, np.ndarray)
    is_flat = row.ndim == 1 if is_array else isinstance(row, (list, tuple))
    if not is_flat or len(row) == 0 or any(map(_holds_more, row)):
        return None
    return row[None] if is_array else [row]


def _holds_more(cell: object) -> bool:
    """Return whether a cell is itself a row."""
    return hasattr(cell, "__len__") and not isinstance(cell, (str, bytes))


def _in_types(frame: pd.DataFrame, dtypes: pd.Series) -> pd.DataFrame:
    if list(frame.columns) != list(dtypes.index):
        return frame  # refused later, with the names
    columns = [_in_type(frame.iloc[:, i], dtypes.iloc[i]) for i in range(len(dtypes))]
    return pd.concat(columns, axis=1)


def _in_type(column: pd.Series, dtype: Dtype) -> pd.Series:
    """Convert a column of one cell to a type; return it unchanged if this changes the value."""
    try:
        converted = column.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return column
    before, after = column.iloc[0], converted.iloc[0]
    is_kept = (pd.isna(before) and pd.isna(after)) or bool(before == after)
    return converted if is_kept else column

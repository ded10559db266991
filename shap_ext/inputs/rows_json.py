"""Exact conversion of rows to JSON and back. Files store rows to recognise the model by them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from ..argument_types import Table

_MOST_NUMBERS = 200_000
"""Rows with more numbers in total are not stored."""

_MOST_BYTES = 2**26
"""Largest size of an array, so that a changed type in a file cannot use much memory."""


def rows_as_json(rows: Table) -> dict[str, Any] | None:
    """Convert rows, an array or DataFrame, to JSON; None if this is impossible.

    None also if there are too many numbers for a file.
    """
    if np.size(rows) > _MOST_NUMBERS:
        return None
    encoded: dict[str, Any]
    if isinstance(rows, pd.DataFrame):
        names = list(rows.columns)
        columns = [_column_as_json(rows.iloc[:, index]) for index in range(len(names))]
        encoded = {"names": names, "columns": columns}
    else:
        array = np.asarray(rows)
        encoded = {"array": array.tolist(), "dtype": array.dtype.str}
    try:
        json.dumps(encoded)
    except TypeError:
        return None
    return encoded


def _column_as_json(column: pd.Series[Any]) -> dict[str, Any]:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _column_as_json(dtype.categories.to_series())
        codes = column.cat.codes.tolist()
        return {"codes": codes, "categories": categories, "ordered": bool(dtype.ordered)}
    if dtype.kind in "mM":
        column = column.astype(str)
    # pandas.NA is not JSON, so that None replaces it; Python writes NaN.
    values = [None if value is pd.NA else value for value in column.tolist()]
    return {"values": values, "dtype": str(dtype)}


def rows_of_json(encoded: Any, path: str, n_rows: int) -> Any:
    """Convert JSON of the file at `path` to rows, the inverse of `rows_as_json`.

    Raises
    ------
    InvalidArgumentError
        If it does not hold `n_rows` rows.
    """
    from shapley_adapters.amortized.storage import refusing

    with refusing(path, "explainer"):
        if "array" in encoded:
            dtype, rows = np.dtype(encoded["dtype"]), np.array(encoded["array"], dtype=object)
            if dtype.itemsize * rows.size > _MOST_BYTES:
                raise ValueError("its array is too large")
            rows = rows.astype(dtype)
        else:
            rows = pd.concat([_column_of_json(column) for column in encoded["columns"]], axis=1)
        if len(rows) != n_rows:
            raise ValueError(f"it holds {len(rows)} instead of {n_rows} rows")
        return named_rows(rows, encoded["names"]) if "names" in encoded else rows


def named_rows(rows: Any, names: Any) -> pd.DataFrame:
    """Return rows, (R, C), as a frame, with the names of columns that a file holds."""
    if not isinstance(names, list):
        raise TypeError("its names are no list")
    # JSON stores tuples, the names of columns with several levels, as lists.
    labels = [tuple(name) if isinstance(name, list) else name for name in names]
    hash(tuple(labels))  # pandas also accepts unhashable objects, which are not names
    frame = pd.DataFrame(rows)
    frame.columns = pd.Index(labels)
    return frame


def _column_of_json(encoded: dict[str, Any]) -> pd.Series[Any]:
    if "codes" in encoded:
        categories = pd.Index(_column_of_json(encoded["categories"]))
        codes = pd.Categorical.from_codes(encoded["codes"], categories, ordered=encoded["ordered"])
        return pd.Series(codes)
    return pd.Series(encoded["values"], dtype=encoded["dtype"])

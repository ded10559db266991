"""Rows as JSON, as exactly as they were: by them files tell whether a model is the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd


def rows_as_json(rows: Any) -> dict[str, Any] | None:
    """Return rows, an array or DataFrame, as what JSON can hold; None where it cannot."""
    if isinstance(rows, pd.DataFrame):
        made: dict[str, Any] = {
            "columns": [
                [name, _column_as_json(rows.iloc[:, place])]
                for place, name in enumerate(rows.columns)
            ]
        }
    else:
        array = np.asarray(rows)
        made = {"array": array.tolist(), "dtype": array.dtype.str}
    try:
        json.dumps(made)
    except TypeError:
        return None
    return made


def rows_of_json(made: dict[str, Any]) -> Any:
    """Undo `rows_as_json`."""
    if "array" in made:
        return np.array(made["array"], dtype=made["dtype"])
    columns = [_column_of_json(column) for _, column in made["columns"]]
    frame = pd.concat(columns, axis=1)
    frame.columns = columns_of_json([name for name, _ in made["columns"]])
    return frame


def columns_of_json(names: Sequence[Any]) -> pd.Index[Any]:
    """Return names of columns as an index, of several levels where they are lists or tuples."""
    # JSON has no tuples, which name columns of several levels.
    return pd.Index([tuple(name) if isinstance(name, list) else name for name in names])


def _column_as_json(column: pd.Series[Any]) -> dict[str, Any]:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _column_as_json(dtype.categories.to_series())
        codes = column.cat.codes.tolist()
        return {"codes": codes, "categories": categories, "ordered": bool(dtype.ordered)}
    if dtype.kind in "mM":
        return {"times": column.astype("int64").tolist(), "dtype": str(dtype)}
    # pandas' own mark of what is missing is no JSON; NaN is, for Python.
    values = [None if one is pd.NA else one for one in column.tolist()]
    return {"values": values, "dtype": str(dtype)}


def _column_of_json(made: dict[str, Any]) -> pd.Series[Any]:
    if "codes" in made:
        categories = pd.Index(_column_of_json(made["categories"]))
        codes = pd.Categorical.from_codes(made["codes"], categories, ordered=made["ordered"])
        return pd.Series(codes)
    if "times" in made:
        return pd.Series(made["times"], dtype="int64").astype(made["dtype"])
    return pd.Series(made["values"], dtype=made["dtype"])

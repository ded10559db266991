"""Exact conversion of rows to JSON and back. Files store rows to recognise the model by them."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from shapley_adapters.errors import InvalidArgumentError

from ..argument_types import Table

_MOST_NUMBERS = 200_000
"""Rows with more numbers in total are not stored."""

_MOST_BYTES = 2**26
"""Largest size of an array, so that a changed type in a file cannot use much memory."""

_DTYPES = re.compile(
    r"object|str|string(\[\w+\])?|bool(ean)?|[uU]?[iI]nt(8|16|32|64)|[fF]loat(16|32|64)"
    r"|\w+\[pyarrow\]|Sparse\[\w+, [\w.+-]+\]"
)
_TIMES = re.compile(r"(datetime|timedelta)64\[\w{1,3}(, [\w/+:-]{1,40})?\]")

_CANNOT_BE_MADE = (
    *(ArithmeticError, AttributeError, ImportError, LookupError),
    *(RuntimeError, TypeError, ValueError),
)
"""Errors of NumPy and pandas for values that do not fit their type."""


def rows_as_json(rows: Table) -> dict[str, Any] | None:
    """Convert rows, an array or DataFrame, to JSON; None if this is impossible.

    None also if there are too many numbers for a file.
    """
    if np.size(rows) > _MOST_NUMBERS:
        return None
    try:
        encoded = _frame_as_json(rows) if isinstance(rows, pd.DataFrame) else _array_as_json(rows)
        json.dumps(encoded)
    except TypeError:
        return None
    return encoded


def _array_as_json(rows: Table) -> dict[str, Any]:
    array = np.asarray(rows)
    return {"array": array.tolist(), "dtype": array.dtype.str}


def _frame_as_json(rows: pd.DataFrame) -> dict[str, Any]:
    columns = [
        [name, _column_as_json(rows.iloc[:, index])] for index, name in enumerate(rows.columns)
    ]
    return {"columns": columns}


def rows_of_json(encoded: Any, path: str = "the file", n_rows: int | None = None) -> Any:
    """Convert JSON of the file at `path` to rows, the inverse of `rows_as_json`.

    Raises
    ------
    InvalidArgumentError
        If it does not hold rows, or not `n_rows` of them.
    """
    try:
        rows = _array_of_json(encoded) if "array" in encoded else _frame_of_json(encoded)
    except _CANNOT_BE_MADE as error:
        raise InvalidArgumentError(
            f"{path} cannot be used: its header does not hold valid rows ({error}). The file was "
            "changed after it was saved; train and save again."
        ) from error
    if n_rows is not None and len(rows) != n_rows:
        raise InvalidArgumentError(
            f"{path} cannot be used: its header holds {len(rows)} rows and its tensors {n_rows}. "
            "Train and save again."
        )
    return rows


def _array_of_json(encoded: dict[str, Any]) -> Any:
    dtype = np.dtype(_text(encoded, "dtype"))
    array = np.array(encoded["array"], dtype=object)
    if dtype.kind not in "biufSUO" or dtype.itemsize * array.size > _MOST_BYTES or array.ndim < 1:
        raise ValueError(f"dtype {reprlib.repr(encoded['dtype'])}")
    return array.astype(dtype)


def _frame_of_json(encoded: dict[str, Any]) -> pd.DataFrame:
    columns = [_column_of_json(column) for _, column in encoded["columns"]]
    if len({len(column) for column in columns}) != 1:
        raise ValueError("columns of different lengths")
    frame = pd.concat(columns, axis=1)
    frame.columns = columns_of_json([name for name, _ in encoded["columns"]])
    return frame


def columns_of_json(names: Sequence[Any]) -> pd.Index[Any]:
    """Return names of columns as an index; lists or tuples are names with several levels."""
    # JSON stores tuples, the names of columns with several levels, as lists.
    labels = [tuple(name) if isinstance(name, list) else name for name in names]
    hash(tuple(labels))  # pandas also accepts unhashable objects, which are not names
    return pd.Index(labels)


def named_rows(rows: Table, names: Any) -> pd.DataFrame:
    """Return rows, (R, C), as a frame, with names of columns from a file.

    Raises
    ------
    InvalidArgumentError
        If the names are invalid, or their number is not C.
    """
    if isinstance(names, list) and (len(rows), len(names)) == np.shape(rows):
        try:
            return pd.DataFrame(rows, columns=columns_of_json(names))
        except _CANNOT_BE_MADE as error:
            names = error
    raise InvalidArgumentError(
        f"The file cannot be used: its header does not name the columns of rows of shape "
        f"{np.shape(rows)[1:]}, but holds {reprlib.repr(names)}. It was changed after it was "
        "saved; train and save again."
    )


def _text(encoded: dict[str, Any], name: str) -> str:
    text = encoded[name]
    if not isinstance(text, str):
        raise TypeError(f"{name} {reprlib.repr(text)}")
    return text


def _column_as_json(column: pd.Series[Any]) -> dict[str, Any]:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _column_as_json(dtype.categories.to_series())
        codes = column.cat.codes.tolist()
        return {"codes": codes, "categories": categories, "ordered": bool(dtype.ordered)}
    if dtype.kind in "mM":
        return {"times": column.astype("int64").tolist(), "dtype": str(dtype)}
    if not _DTYPES.fullmatch(str(dtype)):
        raise TypeError(f"columns of {dtype} are not stored")
    # pandas.NA is not JSON, so that None replaces it; Python writes NaN.
    values = [None if value is pd.NA else value for value in column.tolist()]
    return {"values": values, "dtype": str(dtype)}


def _column_of_json(encoded: dict[str, Any]) -> pd.Series[Any]:
    if "codes" in encoded:
        categories = encoded["categories"]
        if "codes" in categories:
            raise ValueError("categories of categories")
        index = pd.Index(_column_of_json(categories))
        codes = pd.Categorical.from_codes(encoded["codes"], index, ordered=encoded["ordered"])
        return pd.Series(codes)
    dtype = _text(encoded, "dtype")
    pattern = _TIMES if "times" in encoded else _DTYPES
    if not pattern.fullmatch(dtype):
        raise ValueError(f"dtype {reprlib.repr(dtype)}")
    if "times" in encoded:
        return pd.Series(encoded["times"], dtype="int64").astype(dtype)
    if not isinstance(encoded["values"], list):
        raise TypeError(f"values {reprlib.repr(encoded['values'])}")
    return pd.Series(encoded["values"], dtype=dtype)

"""Rows as JSON, as exactly as they were: by them files tell whether a model is the same."""

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
"""A file keeps no rows of more numbers in all."""

_MOST_BYTES = 2**26
"""Of an array, by which a changed type cannot take much memory."""

_DTYPES = re.compile(
    r"object|str|string(\[\w+\])?|bool(ean)?|[uU]?[iI]nt(8|16|32|64)|[fF]loat(16|32|64)"
    r"|\w+\[pyarrow\]|Sparse\[\w+, [\w.+-]+\]"
)
_TIMES = re.compile(r"(datetime|timedelta)64\[\w{1,3}(, [\w/+:-]{1,40})?\]")

_CANNOT_BE_MADE = (
    *(ArithmeticError, AttributeError, ImportError, LookupError),
    *(RuntimeError, TypeError, ValueError),
)
"""What NumPy and pandas raise for values that do not fit their type."""


def rows_as_json(rows: Table) -> dict[str, Any] | None:
    """Return rows, an array or DataFrame, as what JSON can hold; None where it cannot.

    None, too, where they are more than a file should hold.
    """
    if np.size(rows) > _MOST_NUMBERS:
        return None
    try:
        made = _frame_as_json(rows) if isinstance(rows, pd.DataFrame) else _array_as_json(rows)
        json.dumps(made)
    except TypeError:
        return None
    return made


def _array_as_json(rows: Table) -> dict[str, Any]:
    array = np.asarray(rows)
    return {"array": array.tolist(), "dtype": array.dtype.str}


def _frame_as_json(rows: pd.DataFrame) -> dict[str, Any]:
    columns = [
        [name, _column_as_json(rows.iloc[:, place])] for place, name in enumerate(rows.columns)
    ]
    return {"columns": columns}


def rows_of_json(made: Any, path: str = "the file", n_rows: int | None = None) -> Any:
    """Undo `rows_as_json`.

    Raises
    ------
    InvalidArgumentError
        If `made`, which stands in the file at `path`, holds no rows, or others than `n_rows`.
    """
    try:
        rows = _array_of_json(made) if "array" in made else _frame_of_json(made)
    except _CANNOT_BE_MADE as error:
        raise InvalidArgumentError(
            f"{path} cannot be used: the rows in its header are none ({error}). The file was "
            "changed after it was saved; train and save again."
        ) from error
    if n_rows is not None and len(rows) != n_rows:
        raise InvalidArgumentError(
            f"{path} cannot be used: its header holds {len(rows)} rows and its tensors {n_rows}. "
            "Train and save again."
        )
    return rows


def _array_of_json(made: dict[str, Any]) -> Any:
    dtype = np.dtype(_text(made, "dtype"))
    array = np.array(made["array"], dtype=object)
    if dtype.kind not in "biufSUO" or dtype.itemsize * array.size > _MOST_BYTES or array.ndim < 1:
        raise ValueError(f"dtype {reprlib.repr(made['dtype'])}")
    return array.astype(dtype)


def _frame_of_json(made: dict[str, Any]) -> pd.DataFrame:
    columns = [_column_of_json(column) for _, column in made["columns"]]
    if len({len(column) for column in columns}) != 1:
        raise ValueError("columns of different lengths")
    frame = pd.concat(columns, axis=1)
    frame.columns = columns_of_json([name for name, _ in made["columns"]])
    return frame


def columns_of_json(names: Sequence[Any]) -> pd.Index[Any]:
    """Return names of columns as an index, of several levels where they are lists or tuples."""
    # JSON has no tuples, which name columns of several levels.
    made = [tuple(name) if isinstance(name, list) else name for name in names]
    hash(tuple(made))  # pandas takes objects, which name nothing
    return pd.Index(made)


def named_rows(rows: Table, names: Any) -> pd.DataFrame:
    """Return rows, (R, C), as a frame with the names of its columns, as a file has them.

    Raises
    ------
    InvalidArgumentError
        If these are no names of as many columns.
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


def _text(made: dict[str, Any], name: str) -> str:
    found = made[name]
    if not isinstance(found, str):
        raise TypeError(f"{name} {reprlib.repr(found)}")
    return found


def _column_as_json(column: pd.Series[Any]) -> dict[str, Any]:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _column_as_json(dtype.categories.to_series())
        codes = column.cat.codes.tolist()
        return {"codes": codes, "categories": categories, "ordered": bool(dtype.ordered)}
    if dtype.kind in "mM":
        return {"times": column.astype("int64").tolist(), "dtype": str(dtype)}
    if not _DTYPES.fullmatch(str(dtype)):
        raise TypeError(f"columns of {dtype} are not kept")
    # pandas' own mark of what is missing is no JSON; NaN is, for Python.
    values = [None if one is pd.NA else one for one in column.tolist()]
    return {"values": values, "dtype": str(dtype)}


def _column_of_json(made: dict[str, Any]) -> pd.Series[Any]:
    if "codes" in made:
        categories = made["categories"]
        if "codes" in categories:
            raise ValueError("categories of categories")
        index = pd.Index(_column_of_json(categories))
        codes = pd.Categorical.from_codes(made["codes"], index, ordered=made["ordered"])
        return pd.Series(codes)
    dtype = _text(made, "dtype")
    pattern = _TIMES if "times" in made else _DTYPES
    if not pattern.fullmatch(dtype):
        raise ValueError(f"dtype {reprlib.repr(dtype)}")
    if "times" in made:
        return pd.Series(made["times"], dtype="int64").astype(dtype)
    if not isinstance(made["values"], list):
        raise TypeError(f"values {reprlib.repr(made['values'])}")
    return pd.Series(made["values"], dtype=dtype)

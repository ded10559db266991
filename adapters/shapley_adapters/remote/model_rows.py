"""Rows of a model's arguments, whatever holds them."""

from __future__ import annotations

import sys
from collections.abc import Container, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ..array_types import IntArray
from ..errors import InvalidArgumentTypeError
from ..games.fingerprints import fingerprint
from ..torch_support.tensor_arrays import array_of, is_tensor


def length_of(value: Any) -> int | None:
    """Return the number of entries of an argument; None if it has none, or is a text."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    return len(value) if isinstance(value, (list, tuple)) else None


def n_rows_of(inputs: Sequence[Any]) -> int:
    """Return the number of rows, which is that of the first argument."""
    n_rows = length_of(inputs[0]) if inputs else None
    if n_rows is None:
        found = type(inputs[0]).__name__ if inputs else "nothing"
        raise InvalidArgumentTypeError(
            f"A RemoteModel takes rows as its first argument, such as an array; got {found}."
        )
    return n_rows


def rows_at(inputs: Sequence[Any], n_rows: int, rows: IntArray) -> list[Any]:
    """Return the arguments of some rows; those without an entry for each row are passed on."""
    return [_entries(value, rows) if length_of(value) == n_rows else value for value in inputs]


def _entries(value: Any, rows: IntArray) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([value[row] for row in rows])
    if hasattr(value, "iloc"):
        return value.iloc[rows]
    return value[rows]  # arrays, sparse matrices and tensors


def keys_of_rows(name: str, inputs: Sequence[Any], n_rows: int) -> list[bytes]:
    """Return a digest of each row, with the types of its numbers, and of a name."""
    parts = [
        _typed_rows(value) if length_of(value) == n_rows else [value] * n_rows for value in inputs
    ]
    return [fingerprint(name, *row) for row in zip(*parts, strict=True)]


def new_rows(keys: Sequence[bytes], known: Container[bytes]) -> IntArray:
    """Return the rows to ask for: the first of each key that is not known."""
    first = {key: row for row, key in reversed(list(enumerate(keys)))}
    return np.sort([row for key, row in first.items() if key not in known]).astype(np.intp)


def parts_of(rows: IntArray, size: int) -> list[IntArray]:
    """Return rows in parts of a size, one for each call."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _typed_rows(value: Any) -> Any:
    """Return an argument as something whose entries are rows, with the type of its numbers."""
    if hasattr(value, "iloc"):
        names = list(value.columns) if hasattr(value, "columns") else []
        return [[names, list(row)] for row in value.to_numpy(dtype=object).reshape(len(value), -1)]
    if scipy.sparse.issparse(value):
        value = value.toarray()
    array = array_of(value) if is_tensor(value) else value
    dtype: Any = getattr(array, "dtype", "")
    # NumPy's types of texts hold the length of the longest one, which is another row's.
    name = dtype.kind if getattr(dtype, "kind", "") in ("U", "S") else str(dtype)
    return [[name, row] for row in array]


def joined(outputs: Sequence[Any]) -> Any:
    """Return the outputs of parts of the rows together."""
    first = outputs[0]
    if is_tensor(first):
        return sys.modules["torch"].cat(list(outputs))
    pandas = sys.modules.get("pandas")  # whoever has a frame has loaded it
    if pandas is not None and isinstance(first, (pandas.DataFrame, pandas.Series)):
        return pandas.concat(outputs)
    if isinstance(first, (list, tuple)):
        return [entry for output in outputs for entry in output]
    return np.concatenate(outputs)

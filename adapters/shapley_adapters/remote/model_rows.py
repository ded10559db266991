"""Rows of a model's arguments, whatever holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..array_types import IntArray
from ..errors import InvalidArgumentTypeError
from ..torch_support.tensor_arrays import is_tensor, joined_tensors


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


def joined(outputs: Sequence[Any]) -> Any:
    """Return the outputs of parts of the rows together."""
    first = outputs[0]
    if is_tensor(first):
        return joined_tensors(outputs)
    if isinstance(first, (pd.DataFrame, pd.Series)):
        return pd.concat(outputs)
    if isinstance(first, (list, tuple)):
        return [entry for output in outputs for entry in output]
    return np.concatenate(outputs)

"""Columns of data, checked and converted to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..array_types import FloatArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError


def checked_numbers(values: npt.NDArray[Any], names: Sequence[Any] | None) -> FloatArray:
    """Return data, (N, D), as finite numbers.

    Raises
    ------
    InvalidArgumentTypeError
        If a column has values that are not numbers.
    InvalidArgumentError
        If a value is missing or infinite.
    """
    columns = values.T if values.dtype.kind == "O" else [values]
    for place, column in enumerate(columns):
        try:
            np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentTypeError(
                f"data holds values that are not numbers, such as {column.flat[0]!r} in "
                f"{named_column(place, names)}. Categorical and Forest take categories; the "
                "other distributions need data of numbers only."
            ) from error
    numbers = np.array(values, dtype=np.float64)
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        row, column = bad[0]
        raise InvalidArgumentError(
            f"data holds {numbers[row, column]} in row {row}, {named_column(column, names)}. The "
            "distribution is fitted to complete rows: drop the others, or fill them in."
        )
    return numbers


def named_column(column: int, names: Sequence[Any] | None) -> str:
    """Return a column for messages: by its name, or by its index."""
    return f"column {column}" if names is None else f"column {names[column]!r}"

"""Rows of frames as arrays, for models of arrays and tensors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_numeric_dtype

from ..errors import InvalidArgumentError


def with_floats(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose columns of nullable numbers and booleans, such as Int64, are floats.

    Nulls are NaN. Columns without nulls are converted, too: each batch of a table gives the model
    the same type.
    """
    frame = frame.copy(deep=False)
    for name, dtype in frame.dtypes.items():
        if not isinstance(dtype, np.dtype) and is_numeric_dtype(dtype):
            frame[name] = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return frame


def floats_from_frame(frame: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Return the rows of a frame as floats, with NaN for nulls.

    Raises
    ------
    InvalidArgumentError
        If a column holds something else; the message names it.
    """
    columns = np.empty(frame.shape)
    for index, name in enumerate(frame.columns):
        column = frame.iloc[:, index]
        try:
            columns[:, index] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"Column {name!r} holds {column.dtype}, which cannot be read as numbers. Encode "
                "it as numbers, or name the columns to explain by features=."
            ) from error
    return columns

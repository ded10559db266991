"""Tables of polars, pyarrow and other packages as frames of pandas, and frames as arrays."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from .errors import InvalidArgumentError, InvalidArgumentTypeError, required_packages, warn_user

_READABLE = "numbers, booleans, texts, categories, durations and times without a time zone"


def pandas_frame(data: Any, name: str) -> Any:
    """Return a table of another package as a pandas frame; anything else unchanged.

    Rows and columns keep their order. Integers and booleans with nulls become floats with NaN.

    Parameters
    ----------
    data : object
        What the user passed: a frame of polars, a table of pyarrow, another frame that narwhals
        reads, or an object with `__arrow_c_stream__` or `__dataframe__`.
    name : str
        The argument, for messages.

    Raises
    ------
    InvalidArgumentTypeError
        If it is a lazy frame, or a column has a type that pandas lacks, such as a date.
    """
    is_plain = isinstance(data, (pd.DataFrame, pd.Series, np.ndarray, list, tuple))
    frame = None if is_plain else narwhals_frame(data, name)
    if frame is None:
        return data
    if len(set(frame.columns)) < len(frame.columns):
        raise InvalidArgumentError(f"{name} has several columns of one name: {frame.columns}.")
    columns = {column: _pandas_column(frame[column], name) for column in frame.columns}
    return pd.DataFrame(columns, index=range(len(frame)))


def narwhals_frame(data: Any, name: str) -> Any:
    """Return a table of another package as a frame of narwhals; None if it is anything else."""
    if isinstance(data, type):
        return None
    frame = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        warn_user(f"{name} is a lazy frame, which is collected. Pass {name}.collect().")
        frame = frame.collect()
    if isinstance(frame, nw.LazyFrame):
        raise InvalidArgumentTypeError(
            f"{name} is a lazy frame ({type_name(data)}), whose rows are not yet known. Pass the "
            "result of compute() in Dask, toPandas() in Spark, or collect()."
        )
    if isinstance(frame, nw.DataFrame):
        return frame
    is_table = not isinstance(frame, nw.Series) and hasattr(data, "__dataframe__")
    is_stream = not isinstance(frame, nw.Series) and hasattr(data, "__arrow_c_stream__")
    if not is_table and not is_stream:
        return None
    with required_packages(f"{name}: a {type_name(data)} is read by pyarrow", extra="arrow"):
        import pyarrow as pa
        from pyarrow.interchange import from_dataframe
    try:
        return nw.from_native(pa.table(data) if is_stream else from_dataframe(data))
    except (TypeError, ValueError, NotImplementedError, RuntimeError, pa.ArrowException) as error:
        raise InvalidArgumentTypeError(
            f"{name}: pyarrow cannot read this {type_name(data)} as a table: {error}. Pass a "
            "DataFrame."
        ) from error


def frame_like(frame: pd.DataFrame, example: nw.DataFrame[Any]) -> Any:
    """Return a pandas frame as a frame of the package of a frame of narwhals.

    Columns have the types of the example's columns of the same names; others those of the pandas
    frame. Missing cells are null.
    """
    schema, backend = example.schema, example.implementation
    columns = {
        str(name): _native_column(str(name), column, schema.get(str(name)), backend)
        for name, column in frame.items()
    }
    return nw.from_dict(columns).to_native()


def _native_column(name: str, column: pd.Series, dtype: Any, backend: Any) -> Any:
    """Return a column of pandas as a series of narwhals, of a type if one is given."""
    if is_numeric_dtype(column):
        values = column.to_numpy()
        numbers = nw.new_series(name, values, backend=backend)
        if np.isnan(values).any():  # else the filling would take most of the time
            numbers = numbers.fill_nan(None)
        return numbers if dtype is None or numbers.dtype == dtype else numbers.cast(dtype)
    if isinstance(dtype, nw.Enum):  # rows may have categories that the example lacks
        dtype = nw.Enum(list(map(str, column.cat.categories)))
    kind = nw.String() if isinstance(column.dtype, pd.CategoricalDtype) else None
    with_none = [None if pd.isna(cell) else cell for cell in column.tolist()]
    cells = nw.new_series(name, with_none, kind, backend=backend)
    return cells if dtype is None else cells.cast(dtype)


def _pandas_column(column: Any, name: str) -> Any:
    """Return a column as pandas would store it: an array, a list or a categorical."""
    dtype = column.dtype
    if (dtype.is_numeric() and not dtype.is_decimal()) or dtype == nw.Boolean:
        has_nulls = column.null_count() > 0
        if has_nulls and not dtype.is_float():
            column = column.cast(nw.Float64)
        return np.array(column.to_numpy())
    if isinstance(dtype, nw.Enum):
        return pd.Categorical(column.to_list(), categories=list(dtype.categories))
    if isinstance(dtype, nw.Categorical):
        return pd.Categorical(column.to_list())
    if isinstance(dtype, nw.String):
        return pd.Series(column.to_list(), dtype=pd.Series(["text"]).dtype)
    is_time = isinstance(dtype, nw.Datetime) and dtype.time_zone is None
    if is_time or isinstance(dtype, nw.Duration):
        return np.array(column.to_numpy())
    if isinstance(dtype, nw.Unknown) and column.null_count() == len(column):
        return np.full(len(column), np.nan)
    raise InvalidArgumentTypeError(
        f"{name}: column {column.name!r} holds {dtype}, a type that the columns of pandas lack, "
        f"and masked rows are made of these. Columns may hold {_READABLE}; cast it to one of them, "
        "or leave it out."
    )


def type_name(data: object) -> str:
    """Return the name of an object's type, after that of its package if it is from one."""
    kind = type(data)
    if kind.__module__ == "builtins":
        return kind.__name__
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def with_floats(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose columns of nullable numbers and booleans, such as Int64, are floats.

    Nulls are NaN. Columns without nulls are converted, too: each batch of a table gives the model
    the same type.
    """
    frame = frame.copy(deep=False)
    for index, dtype in enumerate(frame.dtypes):  # columns may have one name
        is_number = is_numeric_dtype(dtype) or is_bool_dtype(dtype)
        if is_number and not isinstance(dtype, (np.dtype, pd.CategoricalDtype)):
            floats = frame.iloc[:, index].to_numpy(dtype=np.float64, na_value=np.nan)
            frame.isetitem(index, floats)
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

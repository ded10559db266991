"""Background rows, from which absent columns take their values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse
import shap
from pandas.api.types import is_numeric_dtype, union_categoricals

from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError, warn_user
from shapley_adapters.frames import type_name

from ..argument_types import Dtype, Masker
from ..shap_internals import SUMMARIES, DenseData, SparseData, background_of, names_of_summary
from .datasets import Dataset, checked_dataset, is_number, plain_rows


def checked_summary(summary: DenseData | SparseData) -> Any:
    """Return a copy of a summary of shap, without rows of weight 0, if it can be used."""
    weights = np.asarray(summary.weights, dtype=np.float64)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InvalidArgumentError(
            "masker holds background rows whose weights are negative, not finite or all zero. "
            "Weights must be positive numbers, such as those of shap.kmeans."
        )
    if any(len(group) > 1 for group in summary.groups or ()):
        raise InvalidArgumentError(
            "masker holds background rows with groups of columns. Pass the rows without groups, "
            "and the groups as groups=."
        )
    checked, has_weight = copy.deepcopy(summary), weights > 0
    checked.data, checked.weights = checked.data[has_weight], weights[has_weight]
    return checked


_MAX_BACKGROUND = 100
"""Number of rows that shap samples from a table that is passed as a masker."""


def background_dataset(masker: Masker, dtypes: pd.Series[Any] | None = None) -> Dataset | None:
    """Return the background of a masker that only inserts background values, else None.

    `dtypes` are those of the frame that the masker was made of.
    """
    values = background_of(masker)
    if values is None:
        return None
    columns = getattr(masker, "feature_names", None)
    weights = None
    if isinstance(masker, SUMMARIES):
        columns, own = names_of_summary(masker), np.asarray(masker.weights, dtype=np.float64)
        weights = None if own.min() == own.max() else own / own.sum()
    if not scipy.sparse.issparse(values):
        values = np.asarray(plain_rows(values, "masker"))
    if columns is not None and not isinstance(columns, pd.Index):
        columns = pd.Index(columns)  # which would convert a MultiIndex to tuples
    return Dataset(values, columns, dtypes, weights)


def bounded_background(masker: Any) -> tuple[Any, Any]:
    """Return what shap makes a masker of, and the column types of a DataFrame.

    A table with many rows is sampled as in shap, but with a warning.
    """
    masker = plain_rows(masker, "masker")
    if isinstance(masker, SUMMARIES):
        return checked_summary(masker), None
    is_array = isinstance(masker, np.ndarray) and masker.ndim >= 2
    is_matrix = scipy.sparse.issparse(masker) and masker.ndim == 2
    if not (is_array or is_matrix or isinstance(masker, pd.DataFrame)):
        return masker, None
    n_rows = masker.shape[0]
    dataset = checked_dataset(masker, name="masker")
    if n_rows > _MAX_BACKGROUND:
        warn_user(
            f"masker has {n_rows} rows, of which {_MAX_BACKGROUND} are drawn as background. "
            f"To use all of them, pass shap.maskers.Independent(data, max_samples={n_rows}); to "
            "use fewer, pass a sample or the mean."
        )
    values = dataset.values
    if is_array and values.ndim > 2 and n_rows > _MAX_BACKGROUND:  # shap samples tables only
        values = shap.sample(values, _MAX_BACKGROUND)
    elif not is_matrix:
        values = values.copy()  # because shap's maskers store the array itself
    if dataset.columns is not None:
        # The type is passed to pandas, which would otherwise convert objects to strings and None to
        # NaN.
        values = pd.DataFrame(values, columns=dataset.columns, dtype=values.dtype)
    return values, dataset.dtypes


def first_rows(masker: Masker, background: Dataset) -> Any:
    """Return the first row of a masker's background, as an array or a DataFrame for the model."""
    if isinstance(masker, np.ndarray):
        return masker[:1]
    values, dtypes = background.values[:1], background.dtypes
    if background.columns is None or background.is_sparse:
        return values
    return _framed(values, background.columns, None if dtypes is None else dict(enumerate(dtypes)))


def check_masker(masker: Any) -> None:
    """Refuse a masker that is neither background rows nor callable."""
    if isinstance(masker, np.ndarray) and masker.ndim < 2:
        raise InvalidArgumentError(
            f"masker has shape {masker.shape}; background rows make a table. For one row pass "
            "masker[None]."
        )
    if scipy.sparse.issparse(masker):
        raise InvalidArgumentError(
            f"masker has shape {masker.shape}; background rows make a table. Reshape it to (1, -1)."
        )
    if masker is not None and background_of(masker) is None and not callable(masker):
        raise InvalidArgumentTypeError(
            "masker must be background rows, a shap masker, or a function of a mask and a row; got "
            f"{type_name(masker)}. Background rows are an array, a DataFrame, a sparse matrix or "
            "the result of shap.kmeans."
        )


def table_and_background(
    dataset: Dataset, background: Dataset
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], tuple[int, ...]]:
    """Return rows and background as tables of one type, and the shape of a row."""
    rows = dataset.array()
    if rows.ndim < 2:
        raise InvalidArgumentError(
            f"X has shape {rows.shape}: a table of rows is needed. For one row pass X[None]."
        )
    row_shape = rows.shape[1:]
    rows = rows.reshape(len(rows), -1)
    check_columns(rows.shape[1], dataset, background)
    absent = background.array()
    families = {
        "number" if dtype.kind in "biufc" else dtype.kind for dtype in (rows.dtype, absent.dtype)
    }
    if len(families) > 1 and "O" not in families:  # NumPy would make texts of numbers
        raise InvalidArgumentTypeError(
            f"X holds {rows.dtype} and masker's background {absent.dtype}: absent values must be "
            "of the same kind as present ones. Bring both to one type, for example times to "
            "numbers."
        )
    common = np.result_type(rows.dtype, absent.dtype)
    # Without copies, because games only read them and large tables are passed. Those of frames are
    # stored by columns, and `take` would copy the whole table for each batch: eleven times the time
    # of a row, with 200,000 of them.
    return rows.astype(common, order="C", copy=False), absent.astype(common, copy=False), row_shape


def check_columns(n_columns: int, dataset: Dataset, background: Dataset) -> None:
    """Refuse rows whose columns are not those of the background, in the same order."""
    if dataset.columns is not None and background.columns is not None:
        _check_names(list(dataset.columns), list(background.columns))
    if n_columns != background.values.shape[1]:
        raise InvalidArgumentError(
            f"X has {n_columns} columns, but the masker's background has "
            f"{background.values.shape[1]}. Pass rows with the columns of the background."
        )


def _check_names(names: list[Any], needed: list[Any]) -> None:
    if names == needed:  # nearly always; what follows is quadratic in the columns
        return
    if missing := [name for name in needed if name not in names]:
        raise InvalidArgumentError(
            f"X lacks columns of the masker's background, or has other names for them: "
            f"{missing[:5]}."
        )
    if surplus := [name for name in names if name not in needed]:
        raise InvalidArgumentError(
            f"X has columns that the masker's background lacks: {surplus[:5]}. Leave them out."
        )
    if len(names) == len(needed):
        raise InvalidArgumentError(
            "X has the masker's columns in another order. Pass X[list(background.columns)]."
        )


def model_input_maker(
    background: Dataset, dataset: Dataset, row_shape: tuple[int, ...], is_module: bool
) -> Callable[[npt.NDArray[Any]], Any]:
    """Return the function that converts masked rows to inputs of the model."""
    columns = background.columns
    if columns is None or is_module:
        if len(row_shape) == 1:
            return np.asarray  # an array is returned as it is
        return lambda masked: masked.reshape(-1, *row_shape)
    dtypes = _column_dtypes(background, dataset)
    return lambda masked: _framed(masked, columns, dtypes)


def _framed(
    values: npt.NDArray[Any], columns: pd.Index[Any], dtypes: dict[int, Any] | None
) -> pd.DataFrame:
    """Return values as a frame; types are by position, because columns may have one name."""
    if dtypes is None:
        return pd.DataFrame(values, columns=columns, dtype=values.dtype)
    return pd.DataFrame(values, dtype=values.dtype).astype(dtypes).set_axis(columns, axis=1)


def _column_dtypes(background: Dataset, dataset: Dataset) -> dict[int, Any] | None:
    """Return the type of each column by position; None if all columns have the type of the array.

    If rows and background have the same type, it is the type of the column; otherwise types of
    numbers are promoted.
    """
    values = np.asarray(dataset.values)
    common = np.result_type(values, background.values)
    dtypes = {}
    for index in range(background.values.shape[1]):
        row_dtype = _column_dtype(dataset.dtypes, values, index)
        background_dtype = _column_dtype(background.dtypes, background.values, index)
        if dataset.dtypes is None and not is_number(background_dtype):
            row_dtype = background_dtype
        if background.dtypes is None and not is_number(row_dtype):
            background_dtype = row_dtype
        dtype = _common_dtype(row_dtype, background_dtype)
        if dtype != common:
            dtypes[index] = dtype
    return dtypes or None


def _common_dtype(row_dtype: Dtype, background_dtype: Dtype) -> Any:
    """Return the type that holds the values of two without loss."""
    both = row_dtype, background_dtype
    are_plain = all(isinstance(dtype, np.dtype) for dtype in both)
    if row_dtype == background_dtype:
        return row_dtype
    if are_plain and (all(map(is_number, both)) or row_dtype.kind == background_dtype.kind == "M"):
        return np.result_type(*both)
    if all(isinstance(dtype, pd.CategoricalDtype) for dtype in both):
        with suppress(TypeError):  # other kinds of categories, or an order
            empty = [pd.Categorical([], dtype=dtype) for dtype in reversed(both)]
            return union_categoricals(empty).dtype
    if all(map(is_numeric_dtype, both)):  # such as Float64 and Int64
        return pd.concat([pd.Series([0], dtype=dtype) for dtype in reversed(both)]).dtype
    return np.dtype(object)


def _column_dtype(dtypes: pd.Series | None, values: npt.NDArray[Any], index: int) -> Any:
    """Return a column's type in its frame, or, without a frame, the type of its values."""
    if dtypes is not None:
        return dtypes.iloc[index]
    return np.asarray(values[:, index].tolist()).dtype if values.dtype == object else values.dtype

"""Background rows, from which absent columns take their values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse
import shap
from pandas.api.types import is_numeric_dtype

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError, warn_user
from shapley_adapters.frames import pandas_frame, type_name, with_floats
from shapley_adapters.torch_support.tensor_arrays import is_tensor

from ..argument_types import Dtype, Masker
from ..shap_internals import SUMMARIES, DenseData, SparseData, background_of, names_of_summary
from .datasets import (
    Dataset,
    check_cells,
    frame_values,
    is_number,
    one_array,
    plain_array_of,
    tensor_values,
    without_loss,
)


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


@dataclass(frozen=True)
class Background:
    """The rows from which absent columns take their values.

    Attributes
    ----------
    values : array or sparse matrix, (B, D)
        The rows.
    columns : pandas Index, or None
        Names of the columns, if the model takes DataFrames.
    dtypes : pandas Series, or None
        Types of the columns, if they are known.
    weights : array, (B,), or None
        Weight of each row, with sum 1; None if they are equal.
    is_sparse : bool
        Whether the rows are a sparse matrix.
    """

    values: Any
    columns: pd.Index[Any] | None = None
    dtypes: Any = None
    weights: FloatArray | None = None
    is_sparse: bool = False

    def in_types(self, rows: Any) -> Any:
        """Return rows in the background's types, where columns have nullable or Arrow's types.

        A model takes the types that it was fitted to, which are those of the background. Columns
        whose values do not fit into them keep their own type, or become floats.
        """
        if self.dtypes is None:  # shap's maskers store objects of a frame of nullable types
            are_numbers = isinstance(rows, pd.DataFrame) and is_number(self.values.dtype)
            return with_floats(rows) if are_numbers else rows
        if isinstance(rows, np.ndarray) and rows.shape[1:] == self.dtypes.shape:
            if not any(map(_is_nullable, self.dtypes)):
                return rows
            rows = pd.DataFrame(rows, columns=self.dtypes.index)
        if not isinstance(rows, pd.DataFrame) or list(rows.columns) != list(self.dtypes.index):
            return rows  # other columns are refused later
        pairs = list(zip(rows.dtypes, self.dtypes, strict=True))
        differ = [own != of and (_is_nullable(own) or _is_nullable(of)) for own, of in pairs]
        if not any(differ):
            return rows
        columns = [rows.iloc[:, i] for i in range(len(pairs))]
        for index in np.flatnonzero(differ):
            converted = without_loss(columns[index], pairs[index][1])
            if converted is None:
                converted = with_floats(columns[index].to_frame()).iloc[:, 0]
            columns[index] = converted
        return pd.concat(columns, axis=1)

    @classmethod
    def from_masker(cls, masker: Masker, dtypes: pd.Series | None = None) -> Background | None:
        """Return the background of a masker that only inserts background values, else None."""
        values = background_of(masker)
        if values is None:
            return None
        columns = getattr(masker, "feature_names", None)
        weights = None
        if isinstance(masker, SUMMARIES):
            columns, own = names_of_summary(masker), np.asarray(masker.weights, dtype=np.float64)
            weights = None if own.min() == own.max() else own / own.sum()
        is_sparse = scipy.sparse.issparse(values)
        if not is_sparse:
            values = np.asarray(plain_array_of(values, "masker"))
        if columns is not None and not isinstance(columns, pd.Index):
            columns = pd.Index(columns)  # which would convert a MultiIndex to tuples
        return cls(values, columns, dtypes, weights, is_sparse)


def _is_nullable(dtype: Dtype) -> bool:
    """Return whether a column's type is one of pandas for numbers or texts, or one of Arrow."""
    return not isinstance(dtype, (np.dtype, pd.CategoricalDtype))


def bounded_background(masker: Any) -> tuple[Any, Any]:
    """Return the masker, and the column types of a DataFrame.

    A table with many rows is sampled as in shap, but with a warning.
    """
    masker = tensor_values(masker, "masker") if is_tensor(masker) else masker
    masker = plain_array_of(pandas_frame(masker, "masker"), "masker")
    if isinstance(masker, SUMMARIES):
        return checked_summary(masker), None
    dtypes = masker.dtypes if isinstance(masker, pd.DataFrame) else None
    is_sparse = scipy.sparse.issparse(masker)
    is_array = isinstance(masker, np.ndarray) and masker.ndim >= 2
    if not (is_array or isinstance(masker, pd.DataFrame) or (is_sparse and masker.ndim == 2)):
        return masker, dtypes
    n_rows = masker.shape[0]
    if n_rows == 0:
        raise InvalidArgumentError("masker holds no background rows; at least one is needed.")
    check_cells(masker, "masker")
    if n_rows > _MAX_BACKGROUND:
        warn_user(
            f"masker has {n_rows} rows, of which {_MAX_BACKGROUND} are drawn as background. "
            f"To use all of them, pass shap.maskers.Independent(data, max_samples={n_rows}); to "
            "use fewer, pass a sample or the mean."
        )
    if is_sparse:
        masker = masker.tocsr(copy=True)
        masker.sum_duplicates()
    if isinstance(masker, np.ndarray):
        # shap samples tables only. A copy, because its maskers store the array itself.
        is_sampled_here = masker.ndim > 2 and n_rows > _MAX_BACKGROUND
        masker = shap.sample(masker, _MAX_BACKGROUND) if is_sampled_here else masker.copy()
    if isinstance(masker, pd.DataFrame):
        # Values by `frame_values`, so that rows and background have the same type. The type is
        # passed to pandas, which would otherwise convert objects to strings and None to NaN.
        values = frame_values(masker).copy()
        check_cells(values, "masker")
        masker = pd.DataFrame(values, columns=masker.columns, dtype=values.dtype)
    return masker, dtypes


def first_rows(masker: Masker, background: Background) -> Any:
    """Return the first row of a masker's background, as an array or a DataFrame for the model."""
    if isinstance(masker, np.ndarray):
        return masker[:1]
    values = background.values[:1]
    if background.columns is None or background.is_sparse:
        return values
    frame = pd.DataFrame(values)
    if background.dtypes is not None:
        frame = frame.astype(dict(enumerate(background.dtypes)))
    return frame.set_axis(background.columns, axis=1)


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
    dataset: Dataset, background: Background
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], tuple[int, ...]]:
    """Return rows and background as tables of one type, and the shape of a row."""
    rows = one_array(dataset.values)
    if rows.ndim < 2:
        raise InvalidArgumentError(
            f"X has shape {rows.shape}: a table of rows is needed. For one row pass X[None]."
        )
    row_shape = rows.shape[1:]
    rows = rows.reshape(len(rows), -1)
    check_columns(rows.shape[1], dataset, background)
    absent = background.values.toarray() if background.is_sparse else background.values
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


def check_columns(n_columns: int, dataset: Dataset, background: Background) -> None:
    """Refuse rows whose columns are not those of the background, in the same order."""
    if dataset.columns is not None and background.columns is not None:
        _check_names(dataset.columns, list(background.columns))
    if n_columns != background.values.shape[1]:
        raise InvalidArgumentError(
            f"X has {n_columns} columns, but the masker's background has "
            f"{background.values.shape[1]}."
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
    background: Background, dataset: Dataset, row_shape: tuple[int, ...], is_module: bool
) -> Callable[[npt.NDArray[Any]], Any]:
    """Return the function that converts masked rows to inputs of the model."""
    columns = background.columns
    if columns is None or is_module:
        if len(row_shape) == 1:
            return np.asarray  # an array is returned as it is
        return lambda masked: masked.reshape(-1, *row_shape)
    dtypes = _column_dtypes(background, dataset)

    def as_frame(masked: npt.NDArray[Any]) -> pd.DataFrame:
        if dtypes is None:
            return pd.DataFrame(masked, columns=columns, dtype=masked.dtype)
        # By position, because columns may have one name.
        return pd.DataFrame(masked, dtype=masked.dtype).astype(dtypes).set_axis(columns, axis=1)

    return as_frame


def _column_dtypes(background: Background, dataset: Dataset) -> dict[int, Any] | None:
    """Return the type of each column by position; None if all columns have the type of the array.

    If rows and background have the same type, it is the type of the column; otherwise types of
    numbers are promoted.
    """
    if background.columns is None:
        return None
    values = np.asarray(dataset.values)
    common = np.result_type(values, background.values)
    dtypes = {}
    for index in range(len(background.columns)):
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
    if row_dtype == background_dtype:
        return row_dtype
    if (
        isinstance(row_dtype, np.dtype)
        and isinstance(background_dtype, np.dtype)
        and row_dtype.kind == background_dtype.kind == "M"
    ):
        return np.result_type(row_dtype, background_dtype)
    if is_number(row_dtype) and is_number(background_dtype):
        return np.result_type(row_dtype, background_dtype)
    if isinstance(row_dtype, pd.CategoricalDtype) and isinstance(
        background_dtype, pd.CategoricalDtype
    ):
        is_ordered = row_dtype.ordered or background_dtype.ordered
        if not is_ordered and row_dtype.categories.dtype == background_dtype.categories.dtype:
            categories = background_dtype.categories.append(row_dtype.categories)
            return pd.CategoricalDtype(categories.unique())
    if is_numeric_dtype(row_dtype) and is_numeric_dtype(background_dtype):  # such as Float64, Int64
        both = [pd.Series([0], dtype=dtype) for dtype in (background_dtype, row_dtype)]
        return pd.concat(both).dtype
    return np.dtype(object)


def _column_dtype(dtypes: pd.Series | None, values: npt.NDArray[Any], index: int) -> Any:
    """Return a column's type in its frame, or, without a frame, the type of its values."""
    if dtypes is not None:
        return dtypes.iloc[index]
    return np.asarray(values[:, index].tolist()).dtype if values.dtype == object else values.dtype

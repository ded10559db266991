"""The rows that an explainer is called with."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse

from shapley_adapters.arguments import check_unmasked
from shapley_adapters.array_types import BoolArray, FloatArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError, row_number
from shapley_adapters.frames import pandas_frame, type_name, with_floats
from shapley_adapters.torch_support.tensor_arrays import array_of, is_tensor

from ..argument_types import Dtype


@dataclass(frozen=True)
class Dataset:
    """Rows that a user passed: those of one model input, or the background of a masker.

    Attributes
    ----------
    values : array, (R, *shape of a row), sparse matrix, (R, D), or list
        The rows.
    columns : pandas Index, or None
        Names of the columns of a DataFrame.
    dtypes : pandas Series, or None
        Their types.
    weights : array, (R,), or None
        Weight of each background row, with sum 1; None if they are equal.
    """

    values: Any
    columns: pd.Index[Any] | None = None
    dtypes: Any = None
    weights: FloatArray | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are a sparse matrix."""
        return scipy.sparse.issparse(self.values)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0]) if self.is_sparse else len(self.values)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return (self.values.shape[1],) if self.is_sparse else tuple(np.shape(self.values[0]))

    def array(self) -> npt.NDArray[Any]:
        """Return the rows as one array."""
        try:
            return self.values.toarray() if self.is_sparse else np.asarray(self.values)
        except ValueError as error:
            raise InvalidArgumentError(
                "X holds rows of different lengths; a table needs rows of the same length."
            ) from error

    def plot_values(self, of_masker: Sequence[Any] = (None,)) -> Any:
        """Return a copy of the rows for plots, because users may change the original later.

        Or the masker's form of each row, such as tokens, packed as in shap, where it has one.
        """
        if all(of_row is not None for of_row in of_masker):
            return tuple(map(packed, of_masker))
        if self.is_sparse:
            return self.array()
        are_alike = len({np.shape(row) for row in self.values}) == 1
        return np.array(self.values) if are_alike else ragged(list(map(np.array, self.values)))

    def in_types(self, rows: Any) -> Any:
        """Return rows in the types of these, where columns have nullable or Arrow's types.

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
        return converted(rows, self.dtypes, lambda *pair: any(map(_is_nullable, pair)))


def ragged(rows: Sequence[Any]) -> npt.NDArray[np.object_]:
    """Return rows of different shapes as an array of arrays."""
    together = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        together[i] = row
    return together


def packed(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return values of rows as one array, or as an array of arrays if their shapes differ."""
    shapes = {np.shape(value) for value in values}
    return np.array(values) if len(shapes) == 1 else ragged(values)


def checked_dataset(
    data: object,
    input_index: int = 0,
    is_table: bool = True,
    name: str = "X",
    convert: Callable[[Any], Any] | None = None,
) -> Dataset:
    """Return the rows to explain, checked.

    Parameters
    ----------
    data : object
        The rows.
    input_index : int
        The index of the model's input.
    is_table : bool
        Whether each row must have columns; otherwise a row may be a single object, such as a text.
    name : str
        The argument, for messages; that of the first input.
    convert : callable, optional
        Converts a frame or an array, such as to the types of a background.
    """
    name = name if input_index == 0 else f"input {input_index}"
    are_texts = not is_table and _holds_texts(data)  # a data set, which stays as it is
    rows: Any = data if are_texts else plain_rows(data, name)
    rows = rows if convert is None else convert(rows)
    if isinstance(rows, pd.DataFrame):
        dataset = Dataset(frame_values(rows), rows.columns, rows.dtypes)
    elif isinstance(rows, pd.Series):
        if is_table:
            raise InvalidArgumentTypeError(
                f"{name} is a Series; pass a DataFrame, as in X.iloc[[0]]."
            )
        dataset = Dataset(rows.tolist())
    elif scipy.sparse.issparse(rows):
        if len(rows.shape) != 2:
            raise InvalidArgumentError(
                f"{name} has shape {rows.shape}: a table of rows is needed. Reshape it to (1, -1)."
            )
        dataset = Dataset(rows.tocsr(copy=True))
        dataset.values.sum_duplicates()
    elif are_texts:
        dataset = Dataset(list(rows["text"]))
    elif isinstance(rows, (np.ndarray, Sequence)) and not isinstance(rows, (str, bytes)):
        dataset = Dataset(rows)
    else:
        is_text = isinstance(rows, str) and not is_table
        advice = f" Pass a list of texts, [{name}]." if is_text else ""
        raise InvalidArgumentTypeError(
            f"{name} must be an array, a DataFrame, a sparse matrix, a tensor or a list of rows; "
            f"got {type_name(rows)}.{advice}"
        )
    if getattr(dataset.values, "ndim", 1) == 0:
        raise InvalidArgumentError(f"{name} has shape (): a table of rows is needed.")
    if dataset.n_rows == 0:
        raise InvalidArgumentError(f"{name} holds no rows; at least one is needed.")
    if not is_table:
        return dataset
    table = dataset.values
    shape = np.shape(table) if hasattr(table, "shape") else (len(table), *np.shape(table[0]))
    if 0 in shape[1:]:
        raise InvalidArgumentError(
            f"{name} has shape {shape}: there are no columns. At least one feature is needed."
        )
    if getattr(getattr(table, "dtype", None), "kind", "") != "O":
        return dataset
    for position, cell in zip(np.ndindex(*shape), table.flat, strict=True):
        if isinstance(cell, (np.ndarray, pd.Series, pd.DataFrame)) or is_tensor(cell):
            raise InvalidArgumentTypeError(
                f"{name} holds {type(cell).__name__} in row {row_number(position[0])}, column "
                f"{position[1:][0]}: a cell must be a number, a text or another single "
                "value. Use one column per number, and join the columns by groups=."
            )
    return dataset


def dense_table(data: object) -> Dataset:
    """Return the rows of `data`, which must be a table that is not sparse."""
    dataset = checked_dataset(data, name="data")
    if dataset.is_sparse:
        raise InvalidArgumentError("data is sparse; pass data.toarray().")
    if len(shape := dataset.array().shape) != 2:
        raise InvalidArgumentError(f"data has shape {shape}; a table of rows is needed.")
    return dataset


def plain_rows(data: object, name: str) -> Any:
    """Return frames of any package as of pandas, and tensors and subclasses of arrays as arrays.

    Raises
    ------
    InvalidArgumentError
        If it is a masked array with masked values, or a sparse tensor.
    """
    if is_tensor(data):
        if str(data.layout) != "torch.strided":  # type: ignore[attr-defined] # of a tensor
            raise InvalidArgumentTypeError(f"{name} is a sparse tensor; pass {name}.to_dense().")
        return array_of(data)
    data = pandas_frame(data, name)
    for row in data if isinstance(data, (list, tuple)) else [data]:
        check_unmasked(name, row)
    return np.asarray(data) if isinstance(data, np.ndarray) else data


def same(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> BoolArray:
    """Return where values are equal; missing ones are, but for None and NaN; 0.0 and -0.0 are not.

    The output of a model may depend on the sign of zero, for example after a division, and encoders
    of categories tell None from NaN.
    """
    if "O" not in first.dtype.kind + second.dtype.kind:
        same_values: BoolArray = np.equal(first, second)
        if sorted(first.dtype.kind + second.dtype.kind) in (["f", "f"], ["f", "i"], ["f", "u"]):
            same_values &= (first != 0) | (np.signbit(first) == np.signbit(second))
        if first.dtype.kind in "fcmM" and second.dtype.kind in "fcmM":
            same_values |= pd.isna(first) & pd.isna(second)
        return same_values
    any_missing, both_missing = pd.isna(first) | pd.isna(second), pd.isna(first) & pd.isna(second)
    equal = np.equal(first, second, dtype=object)
    is_negative_zero = np.frompyfunc(
        lambda x: isinstance(x, (float, np.floating)) and x == 0 and bool(np.signbit(x)), 1, 1
    )
    equal &= is_negative_zero(first) == is_negative_zero(second)
    is_none = np.frompyfunc(lambda x: x is None, 1, 1)
    both_missing &= (is_none(first) == is_none(second)).astype(bool)
    return np.where(any_missing, both_missing, equal).astype(bool)


def _holds_texts(data: object) -> bool:
    """Return whether `data` has a column of texts, like data sets of Hugging Face."""
    names = data if isinstance(data, Mapping) else getattr(data, "column_names", ())
    return "text" in (names or ())


def frame_values(frame: pd.DataFrame) -> npt.NDArray[Any]:
    """Return a frame as one array: of numbers if all columns hold numbers, else of objects."""
    is_numeric = all(map(is_number, frame.dtypes))
    # pandas converts mixed numbers and booleans to objects.
    dtype = np.result_type(*frame.dtypes) if is_numeric and frame.shape[1] else object
    return frame.to_numpy(dtype=dtype)


def is_number(dtype: Dtype) -> bool:
    """Return whether a column's type is one of NumPy's numbers or booleans."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _is_nullable(dtype: Dtype) -> bool:
    """Return whether a column's type is one of pandas for numbers or texts, or one of Arrow."""
    return not isinstance(dtype, (np.dtype, pd.CategoricalDtype))


def table_of_row(row: Any, dtypes: pd.Series | None = None) -> Any:
    """Return a table with one row, or None if `row` is not a single row of cells.

    Parameters
    ----------
    row : object
        A Series becomes a DataFrame. Arrays, tensors and lists of one dimension become arrays.
    dtypes : Series, optional
        The column types of the background. A Series has one type for all cells, so that its cells
        are converted to these types, unless this changes a value.
    """
    if isinstance(row, pd.Series):
        frame = pd.DataFrame([row.tolist()], columns=row.index)
        return frame if dtypes is None else converted(frame, dtypes)
    if hasattr(row, "detach"):
        return row[None] if row.ndim == 1 else None
    is_array = isinstance(row, np.ndarray)
    is_flat = row.ndim == 1 if is_array else isinstance(row, (list, tuple))
    if not is_flat or len(row) == 0:
        return None
    if any(hasattr(cell, "__len__") and not isinstance(cell, (str, bytes)) for cell in row):
        return None
    return row[None] if is_array else [row]


def converted(
    frame: Any, dtypes: pd.Series[Any], is_needed: Callable[[Dtype, Dtype], bool] = operator.ne
) -> Any:
    """Return a frame whose columns have other types, where these hold their values.

    Others keep their type; nullable numbers become floats. Tables with other columns stay as they
    are: they are refused later, with the names.

    Parameters
    ----------
    frame : DataFrame, or anything else
        The rows.
    dtypes : Series
        The types, by the names of the columns.
    is_needed : callable
        Takes the type of a column and the other one, and returns whether to convert.
    """
    if not isinstance(frame, pd.DataFrame) or list(frame.columns) != list(dtypes.index):
        return frame
    pairs = enumerate(zip(frame.dtypes, dtypes, strict=True))
    needed = [index for index, (own, of) in pairs if own != of and is_needed(own, of)]
    if not needed:
        return frame
    columns = [frame.iloc[:, index] for index in range(len(dtypes))]  # columns may have one name
    for index in needed:
        kept = _without_loss(columns[index], dtypes.iloc[index])
        floats = with_floats(columns[index].to_frame()).iloc[:, 0]
        columns[index] = floats if kept is None else kept
    return pd.concat(columns, axis=1)


def _without_loss(column: pd.Series, dtype: Dtype) -> pd.Series | None:
    """Return a column in another type; None if that cannot hold its values."""
    try:
        converted = column.astype(dtype)
        is_missing = column.isna()
        are_equal = converted.astype(object)[~is_missing] == column.astype(object)[~is_missing]
    except (TypeError, ValueError, OverflowError):
        return None
    is_kept = bool(are_equal.all()) and bool((converted.isna() == is_missing).all())
    return converted if is_kept else None

"""The rows that an explainer is called with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse

from shapley_adapters.arguments import check_unmasked
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError, row_number
from shapley_adapters.frames import pandas_frame, type_name
from shapley_adapters.torch_support.tensor_arrays import array_of, is_tensor

from ..argument_types import Dtype


@dataclass(frozen=True)
class Dataset:
    """The rows of one model input.

    Attributes
    ----------
    values : array, (R, *shape of a row), sparse matrix, (R, D), or list
        The rows.
    columns : list of str, or None
        Names of the columns of a DataFrame.
    dtypes : pandas Series, or None
        Their types.
    is_sparse : bool
        Whether the rows are a sparse matrix.
    """

    values: Any
    columns: list[Any] | None = None
    dtypes: Any = None
    is_sparse: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0]) if self.is_sparse else len(self.values)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        if self.is_sparse:
            return (int(self.values.shape[1]),)
        return tuple(np.shape(self.values[0]))

    def plot_values(self) -> npt.NDArray[Any]:
        """Return a copy of the rows for plots, because users may change the original later."""
        if self.is_sparse:
            return self.values.toarray()
        if len({np.shape(row) for row in self.values}) == 1:
            return np.array(self.values)
        return ragged([np.array(row) for row in self.values])


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
    if is_table or not _holds_texts(data):  # data sets of texts stay as they are
        data = pandas_frame(data, name)
    rows = plain_array_of(data, name)
    dataset = _read(rows if convert is None else convert(rows), name, is_table)
    if getattr(dataset.values, "ndim", 1) == 0:
        raise InvalidArgumentError(f"{name} has shape (): a table of rows is needed.")
    if dataset.n_rows == 0:
        raise InvalidArgumentError(f"{name} holds no rows; at least one is needed.")
    if is_table:
        check_cells(dataset.values, name)
    return dataset


def plain_array_of(data: object, name: str) -> Any:
    """Return a matrix or another subclass of NumPy's arrays as a plain array of the same shape.

    Raises
    ------
    InvalidArgumentError
        If it is a masked array with masked values.
    """
    for row in data if isinstance(data, (list, tuple)) else [data]:
        check_unmasked(name, row)
    return np.asarray(data) if isinstance(data, np.ndarray) else data


def check_cells(table: Any, name: str) -> None:
    """Refuse a table without columns, and one whose cells hold arrays."""
    shape = np.shape(table) if hasattr(table, "shape") else (len(table), *np.shape(table[0]))
    if 0 in shape[1:]:
        raise InvalidArgumentError(
            f"{name} has shape {shape}: there are no columns. At least one feature is needed."
        )
    if getattr(getattr(table, "dtype", None), "kind", "") != "O":
        return
    for position, cell in zip(np.ndindex(*shape), table.flat, strict=True):
        if isinstance(cell, (np.ndarray, pd.Series, pd.DataFrame)) or is_tensor(cell):
            raise InvalidArgumentTypeError(
                f"{name} holds {type(cell).__name__} in row {row_number(position[0])}, column "
                f"{position[1:][0]}: a cell must be a number, a text or another single "
                "value. Use one column per number, and join the columns by groups=."
            )


def one_array(values: object) -> npt.NDArray[Any]:
    """Return rows as one array."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidArgumentError(
            "X holds rows of different lengths; a table needs rows of the same length."
        ) from error


def _read(data: Any, name: str, is_table: bool) -> Dataset:
    if isinstance(data, pd.Series):
        if is_table:
            raise InvalidArgumentTypeError(
                f"{name} is a Series; pass a DataFrame, as in X.iloc[[0]]."
            )
        return Dataset(data.tolist())
    if isinstance(data, pd.DataFrame):
        return Dataset(frame_values(data), list(data.columns), data.dtypes)
    if scipy.sparse.issparse(data):
        return Dataset(_checked_sparse(data, name), is_sparse=True)
    if hasattr(data, "detach"):
        return Dataset(tensor_values(data, name))
    if not is_table and _holds_texts(data):
        return Dataset(list(data["text"]))
    if isinstance(data, (np.ndarray, Sequence)) and not isinstance(data, (str, bytes)):
        return Dataset(data)
    advice = f" Pass a list of texts, [{name}]." if isinstance(data, str) and not is_table else ""
    raise InvalidArgumentTypeError(
        f"{name} must be an array, a DataFrame, a sparse matrix, a tensor or a list of rows; got "
        f"{type_name(data)}.{advice}"
    )


def _holds_texts(data: object) -> bool:
    """Return whether `data` has a column of texts, like data sets of Hugging Face."""
    names = data if isinstance(data, Mapping) else getattr(data, "column_names", ())
    return "text" in (names or ())


def tensor_values(tensor: Any, name: str) -> npt.NDArray[Any]:
    """Return a tensor as an array; refuse a sparse one."""
    if str(tensor.layout) != "torch.strided":
        raise InvalidArgumentTypeError(f"{name} is a sparse tensor; pass {name}.to_dense().")
    return array_of(tensor)


def _checked_sparse(matrix: scipy.sparse.spmatrix, name: str) -> Any:
    if len(matrix.shape) != 2:
        raise InvalidArgumentError(
            f"{name} has shape {matrix.shape}: a table of rows is needed. Reshape it to (1, -1)."
        )
    csr = matrix.tocsr(copy=True)
    csr.sum_duplicates()
    return csr


def frame_values(frame: pd.DataFrame) -> npt.NDArray[Any]:
    """Return a frame as one array: of numbers if all columns hold numbers, else of objects."""
    is_numeric = all(map(is_number, frame.dtypes))
    # pandas converts mixed numbers and booleans to objects.
    dtype = np.result_type(*frame.dtypes) if is_numeric and frame.shape[1] else object
    return frame.to_numpy(dtype=dtype)


def is_number(dtype: Dtype) -> bool:
    """Return whether a column's type is one of NumPy's numbers or booleans."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


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
        if dtypes is None or list(frame.columns) != list(dtypes.index):
            return frame  # other columns are refused later, with the names
        cells = [frame.iloc[:, i] for i in range(len(dtypes))]
        pairs = [(one, without_loss(one, dtype)) for one, dtype in zip(cells, dtypes, strict=True)]
        return pd.concat([one if kept is None else kept for one, kept in pairs], axis=1)
    if hasattr(row, "detach"):
        return row[None] if row.ndim == 1 else None
    is_array = isinstance(row, np.ndarray)
    is_flat = row.ndim == 1 if is_array else isinstance(row, (list, tuple))
    if not is_flat or len(row) == 0:
        return None
    if any(hasattr(cell, "__len__") and not isinstance(cell, (str, bytes)) for cell in row):
        return None
    return row[None] if is_array else [row]


def without_loss(column: pd.Series, dtype: Dtype) -> pd.Series | None:
    """Return a column in another type; None if that cannot hold its values."""
    try:
        converted = column.astype(dtype)
        is_missing = column.isna()
        are_equal = converted.astype(object)[~is_missing] == column.astype(object)[~is_missing]
    except (TypeError, ValueError, OverflowError):
        return None
    is_kept = bool(are_equal.all()) and bool((converted.isna() == is_missing).all())
    return converted if is_kept else None

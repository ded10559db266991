"""Where rows come from: arrays, frames, files, readers of Arrow, loaders and generators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from ..frames import pandas_frame
from .arrow import FORMATS, batches_of, batches_of_file, is_arrow

_AS_GENERATOR = (
    "Pass an array, a memory map, a DataFrame, a path of a .npy or .parquet file, an object of "
    "pyarrow, a DataLoader, or a generator of batches"
)


def is_sliced(rows: Any) -> bool:
    """Return whether rows can be read again by slices: arrays, frames, matrices and tensors."""
    return (
        isinstance(rows, (np.ndarray, pd.DataFrame))
        or scipy.sparse.issparse(rows)
        or hasattr(rows, "detach")
    )


def opened(rows: Any) -> Any:
    """Return the memory map of a path of a .npy file, and a frame of polars as one of pandas."""
    if not is_arrow(rows):  # whose tables and data sets are read in record batches
        rows = pandas_frame(rows, "rows")
    if not isinstance(rows, (str, Path)) or Path(rows).suffix != ".npy":
        return rows
    try:
        return np.load(rows, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise InvalidArgumentError(f"rows: there is no file {rows}.") from error
    except (ValueError, EOFError) as error:
        raise InvalidArgumentError(
            f"rows: {rows} cannot be read as a .npy file of numbers: {error}"
        ) from error


def items_of(rows: Any, size: int) -> Iterator[Any]:
    """Yield batches of rows as they come, in bounded memory.

    Parameters
    ----------
    rows : object
        The argument of the user, after `opened`.
    size : int
        Rows per batch, where the source can choose them.

    Raises
    ------
    InvalidArgumentTypeError
        If it is none of the sources.
    """
    if is_sliced(rows):
        yield from slices_of(rows, size)
    elif isinstance(rows, (str, Path)):
        yield from _batches_of_path(Path(rows), size)
    elif is_arrow(rows):
        yield from batches_of(rows, size)
    elif isinstance(rows, Iterable) and not isinstance(rows, (bytes, dict)):
        yield from rows
    else:
        raise InvalidArgumentTypeError(f"rows cannot be a {type(rows).__name__}. {_AS_GENERATOR}.")


def slices_of(rows: Any, size: int) -> Iterator[Any]:
    """Yield the rows of an array, a frame, a matrix or a tensor in slices."""
    table = rows.tocsr() if scipy.sparse.issparse(rows) else rows
    for start in range(0, table.shape[0], size):
        stop = start + size
        yield table.iloc[start:stop] if isinstance(table, pd.DataFrame) else table[start:stop]


def n_rows_known(rows: Any) -> int | None:
    """Return the number of rows, where it is known without reading them."""
    if isinstance(rows, tuple) and rows and is_sliced(rows[0]):
        rows = rows[0]
    return int(rows.shape[0]) if is_sliced(rows) and rows.ndim else None


def _batches_of_path(path: Path, size: int) -> Iterator[Any]:
    if not path.exists():
        raise InvalidArgumentError(f"rows: there is no file {path}.")
    if path.suffix not in FORMATS and not path.is_dir():
        raise InvalidArgumentError(
            f"rows: {path} is neither a .npy file nor one of {', '.join(FORMATS)}. {_AS_GENERATOR}."
        )
    yield from batches_of_file(path, size)

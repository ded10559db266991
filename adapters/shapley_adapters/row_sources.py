"""Where the rows of a stream come from: arrays, frames, files, pyarrow, loaders and generators."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from .errors import InvalidArgumentError, InvalidArgumentTypeError, required_packages, row_number
from .frames import pandas_frame
from .torch_support.tensor_arrays import is_tensor

Block = tuple[Any, ...]
"""Tables or arrays with one entry per row each, such as the inputs and the targets of a model."""

_FORMATS = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".csv": "csv"}
"""The format of a file by the end of its name. Feather is Arrow's file format."""

_NEEDED = (
    f"Pass an array, a memory map, a DataFrame, a .npy, {', '.join(_FORMATS)} file, an object of "
    "pyarrow, a DataLoader, or a generator of batches"
)


def is_arrow(data: object) -> bool:
    """Return whether an object is one of pyarrow's."""
    return type(data).__module__.partition(".")[0] == "pyarrow"


def is_sliced(rows: Any) -> bool:
    """Return whether rows can be read again by slices: arrays, frames, matrices and tensors."""
    is_table = isinstance(rows, (np.ndarray, pd.DataFrame)) or scipy.sparse.issparse(rows)
    return is_table or hasattr(rows, "detach")


def n_rows_known(rows: Any) -> int | None:
    """Return the number of rows, where it is known without reading them."""
    first = rows[0] if isinstance(rows, tuple) and rows else rows
    return int(first.shape[0]) if is_sliced(first) and first.ndim else None


def opened(rows: Any) -> Any:
    """Return the user's rows with files opened, and with frames of other packages as of pandas.

    Raises
    ------
    InvalidArgumentError
        If there is no such file, or it cannot be read.
    """
    if not isinstance(rows, (str, Path)):
        return rows if is_arrow(rows) else pandas_frame(rows, "rows")
    path = Path(rows)
    if not path.exists():
        raise InvalidArgumentError(f"rows: there is no file {path}.")
    if path.suffix not in (".npy", *_FORMATS) and not path.is_dir():
        raise InvalidArgumentError(f"rows: the end of {path} names no format. {_NEEDED}.")
    try:
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with required_packages(f"rows={str(path)!r} needs pyarrow", extra="arrow"):
            import pyarrow.dataset as ds
        return ds.dataset(str(path), format=_FORMATS.get(path.suffix, "parquet"))
    except (ValueError, EOFError) as error:  # pyarrow's errors are ValueErrors, too
        raise InvalidArgumentError(f"rows: {path} cannot be read: {error}") from error


def batches_of(rows: Any, size: int) -> Iterator[Any]:
    """Yield batches of rows as they come, in bounded memory; `size` rows where that can be chosen.

    Raises
    ------
    InvalidArgumentTypeError
        If `rows`, as `opened` returns them, are none of the sources.
    """
    if is_sliced(rows):
        yield from slices_of(rows, size)
    elif hasattr(rows, "get_fragments"):  # a data set of pyarrow
        for fragment in rows.get_fragments():
            yield from _batches_of_fragment(rows, fragment, size)
    elif hasattr(rows, "iter_batches"):  # a ParquetFile
        yield from rows.iter_batches(batch_size=size)
    elif is_arrow(rows) and hasattr(rows, "to_batches"):  # a Table or a Scanner
        yield from rows.to_batches()
    elif is_arrow(rows) and hasattr(rows, "to_pandas"):  # a RecordBatch
        yield rows
    elif isinstance(rows, Iterable) and not isinstance(rows, (bytes, dict)):
        yield from rows
    else:
        raise InvalidArgumentTypeError(f"rows cannot be a {type(rows).__name__}. {_NEEDED}.")


def slices_of(rows: Any, size: int) -> Iterator[Any]:
    """Yield the rows of an array, a frame, a matrix or a tensor in slices."""
    table = rows.tocsr() if scipy.sparse.issparse(rows) else rows
    for start in range(0, table.shape[0], size):
        yield rows_of((table,), start, start + size)[0]


def n_rows_of(block: Block) -> int:
    """Return the number of rows of a block, whose parts must have equally many."""
    lengths = {int(part.shape[0]) if hasattr(part, "shape") else len(part) for part in block}
    if len(lengths) != 1:
        raise InvalidArgumentError(
            f"rows: the parts of a batch must have the same number of rows; after row "
            f"{row_number(0)} they have {sorted(lengths)}."
        )
    return lengths.pop()


def rows_of(block: Block, start: int, stop: int) -> Block:
    """Return some rows of a block."""
    return tuple(
        part.iloc[start:stop] if isinstance(part, pd.DataFrame) else part[start:stop]
        for part in block
    )


def _batches_of_fragment(dataset: Any, fragment: Any, size: int) -> Iterator[Any]:
    """Yield the record batches of one file of a data set.

    The scanner of a data set reads Parquet far ahead: hundreds of megabytes for a slow consumer.
    """
    if dataset.format.default_extname == "parquet":
        from pyarrow.parquet import ParquetFile

        with ParquetFile(fragment.path, filesystem=dataset.filesystem, pre_buffer=False) as file:
            if file.schema_arrow.equals(dataset.schema):
                yield from file.iter_batches(batch_size=size)
                return
    yield from fragment.to_batches(schema=dataset.schema, batch_size=size)


def rechunked(blocks: Iterable[Block], size: int) -> Iterator[Block]:
    """Yield the rows of blocks of any sizes in chunks of `size` rows; the last may be smaller."""
    waiting: list[Block] = []
    n_waiting = 0
    for block in blocks:
        start, n_rows = 0, n_rows_of(block)
        while n_rows - start >= size - n_waiting:
            stop = start + size - n_waiting
            yield _joined([*waiting, rows_of(block, start, stop)])
            waiting, n_waiting, start = [], 0, stop
        if start < n_rows:
            rest = rows_of(block, start, n_rows)  # copied: generators may yield one buffer
            waiting.append(tuple(part.clone() if is_tensor(part) else copy(part) for part in rest))
            n_waiting += n_rows - start
    if n_waiting:
        yield _joined(waiting)


def _join(pieces: Sequence[Any]) -> Any:
    """Return arrays, frames, sparse matrices or tensors as one, along their rows."""
    if is_tensor(pieces[0]):
        return sys.modules["torch"].cat(pieces)
    if isinstance(pieces[0], pd.DataFrame):
        return pd.concat(pieces)
    if scipy.sparse.issparse(pieces[0]):
        return scipy.sparse.vstack(pieces, format="csr")
    return np.concatenate(pieces)


def _joined(pieces: Sequence[Block]) -> Block:
    if len(pieces) == 1:
        return pieces[0]
    try:
        return tuple(map(_join, zip(*pieces, strict=True)))
    except (ValueError, TypeError, RuntimeError) as error:  # of NumPy, pandas and torch
        shapes = [[getattr(part, "shape", type(part).__name__) for part in p] for p in pieces]
        raise InvalidArgumentError(
            f"rows: batches of one chunk cannot be joined; their parts have the shapes "
            f"{shapes[:4]}. All rows must have the same parts, shapes and types."
        ) from error

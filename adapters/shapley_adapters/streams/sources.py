"""Where rows come from: arrays, frames, files, readers of Arrow, loaders and generators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from ..errors import InvalidArgumentError, InvalidArgumentTypeError, row_number
from ..frames import pandas_frame
from .files import FORMATS, pyarrow_module

Block = tuple[Any, ...]
"""Tables or arrays with one entry per row each, such as the inputs and the targets of a model."""

_AS_GENERATOR = (
    "Pass an array, a memory map, a DataFrame, a path of a .npy or .parquet file, an object of "
    "pyarrow, a DataLoader, or a generator of batches"
)


def n_rows_of(block: Block) -> int:
    """Return the number of rows of a block.

    Raises
    ------
    InvalidArgumentError
        If the parts of the block have different numbers of rows.
    """
    lengths = {_length(part) for part in block}
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


def rechunked(
    blocks: Iterable[Block], size: int, join: Callable[[Sequence[Any]], Any]
) -> Iterator[Block]:
    """Yield the rows of blocks of any sizes in chunks of `size` rows; the last may be smaller.

    Parameters
    ----------
    blocks : iterable of Block
        The blocks.
    size : int
        Rows per chunk.
    join : callable
        Joins the pieces of one part of the blocks along their rows.
    """
    pieces: list[Block] = []
    n_waiting = 0
    for block in blocks:
        start, n_rows = 0, n_rows_of(block)
        if pieces and len(block) != len(pieces[0]):
            raise InvalidArgumentError(
                f"rows: each batch must have the same number of parts; got one of {len(block)} "
                f"after one of {len(pieces[0])}."
            )
        while start < n_rows:
            stop = min(n_rows, start + size - n_waiting)
            pieces.append(rows_of(block, start, stop))
            n_waiting += stop - start
            start = stop
            if n_waiting == size:
                yield _joined(pieces, join)
                pieces, n_waiting = [], 0
    if pieces:
        yield _joined(pieces, join)


def join_tables(pieces: Sequence[Any]) -> Any:
    """Return arrays, frames or sparse matrices as one, along their rows."""
    if isinstance(pieces[0], pd.DataFrame):
        return pd.concat(pieces)
    if scipy.sparse.issparse(pieces[0]):
        return scipy.sparse.vstack(pieces, format="csr")
    return np.concatenate(pieces)


def _joined(pieces: Sequence[Block], join: Callable[[Sequence[Any]], Any]) -> Block:
    if len(pieces) == 1:
        return pieces[0]
    try:
        return tuple(join(parts) for parts in zip(*pieces, strict=True))
    except (ValueError, TypeError, RuntimeError) as error:  # of NumPy, pandas and torch
        shapes = [getattr(part, "shape", type(part).__name__) for part in (p[0] for p in pieces)]
        raise InvalidArgumentError(
            f"rows: batches of one chunk cannot be joined; they have the shapes {shapes[:4]}. "
            "All rows must have the same shape and type."
        ) from error


def _length(part: Any) -> int:
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)


def is_arrow(data: object) -> bool:
    """Return whether an object is one of pyarrow's."""
    return type(data).__module__.partition(".")[0] == "pyarrow"


def batches_of_file(path: Path, size: int) -> Iterator[Any]:
    """Yield the record batches of a file, or of the files in a folder, of at most `size` rows."""
    dataset = pyarrow_module("pyarrow.dataset")
    errors = pyarrow_module().ArrowInvalid
    file_format = FORMATS.get(path.suffix, "parquet")
    try:
        files = dataset.dataset(str(path), format=file_format)
        for fragment in files.get_fragments():
            yield from _batches_of_fragment(files, fragment, size)
    except errors as error:
        raise InvalidArgumentError(
            f"rows: {path} cannot be read as a file of {file_format}: {error}"
        ) from error


def _batches_of_fragment(dataset: Any, fragment: Any, size: int) -> Iterator[Any]:
    """Yield the record batches of one file of a data set.

    The scanner of a data set reads Parquet far ahead: hundreds of megabytes for a slow consumer.
    """
    parquet = pyarrow_module("pyarrow.parquet")
    if dataset.format.default_extname == "parquet":
        with parquet.ParquetFile(
            fragment.path, filesystem=dataset.filesystem, pre_buffer=False
        ) as file:
            if file.schema_arrow.equals(dataset.schema):
                yield from file.iter_batches(batch_size=size)
                return
    yield from fragment.to_batches(schema=dataset.schema, batch_size=size)


def batches_of(data: Any, size: int) -> Iterator[Any]:
    """Yield the record batches of a table, a reader, a data set or a Parquet file of pyarrow."""
    if hasattr(data, "iter_batches"):  # a ParquetFile
        yield from data.iter_batches(batch_size=size)
    elif hasattr(data, "to_reader"):  # a Table or a Scanner
        reader = data.to_reader()
        yield from reader
    elif hasattr(data, "to_batches"):  # a data set, which reads as it goes
        yield from data.to_batches(batch_size=size)
    elif hasattr(data, "to_pandas"):  # a RecordBatch
        yield data
    else:
        yield from data


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
        path = Path(rows)
        if not path.exists():
            raise InvalidArgumentError(f"rows: there is no file {path}.")
        if path.suffix not in FORMATS and not path.is_dir():
            raise InvalidArgumentError(
                f"rows: {path} is neither a .npy file nor one of {', '.join(FORMATS)}. "
                f"{_AS_GENERATOR}."
            )
        yield from batches_of_file(path, size)
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

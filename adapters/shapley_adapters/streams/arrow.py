"""Tables of Arrow and files of Parquet, read and written by pyarrow where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import InvalidArgumentError, required_packages

FORMATS = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}
"""The format of a file by the end of its name. Feather is Arrow's file format."""


def pyarrow_module(name: str = "pyarrow") -> ModuleType:
    """Return a module of pyarrow; the error says how to install it."""
    import importlib

    with required_packages("Files of Parquet and Arrow need pyarrow", extra="arrow"):
        return importlib.import_module(name)


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

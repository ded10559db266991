"""The files of the results, of one writer: growing arrays of NumPy, folders of Parquet or Arrow."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..arguments import checked_path
from ..atomic_files import flush_to_disk, replaced
from ..errors import InvalidArgumentError, required_packages
from .journal import ChunkRecord, ResultArray, damaged

Arrays = Mapping[str, npt.NDArray[Any]]

_HEADER_BYTES = 512
"""The size of the header of our .npy files, in which any number of rows fits."""

_READ_BYTES = 2**22

FORMATS = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}
"""The format of a file by the end of its name. Feather is Arrow's file format."""


class ResultFiles(Protocol):
    """Where results are stored."""

    def append(self, first: int, results: Arrays) -> str:
        """Write the results of the next rows to the disk, and return their digest."""

    def keep(self, n_rows: int) -> None:
        """Remove all entries after the first `n_rows` rows."""

    def announce(self, n_rows: int) -> None:
        """Make the files of `n_rows` rows readable for other programs."""

    def digest(self, first: int, n_rows: int) -> str:
        """Return the digest of a chunk as it is on disk."""

    def read(self, name: str, first: int, n_rows: int) -> npt.NDArray[Any]:
        """Return the entries of an array for the rows of a chunk."""

    def whole(self, name: str, chunks: Sequence[tuple[int, int]]) -> npt.NDArray[Any]:
        """Return an array of all rows, given the first row and the number of rows of each chunk."""


def pyarrow_module(name: str = "pyarrow") -> Any:
    """Return a module of pyarrow; the error says how to install it."""
    with required_packages("Files of Parquet and Arrow need pyarrow", extra="arrow"):
        return importlib.import_module(name)


def checked_out(out: object) -> Path:
    """Return the path of the results.

    Raises
    ------
    InvalidArgumentTypeError, InvalidArgumentError
        If it is no path, its ending names no format, or its folder does not exist.
    """
    path = checked_path("out", out)
    if path.suffix not in (".npy", *FORMATS):
        raise InvalidArgumentError(
            f"out={str(out)!r} must end in {', '.join(('.npy', *FORMATS))}, which names the format."
        )
    if path.suffix in FORMATS:
        pyarrow_module()  # raises the error now, not after the first chunk
    return path


def journal_path(out: Path) -> Path:
    """Return the path of the journal that belongs to the results."""
    if out.suffix == ".npy":
        return out.with_name(out.name + ".journal")
    return out / "_journal"


def result_files(out: Path, arrays: Sequence[ResultArray]) -> ResultFiles:
    """Return the files of the results at a path."""
    if out.suffix == ".npy":
        return NpyFiles(out, arrays)
    return PartFiles(out, arrays)


def check_results(out: Path, files: ResultFiles, chunk: ChunkRecord) -> None:
    """Refuse results of a chunk that are not on disk as they were written."""
    if files.digest(chunk.first, chunk.n_rows) != chunk.results:
        raise damaged(out, f"the results from row {chunk.first} on were changed")


def check_columns(out: Path, arrays: Sequence[ResultArray]) -> None:
    """Refuse tables with two columns of one name, or with a name that is no text."""
    if out.suffix not in FORMATS:
        return
    counts = Counter(name for array in arrays for name in _columns(array))
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None:
        raise InvalidArgumentError(
            f"out={str(out)!r}: two columns of the table would have the name {twice!r}. Rename the "
            "feature or the output, or write to a .npy file, which has no names."
        )
    for name in counts:
        if name.encode(errors="replace").decode() != name:
            raise InvalidArgumentError(
                f"out={str(out)!r}: the column {name!r} has half of a character in its name. "
                "Rename the feature, or write to a .npy file, which has no names."
            )


@dataclass(frozen=True)
class NpyFiles:
    """One .npy file per array: "values.npy", and beside it "values.base_values.npy" and others.

    A file of NumPy says in its first bytes how many rows follow. Rows are appended, and these
    bytes are changed afterwards, so that the file is valid at any moment.
    """

    out: Path
    arrays: Sequence[ResultArray]

    def append(self, first: int, results: Arrays) -> str:
        """Write the results of the next rows."""
        hasher = blake2b(digest_size=16)
        for array in self.arrays:
            data = np.ascontiguousarray(results[array.name]).tobytes()
            hasher.update(data)
            path = self.path(array)
            with open(path, "r+b" if path.exists() else "w+b") as file:
                if first == 0:
                    file.write(_npy_header(array, 0))
                file.seek(_HEADER_BYTES + first * _row_bytes(array))
                file.write(data)
                file.truncate()
                flush_to_disk(file)
        return hasher.hexdigest()

    def keep(self, n_rows: int) -> None:
        """Remove all entries after the first rows."""
        if n_rows == 0:
            for array in self.arrays:
                self.path(array).unlink(missing_ok=True)
            return
        for array in self.arrays:
            size = _HEADER_BYTES + n_rows * _row_bytes(array)
            path = self.path(array)
            if not path.exists() or path.stat().st_size < size:
                raise damaged(path, f"it does not hold the {n_rows} rows of the journal")
            os.truncate(path, size)

    def announce(self, n_rows: int) -> None:
        """Write the number of rows into the headers."""
        for array in self.arrays:
            with open(self.path(array), "r+b") as file:
                file.write(_npy_header(array, n_rows))

    def digest(self, first: int, n_rows: int) -> str:
        """Return the digest of a chunk as it is on disk."""
        hasher = blake2b(digest_size=16)
        for array in self.arrays:
            with open(self.path(array), "rb") as file:
                file.seek(_HEADER_BYTES + first * _row_bytes(array))
                n_bytes = n_rows * _row_bytes(array)
                while n_bytes and (data := file.read(min(n_bytes, _READ_BYTES))):
                    hasher.update(data)
                    n_bytes -= len(data)
        return hasher.hexdigest()

    def read(self, name: str, first: int, n_rows: int) -> npt.NDArray[Any]:
        """Return the entries of a chunk, as a view of the memory map."""
        return self.whole(name, [(0, first + n_rows)])[first:]

    def whole(self, name: str, chunks: Sequence[tuple[int, int]]) -> npt.NDArray[Any]:
        """Return a memory map of an array."""
        array = _named(self.arrays, name)
        n_rows = sum(n for _, n in chunks)
        shape = (n_rows, *array.row_shape)
        if n_rows == 0 or 0 in shape:
            return np.zeros(shape, dtype=array.dtype)
        path = self.path(array)
        if not path.exists() or path.stat().st_size < _HEADER_BYTES + n_rows * _row_bytes(array):
            raise damaged(path, f"it does not hold the {n_rows} rows of the journal")
        return np.memmap(path, dtype=array.dtype, mode="r", offset=_HEADER_BYTES, shape=shape)

    def path(self, array: ResultArray) -> Path:
        """Return the path of an array: the user's for the values."""
        if array.name == "values":
            return self.out
        return self.out.with_name(f"{self.out.stem}.{array.name}.npy")


@dataclass(frozen=True)
class PartFiles:
    """A folder with one file of Parquet or Arrow per chunk, in the order of the rows.

    A part appears under its name when it is on disk. Programs that read folders of Parquet, such as
    pandas, DuckDB and Spark, read all finished parts as one table.
    """

    out: Path
    arrays: Sequence[ResultArray]

    def append(self, first: int, results: Arrays) -> str:
        """Write the results of the next rows as a part."""
        path = self.path(first)
        table = _table(self.arrays, results)
        with replaced(path) as hidden:
            with open(hidden, "wb") as file:
                if self._is_parquet:
                    pyarrow_module("pyarrow.parquet").write_table(table, file)
                else:
                    with pyarrow_module("pyarrow.ipc").new_file(file, table.schema) as writer:
                        writer.write_table(table)
            return _digest_of_file(hidden)

    def keep(self, n_rows: int) -> None:
        """Remove the parts after the first rows, and incomplete parts of a call that stopped."""
        for path in self.out.glob(f"_part-*{self.out.suffix}"):
            path.unlink()
        for path in self.out.glob(f"part-*{self.out.suffix}"):
            if path >= self.path(n_rows):  # names have the order of the rows
                path.unlink()

    def announce(self, n_rows: int) -> None:
        """Do nothing: each part says how many rows it holds."""

    def digest(self, first: int, n_rows: int) -> str:
        """Return the digest of a part as it is on disk."""
        del n_rows
        if not self.path(first).exists():
            raise damaged(self.path(first), "it is missing")
        return _digest_of_file(self.path(first))

    def read(self, name: str, first: int, n_rows: int) -> npt.NDArray[Any]:
        """Return the entries of a chunk."""
        array = _named(self.arrays, name)
        path = self.path(first)
        if not path.exists():
            raise damaged(path, "it is missing")
        pyarrow = pyarrow_module()
        try:
            if self._is_parquet:
                parquet = pyarrow_module("pyarrow.parquet")
                table = parquet.ParquetFile(path).read(columns=_columns(array))
            else:
                with pyarrow_module("pyarrow.ipc").open_file(str(path)) as reader:
                    table = reader.read_all()
            return _array_of(table, array, n_rows)
        except (pyarrow.ArrowException, OSError, KeyError, ValueError) as error:
            raise damaged(path, "it cannot be read") from error

    def whole(self, name: str, chunks: Sequence[tuple[int, int]]) -> npt.NDArray[Any]:
        """Return an array, read into memory."""
        array = _named(self.arrays, name)
        result = np.empty((sum(n for _, n in chunks), *array.row_shape), dtype=array.dtype)
        for first, n_rows in chunks:
            result[first : first + n_rows] = self.read(name, first, n_rows)
        return result

    def path(self, first: int) -> Path:
        """Return the path of the part that begins with a row."""
        return self.out / f"part-{first:015d}{self.out.suffix}"

    @property
    def _is_parquet(self) -> bool:
        return FORMATS[self.out.suffix] == "parquet"


def _named(arrays: Sequence[ResultArray], name: str) -> ResultArray:
    return next(array for array in arrays if array.name == name)


def _row_bytes(array: ResultArray) -> int:
    return int(np.prod(array.row_shape, dtype=np.int64)) * np.dtype(array.dtype).itemsize


def _npy_header(array: ResultArray, n_rows: int) -> bytes:
    """Return the first bytes of a .npy file of version 1.0, always as many."""
    about = {
        "descr": np.dtype(array.dtype).str,
        "fortran_order": False,
        "shape": (n_rows, *array.row_shape),
    }
    text = repr(about).encode().ljust(_HEADER_BYTES - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def _columns(array: ResultArray) -> list[str]:
    return [array.name] if array.columns is None else array.columns


def _table(arrays: Sequence[ResultArray], results: Arrays) -> Any:
    """Return the results as a table of Arrow."""
    pyarrow = pyarrow_module()
    columns: dict[str, Any] = {}
    for array in arrays:
        numbers = results[array.name]
        flat = np.ascontiguousarray(numbers.reshape(len(numbers), -1))
        if array.columns is not None:
            columns |= {name: flat[:, i] for i, name in enumerate(array.columns)}
        elif array.row_shape == ():
            columns[array.name] = flat[:, 0]
        else:
            cells = pyarrow.array(flat.ravel())
            columns[array.name] = pyarrow.FixedSizeListArray.from_arrays(cells, flat.shape[1])
    return pyarrow.table(columns)


def _array_of(table: Any, array: ResultArray, n_rows: int) -> npt.NDArray[Any]:
    """Return an array from the columns of a table of Arrow."""
    shape = (n_rows, *array.row_shape)
    if array.columns is None and array.row_shape != ():
        cells = table.column(array.name).combine_chunks()
        return np.asarray(cells.flatten(), dtype=array.dtype).reshape(shape)
    flat = [np.asarray(table.column(name), dtype=array.dtype) for name in _columns(array)]
    return np.stack(flat, axis=1).reshape(shape)


def _digest_of_file(path: Path) -> str:
    hasher = blake2b(digest_size=16)
    with open(path, "rb") as file:
        while data := file.read(_READ_BYTES):
            hasher.update(data)
    return hasher.hexdigest()

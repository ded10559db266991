"""The files of a stream's results: a folder with one part for each chunk, and one record.

The part `part-<first row>-<row after the last>-<digest of the rows>-<its own digest>` holds the
results of a chunk, and `_stream.json` the options of the call and, when the stream has ended, its
number of rows. Files are written beside and renamed, so that each is whole or not there; digests
show what changed later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from .arguments import checked_path
from .atomic_files import replaced
from .errors import CheckpointError, InvalidArgumentError, required_packages

_FORMATS = (".npz", ".parquet", ".csv")
"""Of the parts, by the end of the name of the folder."""

RECORD = "_stream.json"


def checked_out(out: Any) -> Path:
    """Return the path of the folder of the results, whose end names a format.

    Raises
    ------
    InvalidArgumentTypeError, InvalidArgumentError
        If it is no path, its end names no format, or its parent does not exist.
    """
    path = checked_path("out", out)
    if path.suffix not in _FORMATS:
        raise InvalidArgumentError(
            f"out={str(out)!r} must end in {', '.join(_FORMATS)}, which names the format."
        )
    if path.suffix == ".parquet":
        with required_packages("Files of Parquet need pyarrow", extra="arrow"):
            import pyarrow  # noqa: F401 # the error comes now, not after the first chunk
    return path


@dataclass(frozen=True)
class ExplainedBlock:
    """The results of an ordinary call for a block of rows.

    Attributes
    ----------
    arrays : dict
        The results by name, with one entry per row. "values" and "base_values" are among them.
    columns : dict
        The names of the columns of those arrays that have names in tables.
    about : dict
        Further data of the results, such as names, as plain data for JSON.
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)


class ResultArray(NamedTuple):
    """One array of the results: the shape of a row's entry, its type, and its columns in tables."""

    name: str
    row_shape: list[int]
    dtype: str
    columns: list[str]


@dataclass(frozen=True)
class Record:
    """What `_stream.json` holds; `n_rows` is that of the stream, when it has ended."""

    host: str
    call: dict[str, str]
    chunk_size: int
    arrays: list[ResultArray]
    about: dict[str, Any]
    n_rows: int | None = None


class Part(NamedTuple):
    """A finished chunk: the rows from `first` to before `stop`, and the digest of their data."""

    first: int
    stop: int
    data: str
    path: Path


def arrays_of(explained: ExplainedBlock) -> list[ResultArray]:
    """Return what the arrays of a chunk have in common with those of all others."""
    found = []
    for name, array in explained.arrays.items():
        shape, columns = list(array.shape[1:]), explained.columns.get(name)
        if columns is None:
            numbered = [f"{name}_{index}" for index in range(int(np.prod(shape)))]
            columns = numbered if shape else [name]
        found.append(ResultArray(name, shape, array.dtype.str, columns))
    return found


def write_record(out: Path, record: Record) -> None:
    """Write the record of a stream, or replace it."""
    found = asdict(record)
    text = json.dumps({**found, "digest": _digest(json.dumps(found).encode())})
    with replaced(out / RECORD) as hidden:
        hidden.write_text(text, encoding="utf-8")


def read_record(out: Path) -> Record:
    """Return the record of a stream."""
    try:
        found = json.loads((out / RECORD).read_text("utf-8"))
        if found.pop("digest") != _digest(json.dumps(found).encode()):
            raise ValueError("it is not what was written")
        return Record(**{**found, "arrays": [ResultArray(*array) for array in found["arrays"]]})
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(
            f"{out / RECORD} is damaged: {error}. Delete {out}, and explain the rows again."
        ) from error


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()


def write_part(
    out: Path, record: Record, explained: ExplainedBlock, rows: range, data: str
) -> None:
    """Write the results of a chunk, of which `data` is the digest of the rows."""
    for before, now in zip(record.arrays, arrays_of(explained), strict=True):
        if before != now:
            raise InvalidArgumentError(
                f"rows: from row {rows.start} on, the {now.name} of a row have other names, or the "
                f"shape {now.row_shape} and the type {now.dtype}; before {before.row_shape} and "
                f"{before.dtype}. All rows of a stream must have the same features and outputs."
            )
    file = BytesIO()
    if out.suffix == ".npz":
        np.savez(file, **explained.arrays)  # type: ignore[arg-type] # no array is a flag
    else:
        import pandas as pd

        table = pd.concat(
            [
                pd.DataFrame(np.reshape(explained.arrays[name], (-1, len(columns))), None, columns)
                for name, _, _, columns in record.arrays
            ],
            axis=1,
        )
        if out.suffix == ".csv":
            table.to_csv(file, index=False, na_rep="nan")
        else:
            table.to_parquet(file, index=False)
    content = file.getvalue()
    name = f"part-{rows.start:012d}-{rows.stop:012d}-{data}-{_digest(content)}{out.suffix}"
    with replaced(out / name) as hidden:
        hidden.write_bytes(content)


def read_part(path: Path, arrays: Sequence[ResultArray]) -> dict[str, npt.NDArray[Any]]:
    """Return some arrays of a chunk."""
    names = [name for array in arrays for name in array.columns]
    try:
        content = path.read_bytes()
        if not path.stem.endswith(f"-{_digest(content)}"):
            raise ValueError("it is not what was written")
        if path.suffix == ".npz":
            with np.load(BytesIO(content), allow_pickle=False) as file:
                return {array.name: file[array.name] for array in arrays}
        import pandas as pd

        if path.suffix == ".csv":
            # Python reads numbers as they were written; pandas may err in the last bit.
            table = pd.read_csv(BytesIO(content), usecols=names, dtype=str, keep_default_na=False)
            kind: Any = object
        else:
            kind = None
            table = pd.read_parquet(BytesIO(content), columns=names)
        return {
            name: table[columns].to_numpy(kind).astype(dtype).reshape(-1, *shape)
            for name, shape, dtype, columns in arrays
        }
    except Exception as error:  # of NumPy, zipfile, pandas and pyarrow
        raise CheckpointError(
            f"{path} cannot be read: {error}. Delete it and repeat the call with checkpoint=True, "
            "which explains its rows again."
        ) from error


def finished_parts(out: Path) -> list[Part]:
    """Return the finished chunks in the order of their rows."""
    parts = []
    for path in sorted(out.glob(f"part-*{out.suffix}")):
        first, stop, data, _ = path.stem.split("-")[1:]
        parts.append(Part(int(first), int(stop), data, path))
    return parts


class StreamedValues:
    """The values of a stream of rows in files, which may still grow.

    Parameters
    ----------
    out : Path
        The folder of the values.
    rows : object, optional
        The explained rows, where they can be read again.
    """

    host: ClassVar[str] = ""

    def __init__(self, out: Path, rows: Any = None) -> None:
        self.out, self.rows = out, rows
        self._record, self._parts = read_record(out), list[Part]()
        for part in finished_parts(out):
            if part.first == self.n_rows:  # a gap ends what is finished
                self._parts.append(part)

    @classmethod
    def open(cls, out: str | Path) -> Self:
        """Open the results of a call that has ended, was stopped, or is still running.

        Parameters
        ----------
        out : str or Path
            The argument `out` of the call that wrote the results.

        Raises
        ------
        CheckpointError
            If there are no results, or those of another host.
        """
        path = checked_path("out", out)
        if not (path / RECORD).is_file():
            raise CheckpointError(
                f"out={str(out)!r}: there are no results of a stream. Pass the out= of a call that "
                "has finished at least one chunk."
            )
        opened = cls(path)
        if cls.host != opened._record.host:
            raise CheckpointError(
                f"out={str(out)!r} was written by {opened._record.host}, not by {cls.host}. Open "
                "it with the class of that host."
            )
        return opened

    def __iter__(self) -> Iterator[Any]:
        for part in self._parts:
            yield self[part.first : part.stop]

    def __getitem__(self, rows: Any) -> Any:
        """Return the results of a slice of rows in the form of the host."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        state = "complete" if self.is_complete else "not complete"
        return f"{type(self).__name__}({str(self.out)!r}: {self.n_rows:,} rows, {state})"

    @property
    def n_rows(self) -> int:
        """The number of finished rows."""
        return self._parts[-1].stop if self._parts else 0

    @property
    def is_complete(self) -> bool:
        """Whether all rows of the stream are finished."""
        return self._record.n_rows == self.n_rows

    @property
    def seed(self) -> int:
        """The seed of all random choices."""
        return int(self._record.about["seed"])

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The attributions, (R, shape of a row's attributions), read into memory."""
        return self.array("values")

    @property
    def base_values(self) -> npt.NDArray[np.float64]:
        """The values without any feature, (R,) or (R, K)."""
        return self.array("base_values")

    @property
    def standard_errors(self) -> npt.NDArray[np.float64] | None:
        """The standard errors, in the shape of the values; None if the call had none."""
        has_errors = any(array.name == "standard_errors" for array in self._record.arrays)
        return self.array("standard_errors") if has_errors else None

    @property
    def evaluations(self) -> npt.NDArray[np.int64]:
        """The coalitions evaluated for each row, (R,)."""
        return self.array("evaluations")

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return one of the stored arrays of all finished rows."""
        return self._arrays_of(0, self.n_rows, name)[name]

    def chunks(self) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Yield all arrays of one chunk after the other, in bounded memory."""
        for part in self._parts:
            yield read_part(part.path, self._record.arrays)

    def _arrays_of(
        self, first: int, stop: int, only: str | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of some rows, which may begin and end within chunks."""
        needed = [array for array in self._record.arrays if only in (None, array.name)]
        pieces = {array.name: [np.empty((0, *array.row_shape), array.dtype)] for array in needed}
        for part in self._parts:
            if part.first < stop and first < part.stop:
                for name, found in read_part(part.path, needed).items():
                    pieces[name].append(found[max(0, first - part.first) : stop - part.first])
        return {name: np.concatenate(arrays) for name, arrays in pieces.items()}

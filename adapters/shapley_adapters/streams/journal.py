"""The journal beside the results: a record of the call and of its finished chunks.

Each line is a record in JSON with a checksum. The first describes the call and the files, and draws
an identity that all others repeat; each further one is written after the data of a chunk are on
disk. A line that a stop cut off is dropped, so that its chunk counts as not finished. The files
hold no code.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from ..atomic_files import flush_to_disk, replaced
from ..errors import CheckpointError, InvalidArgumentTypeError
from ..torch_support.tensor_arrays import array_of, is_tensor

_LONGEST_TEXT = 60
"""Up to so many letters, an option is stored as it is; beyond, as a digest."""


FORMAT = 2
"""The version of the journal."""

_MOST_LINE_BYTES = 2**26


def text_of(value: Any) -> str:
    """Return a text that is the same in each process for the same value.

    Short values are shown as they are, arrays by shape, type and digest, modules of torch by the
    digest of their weights, functions and other objects by their names.
    """
    if value is None or isinstance(value, (bool, int, float, str, np.number)):
        text = repr(value.item() if isinstance(value, np.number) else value)
        return text if len(text) <= _LONGEST_TEXT else f"{text[:20]}… ({digest(text)})"
    if isinstance(value, Mapping):
        return _shortened("{", [f"{k!r}: {text_of(value[k])}" for k in value], "}")
    if isinstance(value, (list, tuple, set, frozenset)):
        texts = [text_of(item) for item in value]
        return _shortened("[", sorted(texts) if isinstance(value, (set, frozenset)) else texts, "]")
    if hasattr(value, "state_dict") and hasattr(value, "parameters"):
        return f"{_name_of(type(value))} with weights {_digest_of_module(value)}"
    if _is_data(value):
        dtype = "" if _is_frame(value) else f" {value.dtype}"
        return f"{type(value).__name__}{dtype} of shape {tuple(value.shape)} ({digest(value)})"
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return _name_of(value)
    if is_dataclass(value):
        of_fields = {field.name: getattr(value, field.name) for field in fields(value)}
        return f"{_name_of(type(value))} {text_of(of_fields)}"
    return _name_of(type(value))


def option_texts(owner: object, left_out: Collection[str]) -> dict[str, str]:
    """Return the texts of the options of an object, which are the parameters of its class."""
    names = inspect.signature(type(owner)).parameters
    return {name: text_of(getattr(owner, name)) for name in names if name not in left_out}


def digest(*parts: Any) -> str:
    """Return a digest of arrays, frames, sparse matrices, tensors or lists of rows.

    Raises
    ------
    InvalidArgumentTypeError
        If they hold objects whose content is unknown.
    """
    hasher = blake2b(digest_size=16)
    for part in parts:
        for data in _bytes_of(part):
            hasher.update(data)
    return hasher.hexdigest()


def check_same(path: object, earlier: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Refuse to go on with the results of another call; the error names each difference."""
    differences = [
        f"{name} was {earlier.get(name, 'not given')}, now it is {present.get(name, 'not given')}"
        for name in {**earlier, **present}
        if earlier.get(name) != present.get(name)
    ]
    if differences:
        raise CheckpointError(
            f"checkpoint=True cannot go on with {path}, which holds values of another call: "
            f"{'; '.join(differences)}. Repeat the call as it was, or choose another out=."
        )


def _bytes_of(part: Any) -> Iterator[bytes]:
    if scipy.sparse.issparse(part):
        csr = part.tocsr()
        yield b"sparse"
        for array in (csr.data, csr.indices, csr.indptr):
            yield from _bytes_of(np.asarray(array))
    elif _is_frame(part):
        yield repr(list(part.columns)).encode()
        for column in range(part.shape[1]):
            yield from _bytes_of(part.iloc[:, column].to_numpy())
    elif is_tensor(part):
        yield str(part.dtype).encode()
        yield from _bytes_of_array(array_of(part))
    else:
        yield from _bytes_of_array(np.asarray(part))


def _bytes_of_array(array: Any) -> Iterator[bytes]:
    yield f"{array.dtype.str}{array.shape}".encode()
    if array.dtype.kind != "O":
        yield np.ascontiguousarray(array).tobytes()
        return
    for item in array.ravel():
        # The text of these says all about them.
        is_plain = item is None or isinstance(item, (str, bytes, bool, int, float, complex))
        module = type(item).__module__.partition(".")[0]
        if not is_plain and module not in ("numpy", "pandas", "datetime", "decimal"):
            raise InvalidArgumentTypeError(
                "rows must hold numbers, texts or times, from which a checkpoint recognises them; "
                f"got {type(item).__name__}."
            )
        yield f"{type(item).__name__}:{item!r}\n".encode("utf-8", "surrogatepass")


def _is_data(value: Any) -> bool:
    is_array = isinstance(value, np.ndarray) or scipy.sparse.issparse(value)
    return is_array or _is_frame(value) or is_tensor(value)


def _is_frame(value: Any) -> bool:
    pandas = sys.modules.get("pandas")  # whoever has a frame has loaded it
    return pandas is not None and isinstance(value, pandas.DataFrame)


def _digest_of_module(module: Any) -> str:
    """Return a digest of the weights of a module of torch, and of its other stored data."""
    state = module.state_dict()
    digests = [digest(part) if _is_data(part) else text_of(part) for part in state.values()]
    return digest(repr([*zip(state, digests, strict=True)]))


def _name_of(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}".strip(".")


def _shortened(start: str, texts: list[str], end: str) -> str:
    text = f"{start}{', '.join(texts)}{end}"
    return text if len(text) <= 4 * _LONGEST_TEXT else f"{len(texts)} entries ({digest(text)})"


@dataclass(frozen=True)
class ResultArray:
    """One array of the results.

    Attributes
    ----------
    name : str
        Such as "values".
    row_shape : tuple of int
        The shape of a row's entry.
    dtype : str
        NumPy's name of the type of the numbers.
    columns : list of str, optional
        The names of the columns of a table; one column with all numbers of a row where None.
    """

    name: str
    row_shape: tuple[int, ...]
    dtype: str
    columns: list[str] | None = None


@dataclass(frozen=True)
class JournalHeader:
    """The first record: the call and its files.

    Attributes
    ----------
    host : str
        "shap" or "captum".
    arrays : list of ResultArray
        The arrays of the results.
    call : dict
        Texts that identify the call: the options, the seed, the budget.
    chunk_size : int
        Rows per chunk.
    about : dict
        Data of the host for the results, such as names of features.
    identity : str
        What the journal has in common with no other, not even with that of an equal call.
    """

    host: str
    arrays: list[ResultArray]
    call: dict[str, str]
    chunk_size: int
    about: dict[str, Any] = field(default_factory=dict)
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True)
class ChunkRecord:
    """A finished chunk.

    Attributes
    ----------
    first, n_rows : int
        Its first row and its number of rows.
    data : str
        The digest of the rows that were explained.
    results : str
        The digest of the results as they are on disk.
    warnings : dict
        The counts, from the first row on, for the warnings when all rows are finished.
    """

    first: int
    n_rows: int
    data: str
    results: str
    warnings: dict[str, Any]


@dataclass
class Journal:
    """A journal on disk.

    Attributes
    ----------
    path : Path
        The file.
    header : JournalHeader
        Its first record.
    chunks : list of ChunkRecord
        The finished chunks.
    is_complete : bool
        Whether the stream ended after them.
    """

    path: Path
    header: JournalHeader
    chunks: list[ChunkRecord] = field(default_factory=list)
    is_complete: bool = False
    _n_bytes: int = 0
    _n_bytes_cut_off: int = 0

    @classmethod
    def create(cls, path: Path, header: JournalHeader) -> Journal:
        """Write a journal without chunks; it appears whole or not at all."""
        line = _line({"format": FORMAT, **asdict(header)})
        with replaced(path) as part:
            part.write_bytes(line)
        return cls(path, header, _n_bytes=len(line))

    @classmethod
    def read(cls, path: Path) -> Journal:
        """Read a journal; drop a last line that a stop cut off.

        Raises
        ------
        CheckpointError
            If the file is no journal, was damaged, or has another version.
        """
        lines = path.read_bytes().splitlines(keepends=True)
        n_bytes = sum(map(len, lines))
        records = [_parsed(line) for line in lines]
        if not records or records[0] is None:
            raise damaged(path, "its first line cannot be read")
        if None in records[:-1]:
            raise damaged(path, f"line {records.index(None) + 1} cannot be read")
        if records[-1] is None:
            records, lines = records[:-1], lines[:-1]
        header, *later_records = records
        n_whole = sum(map(len, lines))
        journal = cls(
            path, _header(path, header), _n_bytes=n_whole, _n_bytes_cut_off=n_bytes - n_whole
        )
        for record in later_records:
            journal._take(record)
        return journal

    @property
    def n_rows(self) -> int:
        """The number of finished rows."""
        return self.chunks[-1].first + self.chunks[-1].n_rows if self.chunks else 0

    def add(self, chunk: ChunkRecord) -> None:
        """Record a finished chunk."""
        self._append(asdict(chunk))
        self.chunks.append(chunk)

    def complete(self) -> None:
        """Record that the stream has ended."""
        self._append({"complete": self.n_rows})
        self.is_complete = True

    def _append(self, record: dict[str, Any]) -> None:
        line = _line({"identity": self.header.identity, **record})
        with open(self.path, "r+b") as file:
            # A second line of defence, where a file system has no locks.
            if file.seek(0, os.SEEK_END) != self._n_bytes + self._n_bytes_cut_off:
                raise damaged(self.path, "another call has written to it")
            file.truncate(self._n_bytes)
            file.seek(self._n_bytes)
            file.write(line)
            flush_to_disk(file)
        self._n_bytes, self._n_bytes_cut_off = self._n_bytes + len(line), 0

    def _take(self, record: Any) -> None:
        """Add a record that was read."""
        if self.is_complete:
            raise damaged(self.path, "it goes on after its end")
        if record.get("identity") != self.header.identity:
            raise damaged(self.path, "another call has written to it")
        if "complete" in record:
            self.is_complete = True
            is_next = record["complete"] == self.n_rows
        else:
            chunk = _chunk(self.path, record)
            is_next = chunk.first == self.n_rows and chunk.n_rows > 0
            self.chunks.append(chunk)
        if not is_next:
            raise damaged(self.path, "its chunks do not follow each other")


def damaged(path: Path, reason: str) -> CheckpointError:
    """Return the error about a file that was changed."""
    return CheckpointError(
        f"{path} is damaged: {reason}. Copy the original files again, or delete them and explain "
        "the rows again."
    )


def _line(record: dict[str, Any]) -> bytes:
    text = json.dumps(record).encode()
    return text + b"\t" + _checksum(text) + b"\n"


def _checksum(text: bytes) -> bytes:
    return blake2b(text, digest_size=8).hexdigest().encode()


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line; None if the line is not as it was written."""
    text, _, checksum = line.rstrip(b"\n").rpartition(b"\t")
    is_whole = line.endswith(b"\n") and len(line) < _MOST_LINE_BYTES
    if not is_whole or checksum != _checksum(text):
        return None
    record = json.loads(text)
    return record if isinstance(record, dict) else None


def _header(path: Path, record: Any) -> JournalHeader:
    if record.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has the format {record.get('format')!r}, this version of shapley-ext reads "
            f"format {FORMAT}. Use the version that wrote it, or explain the rows again."
        )
    try:
        arrays = [
            ResultArray(
                str(of["name"]), tuple(map(int, of["row_shape"])), of["dtype"], of["columns"]
            )
            for of in record["arrays"]
        ]
        call = {str(name): str(text) for name, text in record["call"].items()}
        size = int(record["chunk_size"])
        about, identity = dict(record["about"]), str(record["identity"])
        return JournalHeader(str(record["host"]), arrays, call, size, about, identity)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path, "its first line lacks a part") from error


def _chunk(path: Path, record: Any) -> ChunkRecord:
    try:
        return ChunkRecord(
            int(record["first"]),
            int(record["n_rows"]),
            str(record["data"]),
            str(record["results"]),
            dict(record["warnings"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, "a record of a chunk lacks a part") from error

"""What remote models have answered: a file of outputs by digests of the questions."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from hashlib import blake2s
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from .errors import CheckpointError, InvalidArgumentTypeError, warn_user
from .torch_support.tensor_arrays import array_of, is_tensor

LONGEST_WAIT = 30.0
"""Seconds that one waits for another process that writes to the file, and between two calls."""


_TABLE = "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer BLOB) WITHOUT ROWID"


@dataclass
class AnswerMemory:
    """A database of outputs that were paid for, by digests of the model's name and of rows.

    Whatever asks for the same row finds its output: the same call after it was interrupted, a
    larger budget, another estimator, another process.
    """

    path: Path
    name: str
    held: dict[bytes, bytes] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the file, or refuse one of others."""
        if self.path.is_dir():
            self.path /= "outputs.db"
        with self._database() as database:
            tables = database.execute("SELECT name FROM sqlite_master").fetchall()
            if set(tables) - {(b"answers",)}:
                raise CheckpointError(
                    f"memory={str(self.path)!r} is a database of another program. Choose another "
                    "file."
                )
            database.execute(_TABLE)

    def turn(self) -> Any:
        """Return the lock of a batch; the system opens it however the process ends."""
        from filelock import FileLock

        return FileLock(f"{self.path}.lock")

    def keys(self, inputs: Sequence[Any], n_rows: int) -> list[bytes]:
        """Return a digest of each row, with what all rows share."""
        try:
            are_divided = with_entries_of_rows(inputs, n_rows)
            divided = compress(inputs, are_divided)
            shared = [
                None if one else value for one, value in zip(are_divided, inputs, strict=True)
            ]
            question = _content([self.name, *shared])
            rows = zip(*map(_row_contents, divided), strict=True)
            return [_digest(question)[:N_SHARED] + _digest(question, *row) for row in rows]
        except InvalidArgumentTypeError as error:
            raise InvalidArgumentTypeError(
                "memory= recognises rows by their content, which must be numbers, texts or times; "
                f"got {error}. Convert the others inside call=, or leave memory= out."
            ) from error

    def find(self, keys: Sequence[bytes]) -> dict[bytes, npt.NDArray[Any]]:
        """Return the outputs that are known and not damaged, each with an axis of one row."""
        self.write()
        kept, known = {key: self.held[key] for key in keys if key in self.held}, {}
        with self._database() as database:
            for key in keys:
                query = "SELECT key, answer FROM answers WHERE key = ?"
                kept.update(database.execute(query, (key,)))
        for key, answer in kept.items():
            checksum, content = answer[:_N_BYTES], answer[_N_BYTES:]
            if checksum == _digest(key, content):
                head, _, numbers = content.partition(b"\n")
                dtype, *sizes = head.decode().split()
                known[key] = np.frombuffer(numbers, dtype).reshape(1, *map(int, sizes))
        if len(known) < len(kept):
            warn_user(
                f"{len(kept) - len(known)} outputs in memory={str(self.path)!r} are damaged; they "
                "are asked for again."
            )
        return known

    def hold(self, outputs: Mapping[bytes, npt.NDArray[Any]]) -> None:
        """Hold outputs in this process until they are written."""
        for key, rows in outputs.items():
            head = " ".join([rows.dtype.str, *map(str, rows.shape[1:])])
            content = head.encode() + b"\n" + rows.tobytes()
            self.held[key] = _digest(key, content) + content

    def write(self) -> None:
        """Write what is held; without room on the disk, hold it until there is some."""
        held = self.held.copy()
        try:
            if held:
                with self._database() as database:
                    rows = held.items()
                    database.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", rows)
            for key in held:
                self.held.pop(key, None)
        except CheckpointError as error:
            if not isinstance(error.__cause__, sqlite3.OperationalError):
                raise
            warn_user(
                f"{error} Outputs are held by this process until they can be written; when it "
                "ends before, a repeated call pays for them again."
            )

    def forget(self, keys: Sequence[bytes] | None) -> None:
        """Forget some outputs, or all."""
        with self._database() as database:
            if keys is None:
                self.held.clear()
                database.execute("DELETE FROM answers")
            else:
                for key in keys:
                    self.held.pop(key, None)
                database.executemany("DELETE FROM answers WHERE key = ?", [(k,) for k in keys])

    def forget_unlike(self, key: bytes) -> bool:
        """Forget answers of another shape than most, to what a key asks for other rows.

        Return whether there were any.
        """
        shared = key[:N_SHARED]
        with self._database() as database:
            query = "SELECT key, answer FROM answers WHERE substr(key, 1, ?) = ?"
            answers = database.execute(query, (N_SHARED, shared)).fetchall()
        heads = {key: answer[_N_BYTES:].partition(b"\n")[0].split()[1:] for key, answer in answers}
        (wanted, _), *_ = Counter(map(tuple, heads.values())).most_common(1)
        unlike = [key for key, sizes in heads.items() if tuple(sizes) != wanted]
        self.forget(unlike)
        return bool(unlike)

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, LONGEST_WAIT)) as database, database:
                database.text_factory = bytes  # one bit makes a text of bytes
                yield database
        except sqlite3.Error as error:
            advice = "Is the disk full, or another process stopped that uses it?"
            raise CheckpointError(
                f"memory={str(self.path)!r} cannot be used: {error}. {advice}"
            ) from error


def length_of(value: Any) -> int | None:
    """Return the number of entries of an argument; None if it has none, or is a text."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    return len(value) if isinstance(value, (list, tuple)) else None


def with_entries_of_rows(inputs: Sequence[Any], n_rows: int) -> list[bool]:
    """Return which arguments have an entry for each row, by their lengths.

    Beside a tensor only tensors have, as in captum, whose methods mark those that have not.
    """
    are_tensors = is_tensor(inputs[0])
    return [
        length_of(value) == n_rows
        and (is_tensor(value) or not are_tensors)
        and not getattr(value, "is_for_all_rows", False)
        for value in inputs
    ]


_N_BYTES = blake2s().digest_size

N_SHARED = 8
"""Bytes at the beginning of a key for the model's name and what all rows share."""


def _digest(*parts: bytes) -> bytes:
    return blake2s(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).digest()


def _content(value: Any) -> bytes:
    """Return bytes that are equal only where the types and the values are."""
    if is_tensor(value):
        return str(value.dtype).encode() + _content(array_of(value))
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind in "biufcmM":
            return f"{value.dtype.str} {value.shape} ".encode() + value.tobytes()
        value = value.tolist()  # types of texts hold the length of the longest, another row's
    if isinstance(value, (list, tuple)):
        return _digest(b"sequence", *map(_content, value))
    if isinstance(value, frozenset):
        return _digest(b"set", *sorted(map(_content, value)))
    if isinstance(value, Mapping):
        return _digest(b"mapping", *sorted(_content(item) for item in value.items()))
    plain = (str, bytes, int, float, complex, date, timedelta, type(None))
    if isinstance(value, plain) or type(value).__name__ in ("NAType", "Decimal"):
        return f"{type(value).__name__} {value!r}".encode("utf-8", "surrogatepass")
    raise InvalidArgumentTypeError(type(value).__name__)


def _row_contents(value: Any) -> list[bytes]:
    """Return the content of each row, with the names and the types of columns."""
    head: list[Any] = []
    if hasattr(value, "iloc"):
        types = value.dtypes if hasattr(value, "columns") else [value.dtype]
        head = [*getattr(value, "columns", []), *map(str, types)]
        value = value.to_numpy(dtype=object).reshape(len(value), -1)
    elif is_tensor(value):
        head, value = [str(value.dtype)], array_of(value)
    elif scipy.sparse.issparse(value):
        value = value.toarray()
    return [_content(head) + _content(row) for row in value]

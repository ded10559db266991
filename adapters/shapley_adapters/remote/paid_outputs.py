"""A file of the outputs that were paid for: atomic, for several processes, and without code.

It is a database of SQLite. A row's key is a digest of the name of the model and of
the row itself, so that whatever asks for the same row finds its output: the same call after it was
interrupted, a larger budget, another estimator, another process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import CheckpointError, InvalidArgumentTypeError, ModelOutputError, warn_user
from ..ownership import Owner
from ..torch_support.tensor_arrays import array_of
from .model_rows import keys_of_rows

_FORMAT = 0x5348_5031
"""Marks the file as ours, with its version: `application_id` of SQLite."""

_SECONDS_TO_WAIT = 60.0
"""For another process that is writing."""

_NAME_IN_FOLDER = "outputs.db"

_KEYS_AT_ONCE = 500
"""SQLite takes up to 999 values in a statement."""

_DROPPED = 10
"""One in so many outputs is dropped where the file is too large."""

_TABLES = """
CREATE TABLE IF NOT EXISTS outputs (
    number INTEGER PRIMARY KEY, key BLOB UNIQUE NOT NULL,
    dtype TEXT NOT NULL, shape TEXT NOT NULL, numbers BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS users (
    process INTEGER, host TEXT, user TEXT, since TEXT, PRIMARY KEY (process, host)
);
"""


_Entry: TypeAlias = tuple[bytes, str, str, bytes]
"""The key of a row, and the type, the shape and the bytes of its output."""


@dataclass
class PaidOutputs:
    """The outputs of a model by its rows.

    Attributes
    ----------
    path : Path
        The file; it is made if it does not exist.
    name : str
        The model and its version.
    max_bytes : int
        The size from which on the oldest outputs are dropped.
    """

    path: Path
    name: str
    max_bytes: int
    _is_warned: bool = field(default=False, init=False, repr=False)
    _held: dict[bytes, _Entry] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the file, or refuse one of others."""
        if self.path.is_dir():
            self.path /= _NAME_IN_FOLDER
        with self._database() as database:
            (found,) = database.execute("PRAGMA application_id").fetchone()
            tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if found != _FORMAT and (found or tables):
                raise CheckpointError(
                    f"memory={str(self.path)!r} is a database of another program or version. "
                    "Choose another file."
                )
            database.execute("PRAGMA journal_mode = WAL")
            database.execute(f"PRAGMA application_id = {_FORMAT}")
            database.executescript(_TABLES)
            ended = [user for user in _users_in(database) if not user.may_live]
            for user in ended:
                database.execute(
                    "DELETE FROM users WHERE process = ? AND host = ?", (user.process, user.host)
                )
            database.execute(
                "INSERT OR REPLACE INTO users VALUES (?, ?, ?, ?)", astuple(Owner.current())
            )

    def keys(self, inputs: Sequence[Any], n_rows: int) -> list[bytes]:
        """Return the key of each row."""
        try:
            return keys_of_rows(self.name, inputs, n_rows)
        except InvalidArgumentTypeError as error:
            raise InvalidArgumentTypeError(
                "memory= recognises rows by their content, which must be numbers, texts or times. "
                "Convert the others inside call=, or leave memory= out."
            ) from error

    def find(self, keys: Sequence[bytes]) -> dict[bytes, npt.NDArray[Any]]:
        """Return the outputs that are known."""
        if self._held:
            self._write([])
        held = self._held
        known = {key: self._read(*held[key][1:]) for key in keys if key in held}
        unique = [key for key in dict.fromkeys(keys) if key not in known]
        with self._database() as database:
            for start in range(0, len(unique), _KEYS_AT_ONCE):
                some = unique[start : start + _KEYS_AT_ONCE]
                marks = ",".join("?" * len(some))
                query = f"SELECT key, dtype, shape, numbers FROM outputs WHERE key IN ({marks})"
                for key, dtype, shape, numbers in database.execute(query, some):
                    known[key] = self._read(dtype, shape, numbers)
        return known

    def keep(self, keys: Sequence[bytes], output: Any) -> npt.NDArray[Any]:
        """Keep the outputs of some rows, and return them as an array.

        If the disk is full, this process holds them until it has room, with a warning.
        """
        array = np.asarray(array_of(output))
        if array.dtype.kind not in "biuf":
            raise ModelOutputError(
                f"memory= keeps numbers; call returned {array.dtype} entries. Return numbers, or "
                "leave memory= out."
            )
        shape = ",".join(map(str, array.shape[1:]))
        entries = [
            (key, array.dtype.str, shape, np.ascontiguousarray(row).tobytes())
            for key, row in zip(keys, array, strict=True)
        ]
        if self._held:  # the next batch tries to write them
            self._held.update((entry[0], entry) for entry in entries)
        else:
            self._write(entries)
        return array

    def _write(self, entries: list[_Entry]) -> None:
        """Write outputs and those that are held, or hold them all."""
        held = list(self._held.values())
        try:
            with self._database(0.1 if held else _SECONDS_TO_WAIT) as database:
                database.executemany(
                    "INSERT OR IGNORE INTO outputs (key, dtype, shape, numbers) "
                    "VALUES (?, ?, ?, ?)",
                    held + entries,
                )
                self._drop_oldest(database)
        except CheckpointError as error:
            if not isinstance(error.__cause__, sqlite3.OperationalError):
                raise
            self._held.update((entry[0], entry) for entry in entries)
            if not self._is_warned:
                self._is_warned = True
                warn_user(
                    f"{error} Outputs are held by this process until they can be written; when it "
                    "ends before, a repeated call pays for them again."
                )
        else:
            for entry in held:
                self._held.pop(entry[0], None)

    def clear(self) -> None:
        """Forget the outputs of all models."""
        self._held.clear()
        with self._database() as database:
            database.execute("DELETE FROM outputs")

    def _drop_oldest(self, database: sqlite3.Connection) -> None:
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        if (pages - free) * size > self.max_bytes:
            database.execute(
                "DELETE FROM outputs WHERE number IN (SELECT number FROM outputs ORDER BY number "
                f"LIMIT 1 + (SELECT count(*) FROM outputs) / {_DROPPED})"
            )

    def _read(self, dtype: str, shape: str, numbers: bytes) -> npt.NDArray[Any]:
        try:
            kept = np.dtype(dtype)
            if kept.kind not in "biuf":
                raise ValueError(f"{dtype} is no type of numbers")
            sizes = [int(size) for size in shape.split(",") if size]
            return np.frombuffer(numbers, kept).reshape(sizes)
        except (TypeError, ValueError) as error:
            raise CheckpointError(
                f"memory={str(self.path)!r} is damaged: {error}. Remove the file; its outputs are "
                "asked for again."
            ) from error

    @contextmanager
    def _database(self, timeout: float | None = None) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction; it takes a fifth of a millisecond."""
        seconds = _SECONDS_TO_WAIT if timeout is None else timeout
        try:
            with closing(sqlite3.connect(self.path, timeout=seconds)) as database:
                database.execute("PRAGMA synchronous = NORMAL")
                with database:
                    yield database
        except sqlite3.Error as error:
            advice = self._other_users() if "locked" in str(error) else ""
            if "disk" in str(error):  # "database or disk is full", "disk I/O error"
                advice = " Is the disk full? What is kept stays; free some space and go on."
            raise CheckpointError(
                f"memory={str(self.path)!r} cannot be used: {error}.{advice}"
            ) from error

    def _other_users(self) -> str:
        """Name the processes that may hold the lock, which they do for a moment only."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(self.path, timeout=0)) as database:
            users = [user for user in _users_in(database) if user.may_live and not user.is_current]
            if users:
                return f" It is used by {'; '.join(map(str, users))}. Is one of them stopped?"
        return ""


def _users_in(database: sqlite3.Connection) -> list[Owner]:
    """Return the processes that have opened the file."""
    rows = database.execute("SELECT process, host, user, since FROM users ORDER BY since")
    return [Owner(*row) for row in rows]

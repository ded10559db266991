"""Calls that explain a part of the user's rows: a chunk of a stream, or a batch of a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import SupportsInt

_first_row: ContextVar[int | None] = ContextVar("first_row", default=None)


@contextmanager
def rows_counted_from(first: int | None) -> Iterator[None]:
    """Count the rows of the calls in this block from `first` in all messages; None: of all rows."""
    token = _first_row.set(first)
    try:
        yield
    finally:
        _first_row.reset(token)


def row_number(row: SupportsInt) -> int:
    """Return the number by which messages name a row of the present call."""
    return int(row) + (_first_row.get() or 0)


def first_row() -> int | None:
    """Return the number of the first row of a part of the user's rows; None for all rows."""
    return _first_row.get()

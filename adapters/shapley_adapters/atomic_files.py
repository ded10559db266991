"""Files that appear whole or not at all: a full disk or a kill leaves the former file as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replaced(path: Path | str) -> Iterator[Path]:
    """Yield the path of a hidden file, which replaces `path` in one step where no error came.

    Its name begins with an underscore: readers of folders of Parquet skip such files.
    """
    path = Path(path).resolve()  # a link stays one
    part = path.with_name(f"_{path.name}")
    try:
        yield part
        with open(part, "rb+") as file:
            flush_to_disk(file)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    flush_folder(path.parent)


def flush_to_disk(file: Any) -> None:
    """Wait until the written data of a file are on disk."""
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where the system can do that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The lock beside the results, which one call at a time holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import CheckpointError


@contextmanager
def only_writer(out: Path) -> Iterator[None]:
    """Hold the lock of the results; the system opens it when the process ends, however it ends.

    Raises
    ------
    CheckpointError
        If another call holds it.
    """
    path = out.with_name(out.name + ".lock")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise CheckpointError(
            f"out={str(out)!r}: another call is writing there, in this process or another. Wait "
            "until it has ended, or choose another out=."
        ) from None
    try:
        yield
    finally:
        # While it is held: FileLock takes no lock whose file is gone. Windows removes it itself.
        with suppress(OSError):
            path.unlink()
        lock.release()

"""Who writes a file: one process at a time, which messages name."""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from .errors import CheckpointError


@dataclass(frozen=True)
class Owner:
    """A process that uses a file.

    Attributes
    ----------
    process : int
        Its number.
    host, user : str
        The machine and the user.
    since : str
        When it began to use the file, in local time.
    """

    process: int
    host: str
    user: str
    since: str

    @classmethod
    def current(cls) -> Owner:
        """Return this process."""
        try:
            user = getpass.getuser()
        except (OSError, KeyError):  # an account without a name, as in containers
            user = "unknown"
        now = datetime.now().astimezone().isoformat(" ", "seconds")
        return cls(os.getpid(), socket.gethostname(), user, now)

    def __str__(self) -> str:
        """Name the process for a message."""
        this = " (this one)" if self.is_current else ""
        return f"process {self.process}{this} of {self.user} on {self.host}, since {self.since}"

    @property
    def is_current(self) -> bool:
        """Whether it is this process."""
        return (self.process, self.host) == (os.getpid(), socket.gethostname())

    @property
    def may_live(self) -> bool:
        """Whether it may be running: false only for a process of this machine that has ended."""
        if self.host != socket.gethostname() or os.name != "posix":
            return True
        try:
            os.kill(self.process, 0)  # sends nothing
        except ProcessLookupError:
            return False
        except PermissionError:  # of another user
            return True
        return True


@contextmanager
def only_owner(path: Path, name: str) -> Iterator[None]:
    """Hold the lock of a file; the system opens it when the process ends, however it ends.

    Parameters
    ----------
    path : Path
        The file. The lock and the name of its owner are beside it.
    name : str
        The argument that names the file, for messages.

    Raises
    ------
    CheckpointError
        If another call holds it.
    """
    from filelock import FileLock, Timeout

    path_of_lock, path_of_owner = (
        path.with_name(path.name + suffix) for suffix in (".lock", ".owner")
    )
    lock = FileLock(path_of_lock)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise CheckpointError(
            f"{name}={str(path)!r}: another call is writing there: {_owner_in(path_of_owner)}. "
            f"Wait until it has ended, or choose another {name}=."
        ) from None
    try:
        with suppress(OSError):  # it only makes messages better
            path_of_owner.write_text(json.dumps(asdict(Owner.current())), encoding="utf-8")
        yield
    finally:
        # While it is held: FileLock takes no lock whose file is gone. Windows removes it itself.
        for file in (path_of_owner, path_of_lock):
            with suppress(OSError):
                file.unlink()
        lock.release()


def _owner_in(path: Path) -> str:
    """Return who holds a lock; it may be about to write its name."""
    try:
        return str(Owner(**json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, TypeError, ValueError):
        return "in this process or another"

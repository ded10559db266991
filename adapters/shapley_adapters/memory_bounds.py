"""How much memory an estimate may take."""

from __future__ import annotations

import os
from pathlib import Path

_SHARE = 0.5
"""Share of the machine's memory: the model, its inputs and the user's data need the rest."""

_WHERE_UNKNOWN = 2**33
"""What is allowed where the system does not say how much there is."""

_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def memory_limit() -> int:
    """Return how many bytes an estimate may take: half of the machine's or the container's."""
    found = [bytes_there for bytes_there in (_of_machine(), _of_container()) if bytes_there]
    return int(_SHARE * min(found)) if found else _WHERE_UNKNOWN


def _of_machine() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # as on Windows
        return None


def _of_container() -> int | None:
    try:
        limit = _CONTAINER.read_text().strip()
    except OSError:
        return None
    return int(limit) if limit.isdigit() else None

"""The memory that an estimate may use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

MAX_INPUT_BYTES = 2**26
"""The most bytes of a batch of inputs in the memory of the machine."""

_SHARE = 0.5
"""Share of the machine's memory: the model, its inputs and the user's data need the rest."""

_WHERE_UNKNOWN = 2**33
"""The limit if the system does not report its memory."""

_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def memory_limit() -> int:
    """Return the bytes that an estimate may use: half of the machine's or the container's."""
    sizes = []
    with suppress(AttributeError, OSError, ValueError):  # as on Windows
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # where there is no container, or it has no limit
        sizes.append(int(_CONTAINER.read_text()))
    return int(_SHARE * min(sizes)) if sizes else _WHERE_UNKNOWN

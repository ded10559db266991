"""Locks for what belongs to users and keeps state between calls."""

from __future__ import annotations

import threading
import weakref
from typing import Any

_registering = threading.Lock()
_locks: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def lock_of(thing: object) -> Any:
    """Return the lock of an object: the same for all explainers and threads that share it.

    The caller keeps `thing` alive while it holds the lock, so that no other object can take over
    its identity. A thread may take the lock again, as a masker does that explains something.
    """
    with _registering:
        lock = _locks.get(id(thing))
        if lock is None:
            lock = _locks[id(thing)] = threading.RLock()
        return lock

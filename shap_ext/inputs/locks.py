"""Locks for objects of users that have state between calls."""

from __future__ import annotations

import threading
import weakref
from typing import Any

_registering = threading.Lock()
_locks: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def lock_of(thing: object) -> Any:
    """Return the lock of an object: the same for all explainers and threads that share it.

    The caller must keep a reference to `thing` while it holds the lock, so that no other object can
    have the same id. A thread may take the lock twice, for example in a masker that calls an
    explainer.
    """
    with _registering:
        lock = _locks.get(id(thing))
        if lock is None:
            lock = _locks[id(thing)] = threading.RLock()
        return lock

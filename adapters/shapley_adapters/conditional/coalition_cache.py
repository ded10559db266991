"""Arrays that depend on a coalition only, computed once for all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..array_types import BoolArray

_CACHE_BYTES = 2**27


@dataclass
class CoalitionCache:
    """The latest arrays, or other things with `nbytes`, of keys such as coalitions.

    Threads may share a cache: entries are only replaced by equal ones. Copies in other processes
    start empty.

    Attributes
    ----------
    compute : callable
        Returns those of keys, (n, D). That of a key must not depend on the others.
    """

    compute: Callable[[npt.NDArray[Any]], Sequence[Any] | npt.NDArray[Any]]
    _known: dict[bytes, Any] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, keys: BoolArray | npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return the arrays of keys, (P, …)."""
        return np.stack(self.entries(keys))

    def entries(self, keys: BoolArray | npt.NDArray[np.int64]) -> list[Any]:
        """Return what is computed of each key."""
        names = [key.tobytes() for key in keys]
        known = self._known
        firsts = {name: index for index, name in enumerate(names) if name not in known}
        if firsts:
            computed = self.compute(keys[list(firsts.values())])
            # A new dictionary, because another thread may read the old one.
            known = known | dict(zip(firsts, computed, strict=True))
            if len(known) * computed[0].nbytes <= _CACHE_BYTES:
                self._known = known
            else:
                self._known = {}
        return [known[name] for name in names]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the arrays out: they may be large, and are computed again."""
        return {"compute": self.compute, "_known": {}}

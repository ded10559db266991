"""All items, in the order of the papers."""

from __future__ import annotations

from . import (
    everybody,
    neighbours,
    shear,
    shear_criteo,
)

ITEMS = (
    *shear.ITEMS,
    *shear_criteo.ITEMS,
    *neighbours.ITEMS,
    *everybody.ITEMS,
)

"""All items, in the order of the papers."""

from __future__ import annotations

from . import (
    everybody,
    neighbours,
    poster,
    shear,
    shear_criteo,
)

ITEMS = (
    *shear.ITEMS,
    *shear_criteo.ITEMS,
    *neighbours.ITEMS,
    *poster.ITEMS,
    *everybody.ITEMS,
)

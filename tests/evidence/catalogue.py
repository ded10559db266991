"""All items, in the order of the papers."""

from __future__ import annotations

from . import (
    everybody,
    neighbours,
    shear,
)

ITEMS = (
    *shear.ITEMS,
    *neighbours.ITEMS,
    *everybody.ITEMS,
)

"""All items, in the order of the papers."""

from __future__ import annotations

from . import neighbours, shear

ITEMS = (*shear.ITEMS, *neighbours.ITEMS)

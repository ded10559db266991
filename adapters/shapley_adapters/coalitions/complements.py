"""Pairs of complements among coalitions."""

from __future__ import annotations

import numpy as np

from ..array_types import BoolArray, CoalitionArray, IntArray
from .tables import pack


def complements(
    coalitions: CoalitionArray, drawn: BoolArray | None = None
) -> tuple[IntArray, IntArray]:
    """Return the indices of one coalition of each pair of complements, and of the other or −1.

    With draws, (C, D), the two of a pair have the same.

    Those of coalitions, (C, M), of which that of no player is the first, that of all the second.
    The pair of these two comes first, with all players as the first of it.
    """
    positions = {key.tobytes(): index for index, key in enumerate(pack(coalitions))}
    others = np.array([positions.get(key.tobytes(), -1) for key in pack(~coalitions)])
    if drawn is not None:
        others[(drawn != drawn[others]).any(axis=1)] = -1
    others[:2] = 1, 0
    indices = np.arange(len(others))
    first = np.flatnonzero((others < 0) | (others > indices))
    first = np.concatenate([[1], first[first > 1]])
    return first, others[first]

"""The global generators of Python and NumPy, from which functions of baselines draw."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def seeded_draws(seed: int | None) -> Iterator[None]:
    """Let the block draw from a seed; restore the user's generators after. None changes nothing."""
    if seed is None:
        yield
        return
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.set_state(np.random.RandomState(np.random.MT19937(seed)).get_state())  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002

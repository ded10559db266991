"""The global generators of Python and NumPy, from which code of others draws."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def global_generator(state: Any) -> Iterator[None]:
    """Let the block draw from NumPy's global generator in a state, and restore it afterwards."""
    before = np.random.get_state()  # noqa: NPY002
    try:
        np.random.set_state(state)  # noqa: NPY002
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def state_of(seed: int | None) -> Any:
    """Return the state of NumPy's global generator of a seed."""
    return np.random.RandomState(np.random.MT19937(seed)).get_state()


@contextmanager
def seeded_draws(seed: int | None) -> Iterator[None]:
    """Let the block draw from a seed; restore the user's generators after. None changes nothing."""
    if seed is None:
        yield
        return
    before = random.getstate()
    random.seed(seed)
    try:
        with global_generator(state_of(seed)):
            yield
    finally:
        random.setstate(before)

"""NumPy's global generator, from which shap's explainers and plots draw, restored afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def restored_generator() -> Iterator[None]:
    """Restore NumPy's global generator after the block."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


@contextmanager
def seeded_generator(seed: int) -> Iterator[None]:
    """Let the block draw from a global generator of a seed, and restore the user's afterwards."""
    with restored_generator():
        np.random.set_state(state_of(seed))  # noqa: NPY002
        yield


def state_of(seed: int | None) -> Any:
    """Return the state of a global generator of a seed."""
    return np.random.RandomState(np.random.MT19937(seed)).get_state()

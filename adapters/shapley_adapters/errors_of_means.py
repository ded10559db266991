"""Means over draws, and their standard errors."""

from __future__ import annotations

import numpy as np

from .array_types import FloatArray


def mean_and_error(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean over axis 1 and its standard error; NaN if there are too few draws."""
    n = draws.shape[1]
    unknown = np.full((len(draws), *draws.shape[2:]), np.nan)
    mean = draws.mean(axis=1) if n else unknown
    return mean, draws.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else unknown

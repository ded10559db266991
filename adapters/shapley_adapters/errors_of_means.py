"""Standard errors of means over draws, and of sums and differences of estimates."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array_types import FloatArray


def mean_and_error(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean over axis 1 and its standard error; NaN if there are too few draws."""
    n = draws.shape[1]
    unknown = np.full((len(draws), *draws.shape[2:]), np.nan)
    mean = draws.mean(axis=1) if n else unknown
    return mean, draws.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else unknown


def errors_of_sums(first: Any, second: Any, are_independent: bool) -> Any:
    """Return the standard error of a sum or difference of two estimates.

    The root of the sum of squares if the errors are independent. Otherwise the sum of the errors,
    which is the largest that any correlation allows. The same rule holds for half widths of
    intervals.
    """
    return np.hypot(first, second) if are_independent else first + second

"""Equality of values, where missing ones are equal to each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapley_adapters.array_types import BoolArray


def same(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> BoolArray:
    """Compare exactly; missing values are the same as each other."""
    if "O" not in first.dtype.kind + second.dtype.kind:
        same_values: BoolArray = np.equal(first, second)
        if first.dtype.kind in "fcmM" and second.dtype.kind in "fcmM":
            same_values |= pd.isna(first) & pd.isna(second)
        return same_values
    either, both = pd.isna(first) | pd.isna(second), pd.isna(first) & pd.isna(second)
    equal = np.equal(first, second, dtype=object)
    result: BoolArray = np.where(either, both, equal).astype(bool)
    return result

"""Exact equality of values; missing values are equal to each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapley_adapters.array_types import BoolArray


def same(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> BoolArray:
    """Return where values are equal; missing values are equal, 0.0 and -0.0 are not.

    The output of a model may depend on the sign of zero, for example after a division.
    """
    if "O" not in first.dtype.kind + second.dtype.kind:
        same_values: BoolArray = np.equal(first, second)
        if sorted(first.dtype.kind + second.dtype.kind) in (["f", "f"], ["f", "i"], ["f", "u"]):
            same_values &= (first != 0) | (np.signbit(first) == np.signbit(second))
        if first.dtype.kind in "fcmM" and second.dtype.kind in "fcmM":
            same_values |= pd.isna(first) & pd.isna(second)
        return same_values
    any_missing, both_missing = pd.isna(first) | pd.isna(second), pd.isna(first) & pd.isna(second)
    equal = np.equal(first, second, dtype=object) & _same_signs(first, second)
    result: BoolArray = np.where(any_missing, both_missing, equal).astype(bool)
    return result


def _sign_of_zero(value: object) -> bool:
    return isinstance(value, (float, np.floating)) and value == 0 and bool(np.signbit(value))


def _same_signs(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> BoolArray:
    """Return where objects are not two zeros with different signs."""
    negative = np.frompyfunc(_sign_of_zero, 1, 1)
    signs: BoolArray = negative(first) == negative(second)
    return signs.astype(bool)

"""Equality of values, where missing ones are equal to each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapley_adapters.array_types import BoolArray


def same(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> BoolArray:
    """Compare exactly; missing values are the same as each other, 0.0 and -0.0 are not.

    A model tells zeros of two signs apart where it divides by them or takes their angle.
    """
    if "O" not in first.dtype.kind + second.dtype.kind:
        same_values: BoolArray = np.equal(first, second)
        if sorted(first.dtype.kind + second.dtype.kind) in (["f", "f"], ["f", "i"], ["f", "u"]):
            same_values &= (first != 0) | (np.signbit(first) == np.signbit(second))
        if first.dtype.kind in "fcmM" and second.dtype.kind in "fcmM":
            same_values |= pd.isna(first) & pd.isna(second)
        return same_values
    either, both = pd.isna(first) | pd.isna(second), pd.isna(first) & pd.isna(second)
    equal = np.equal(first, second, dtype=object) & _same_signs(first, second)
    result: BoolArray = np.where(either, both, equal).astype(bool)
    return result


def _sign_of_zero(value: object) -> bool:
    return isinstance(value, (float, np.floating)) and value == 0 and bool(np.signbit(value))


def _same_signs(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> BoolArray:
    """Tell where objects are not two zeros of different signs."""
    negative = np.frompyfunc(_sign_of_zero, 1, 1)
    signs: BoolArray = negative(first) == negative(second)
    return signs.astype(bool)

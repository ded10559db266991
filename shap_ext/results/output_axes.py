"""The axis of outputs: the last one in shap's arrays, before the features in the core's."""

from __future__ import annotations

import numpy as np
import shap

from shapley_adapters.array_types import FloatArray

from ..argument_types import Explanation, Table, Values


def has_outputs(values: FloatArray, rows: Table) -> bool:
    """Return whether the last axis of attributions of rows is the outputs'."""
    return bool(values.ndim > np.ndim(rows))


def with_outputs(explanation: Explanation | Values) -> bool:
    """Return whether the last axis of an Explanation's values, or of an array, is the outputs'."""
    values = explanation.values if isinstance(explanation, shap.Explanation) else explanation
    if isinstance(explanation, shap.Explanation) and explanation.data is not None:
        return bool(np.ndim(values) == np.ndim(explanation.data) + 1)
    return np.ndim(values) == 3


def folded(values: FloatArray, has_outputs: bool) -> FloatArray:
    """Return values with the features of a row in the last axis, (R, M) or (R, K, M)."""
    if has_outputs:
        values = np.moveaxis(values, -1, 1)
        return values.reshape(*values.shape[:2], -1)
    return values.reshape(len(values), -1)


def unfolded(values: FloatArray, shape: tuple[int, ...], has_outputs: bool) -> FloatArray:
    """Return values in their original shape, the inverse of `folded`."""
    if not has_outputs:
        return values.reshape(shape)
    return np.moveaxis(values.reshape(len(values), shape[-1], *shape[1:-1]), 1, -1)

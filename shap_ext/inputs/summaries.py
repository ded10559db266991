"""Summaries of data by `shap.kmeans`: background rows with weights."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError

from ..shap_internals import DenseData, SparseData


def unequal_weights(summary: DenseData | SparseData) -> FloatArray | None:
    """Return the weights of the rows of a summary, with sum 1; None if they are equal."""
    weights = np.asarray(summary.weights, dtype=np.float64)
    if weights.min() == weights.max():
        return None
    normalized: FloatArray = weights / weights.sum()
    return normalized


def checked_summary(summary: DenseData | SparseData) -> Any:
    """Return a copy of a summary of shap, if its weights and columns can be used."""
    weights = np.asarray(summary.weights, dtype=np.float64)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InvalidArgumentError(
            "masker holds background rows whose weights are negative, not finite or all zero. "
            "Weights must be positive numbers, such as those of shap.kmeans."
        )
    if any(len(group) > 1 for group in summary.groups or ()):
        raise InvalidArgumentError(
            "masker holds background rows with groups of columns. Pass the rows without groups, "
            "and the groups as groups=."
        )
    return copy.deepcopy(summary)

"""Rankings of features by their attributions."""

from __future__ import annotations

import numpy as np

from ..array_types import CoalitionArray, FloatArray, IntArray

ORDERS = ("value", "magnitude")


def ranking(values: FloatArray, order: str = "value") -> IntArray:
    """Return the features, (…, M), the largest first; equal ones in the order of their indices."""
    keys = np.abs(values) if order == "magnitude" else values
    return np.argsort(-keys, axis=-1, kind="stable")


def first_features(values: FloatArray, counts: IntArray, order: str = "value") -> CoalitionArray:
    """Return the coalitions of the first features of each ranking, (…, T, M), for T counts."""
    rank = np.argsort(ranking(values, order), axis=-1)  # rank of each feature
    coalitions: CoalitionArray = rank[..., None, :] < counts[:, None]
    return coalitions


def counts_of_steps(n_features: int, n_steps: int | None) -> IntArray:
    """Return the number of features after each step, from 0 to all."""
    if n_steps is None or n_steps >= n_features:
        return np.arange(n_features + 1)
    return np.unique(np.round(np.linspace(0, n_features, n_steps + 1)).astype(np.intp))

"""Features in the order of their attributions."""

from __future__ import annotations

import numpy as np

from ..array_types import CoalitionArray, FloatArray, IntArray

ORDERS = ("value", "magnitude")


def ranking(values: FloatArray, order: str = "value") -> IntArray:
    """Return the features, (…, M), the largest first; equal ones in the order of their places."""
    keys = np.abs(values) if order == "magnitude" else values
    return np.argsort(-keys, axis=-1, kind="stable")


def first_features(values: FloatArray, counts: IntArray, order: str = "value") -> CoalitionArray:
    """Return the coalitions of the first features of each ranking, (…, T, M), for T counts."""
    place = np.argsort(ranking(values, order), axis=-1)  # of each feature in the ranking
    coalitions: CoalitionArray = place[..., None, :] < counts[:, None]
    return coalitions


def counts_of_steps(n_features: int, n_steps: int | None) -> IntArray:
    """Return how many features there are after each step, from none to all."""
    if n_steps is None or n_steps >= n_features:
        return np.arange(n_features + 1)
    return np.unique(np.round(np.linspace(0, n_features, n_steps + 1)).astype(np.intp))

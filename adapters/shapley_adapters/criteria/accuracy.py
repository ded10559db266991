"""Rankings, and errors against exact attributions (Wang et al., SHEAR, ICML 2022, 5.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import checked_choice
from ..array_types import CoalitionArray, FloatArray, IntArray
from .attribution_arrays import check_same_shape, checked_attributions

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


def absolute_error(attributions: Any, exact: Any) -> FloatArray:
    """Return AE, the sum of the absolute errors of all features; less is better.

    Parameters
    ----------
    attributions, exact : arrays, tensors or Explanations, (…, M)
        Features last.

    Returns
    -------
    array, (…)
        In the units of the attributions. No evaluations of the model.
    """
    values, truth = _pair(attributions, exact)
    error: FloatArray = np.abs(values - truth).sum(axis=-1)
    return error


def ranking_accuracy(attributions: Any, exact: Any, *, order: str = "value") -> FloatArray:
    """Return ACC, the share of ranks that are right, where rank m has the weight 1/m.

    Parameters
    ----------
    attributions, exact : arrays, tensors or Explanations, (…, M)
        Features last. Features of equal attribution rank in the order of their indices.
    order : {"value", "magnitude"}
        Whether features rank by their attributions or by the absolute values, largest first.

    Returns
    -------
    array, (…)
        From 0 to 1 (best). No evaluations of the model.
    """
    checked_choice("order", order, ORDERS)
    values, truth = _pair(attributions, exact)
    weights = 1 / np.arange(1, values.shape[-1] + 1)
    hits = ranking(values, order) == ranking(truth, order)
    accuracy: FloatArray = hits @ weights / weights.sum()
    return accuracy


def _pair(attributions: Any, exact: Any) -> tuple[FloatArray, FloatArray]:
    values = checked_attributions("attributions", attributions)
    truth = checked_attributions("exact", exact)
    check_same_shape("attributions", values, "exact", truth)
    return values, truth

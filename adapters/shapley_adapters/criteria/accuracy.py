"""Errors of attributions against the exact ones (Wang et al., SHEAR, ICML 2022, 5.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import checked_choice
from ..array_types import FloatArray
from .attribution_arrays import check_same_shape, checked_attributions
from .ranking import ORDERS, ranking


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

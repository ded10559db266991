"""Criteria that need attributions only: complexity, and accuracy beside exact values; checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from ..arguments import check_unmasked, checked_choice
from ..array_types import CoalitionArray, FloatArray, IntArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from ..torch_support.tensor_arrays import array_of_tensor, is_tensor

ORDERS = ("value", "magnitude")


def plain_array(name: str, attributions: Any) -> FloatArray:
    """Return an array, tensor or explanation as an array in double precision.

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    attributions : array, tensor, or object with `values`
        Tensors are recognised by `detach`, and shap's explanations by `values`, so that neither
        host is imported for the other's results.

    Raises
    ------
    InvalidArgumentTypeError
        If it does not hold numbers.
    InvalidArgumentError
        If a number is not finite.
    """
    if is_tensor(attributions):
        if attributions.is_complex():
            raise InvalidArgumentTypeError(f"{name} is complex; real numbers are needed.")
        attributions = array_of_tensor(attributions)
    elif not isinstance(attributions, np.ndarray) and hasattr(attributions, "values"):
        attributions = attributions.values
    check_unmasked(name, attributions)
    try:
        # A copy, because functions may reuse the memory of their output.
        values: FloatArray = np.asarray(attributions, dtype=np.float64).copy()
    except (TypeError, ValueError) as error:
        raise InvalidArgumentTypeError(
            f"{name} must be an array, a tensor or an explanation with values of one shape for "
            f"all rows; got {type(attributions).__name__}."
        ) from error
    if not np.isfinite(values).all():
        index = np.argwhere(~np.isfinite(values))[0].tolist()
        raise InvalidArgumentError(
            f"{name} holds {values[tuple(index)]} at {index}; attributions must be finite."
        )
    return values


def checked_attributions(name: str, attributions: Any) -> FloatArray:
    """Return attributions, (…, M), with at least one row and one feature."""
    values = plain_array(name, attributions)
    if values.ndim < 1 or values.size == 0:
        raise InvalidArgumentError(
            f"{name} has shape {values.shape}; attributions of at least one feature are needed."
        )
    return values


def check_same_shape(a: FloatArray, second: str, b: FloatArray) -> None:
    """Refuse an array of another shape than the attributions."""
    if a.shape != b.shape:
        raise InvalidArgumentError(
            f"attributions and {second} must have the same shape; got {a.shape} and {b.shape}."
        )


def ranking(values: FloatArray, order: str = "value") -> IntArray:
    """Return the features, (…, M), the largest first; equal ones in the order of their indices."""
    keys = np.abs(values) if order == "magnitude" else values
    return np.argsort(-keys, axis=-1, kind="stable")


def first_features(values: FloatArray, counts: IntArray, order: str = "value") -> CoalitionArray:
    """Return the coalitions of the first features of each ranking, (…, T, M), for T counts."""
    rank = np.argsort(ranking(values, order), axis=-1)  # rank of each feature
    return rank[..., None, :] < counts[:, None]


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
    return np.abs(values - truth).sum(axis=-1)


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
    return hits @ weights / weights.sum()


def _pair(attributions: Any, exact: Any) -> tuple[FloatArray, FloatArray]:
    values = checked_attributions("attributions", attributions)
    truth = checked_attributions("exact", exact)
    check_same_shape(values, "exact", truth)
    return values, truth


def complexity(attributions: Any) -> FloatArray:
    """Return the entropy of the features' shares in an explanation; less is simpler.

    μ_C of Bhatt, Weller and Moura (Evaluating and aggregating feature-based model explanations):
    −Σ p_i ln p_i with ``p_i = |φ_i| / Σ|φ|``. From 0, for a single feature, to ln M, for M features
    of equal size. It does not depend on the scale. An explanation of zeros has complexity 0.

    Parameters
    ----------
    attributions : array, tensor or Explanation, (…, M)
        Features last.

    Returns
    -------
    array, (…)
        In nats. No evaluations of the model.

    Raises
    ------
    InvalidArgumentError
        If an attribution is not finite.

    Examples
    --------
    >>> from shapley_adapters.criteria import complexity
    >>> complexity([[1.0, -1.0], [3.0, 0.0]]).round(3)
    array([0.693, 0.   ])
    """
    return entropy_of_shares(checked_attributions("attributions", attributions))


def entropy_of_shares(values: FloatArray) -> FloatArray:
    """Return the complexity of finite attributions, (…, M)."""
    sizes = np.abs(values)
    largest = sizes.max(axis=-1, keepdims=True)
    sizes = sizes / np.where(largest > 0, largest, 1.0)  # so that no sum overflows
    total = sizes.sum(axis=-1, keepdims=True)
    return scipy.special.entr(sizes / np.where(total > 0, total, 1.0)).sum(axis=-1)

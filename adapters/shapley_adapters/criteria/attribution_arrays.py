"""Explanations as plain arrays: of arrays, tensors, and hosts' result objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import check_unmasked
from ..array_types import FloatArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from ..torch_support.tensor_arrays import array_of_tensor, is_tensor


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
        values: FloatArray = np.asarray(attributions, dtype=np.float64)
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


def check_same_shape(first: str, a: FloatArray, second: str, b: FloatArray) -> None:
    """Refuse two arrays of different shapes."""
    if a.shape != b.shape:
        raise InvalidArgumentError(
            f"{first} and {second} must have the same shape; got {a.shape} and {b.shape}."
        )

"""Attributions that are there already, of either host, combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from shapley_adapters.aggregation import Aggregator
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from .base_explainers import Layout


def combine(attributions: Sequence[Any], aggregator: Aggregator) -> Any:
    """Combine attributions of the same inputs, of captum or shap, into one.

    Parameters
    ----------
    attributions : sequence
        Tensors, tuples of tensors where there are several inputs, arrays, and Explanations of shap;
        at least one is a tensor or a tuple of them, of whose form the result is. All have the
        shape of the inputs: of an Explanation of several outputs pass one, `explanation[..., 0]`.
    aggregator : aggregator
        `shapley_adapters.aggregation.Centroid`, `Convex` or `LowComplexity`, with its options.

    Returns
    -------
    Tensor or tuple of Tensors
        In the type and on the device of the first tensors.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If there is no tensor, or shapes differ.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import combine
    >>> from shapley_adapters.aggregation import Centroid
    >>> combine([torch.ones(1, 2), torch.tensor([[3.0, 1.0]])], Centroid())
    tensor([[2., 1.]])
    """
    if isinstance(attributions, Tensor) or not isinstance(attributions, Sequence):
        raise InvalidArgumentTypeError(
            f"attributions must be a list; got {type(attributions).__name__}."
        )
    first = next((item for item in attributions if isinstance(_first(item), Tensor)), None)
    if first is None:
        raise InvalidArgumentError(
            "attributions must hold a tensor; shap_ext.combine makes an Explanation of arrays."
        )
    tensors = first if isinstance(first, tuple) else (first,)
    layout = Layout(first, tensors)
    candidates = [
        layout.array(f"attributions[{index}]", item) for index, item in enumerate(attributions)
    ]
    return layout.tensors(aggregator(candidates).values, isinstance(first, tuple))


def _first(attributions: object) -> Any:
    return attributions[0] if isinstance(attributions, tuple) and attributions else attributions

"""Aggregates of several attributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

import shapley_adapters.aggregation as core
from shapley_adapters.aggregation import Aggregator
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from .aggregate_attribution import AggregateAttribution
from .base_explainers import Layout


@write_constructor
class Centroid(AggregateAttribution):
    """The attributions nearest to those of several methods.

    argmin_g Σ_i D(g, g_i)^p (Bhatt, Weller and Moura, Evaluating and aggregating feature-based
    model explanations): the mean, the median, or the Kemeny–Young consensus of their rankings.

    Parameters
    ----------
    attribution_methods : sequence
        Attribution methods, captum's or ours, and functions of the inputs that return attributions:
        tensors, arrays, or Explanations of shap.
    distance, power, scale, order, approximate
        As in `shapley_adapters.aggregation.Centroid`. Rankings give M to the first feature, down to
        1.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Centroid
    >>> Centroid([lambda x: x, lambda x: 2 * x, lambda x: 9 * x], distance="l1").attribute(
    ...     torch.tensor([[1.0, -2.0]])
    ... )
    tensor([[ 2., -4.]])
    """

    _kind = core.Centroid

    distance: str | float = "l2"
    power: float | None = None
    scale: str = "none"
    order: str = "value"
    approximate: bool = False


@write_constructor
class LowComplexity(AggregateAttribution):
    """Attributions no more complex than those of any of several methods.

    Two readings of the algorithms that Bhatt, Weller and Moura show as a figure; see
    `shapley_adapters.aggregation.LowComplexity`, also for the options.

    Parameters
    ----------
    attribution_methods : sequence
        As in `Centroid`.
    method : {"descent", "shrinking"}
        One feature at a time between the attributions and their mean, in the box that they span; or
        drawing in their convex hull.
    scale, n_steps, n_rounds, tolerance, n_points
        As in `shapley_adapters.aggregation.LowComplexity`.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import LowComplexity
    >>> signs = torch.tensor([1.0, 2.0, -1.0]), torch.tensor([1.0, 3.0, 1.0])
    >>> methods = [lambda x: x * signs[0], lambda x: x * signs[1]]
    >>> LowComplexity(methods, method="shrinking").attribute(torch.ones(1, 3))
    tensor([[1.0000, 2.5000, 0.0000]])
    """

    _kind = core.LowComplexity

    method: str = "descent"
    scale: str = "none"
    n_steps: int = 20
    n_rounds: int = 20
    tolerance: float = 1e-3
    n_points: int = 1000


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

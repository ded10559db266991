"""Centroids of attributions."""

from __future__ import annotations

from typing import Any

import shapley_adapters.aggregation as core
from shapley_adapters.constructors import write_constructor

from .aggregate_attribution import AggregateAttribution


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

    distance: Any = "l2"
    power: float | None = None
    scale: str = "none"
    order: str = "value"
    approximate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._aggregator()  # refuses options that cannot be used

    def _aggregator(self) -> core.Centroid:
        return core.Centroid(self.distance, self.power, self.scale, self.order, self.approximate)

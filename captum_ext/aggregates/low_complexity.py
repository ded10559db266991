"""Combinations of attributions of low complexity."""

from __future__ import annotations

import shapley_adapters.aggregation as core
from shapley_adapters.constructors import write_constructor

from .aggregate_attribution import AggregateAttribution


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

    method: str = "descent"
    scale: str = "none"
    n_steps: int = 20
    n_rounds: int = 20
    tolerance: float = 1e-3
    n_points: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        self._aggregator()  # refuses options that cannot be used

    def _aggregator(self) -> core.LowComplexity:
        return core.LowComplexity(
            self.method, self.scale, self.n_steps, self.n_rounds, self.tolerance, self.n_points
        )

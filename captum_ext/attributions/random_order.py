"""Random orders of the features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import shapley_adapters as core
from shapley_adapters.arguments import checked_flag

from .coalition_attribution import CoalitionAttribution
from .shared_parameters import documented


@documented
class RandomOrder(CoalitionAttribution):
    """Shapley values from random orders of the features and their reverses.

    Unbiased; the attributions sum to the difference of the outputs exactly. A pair of orders of M
    features costs 2 (M − 1) evaluations and makes quadratic models exact. The counterpart of
    `captum.attr.ShapleyValueSampling`, with pairs, a budget and standard errors.

    Parameters
    ----------
    {parameters}
    antithetic : bool
        Whether each order comes with its reverse.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import RandomOrder
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> RandomOrder(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
        antithetic: bool = True,
        independent_rows: bool = False,
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.antithetic = antithetic
        self.independent_rows = checked_flag("independent_rows", independent_rows)
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.RandomOrder:
        return core.RandomOrder(self.antithetic)

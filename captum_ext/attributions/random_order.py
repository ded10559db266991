"""Random orders of the features."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
@write_constructor
class RandomOrder(SamplingAttribution):
    """Shapley values from random orders of the features and their reverses.

    Unbiased; the attributions sum exactly to the difference of the outputs. A pair of orders of M
    features costs 2 (M − 1) evaluations. Pairs make quadratic models exact. The counterpart of
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

    antithetic: bool = True

    def _estimator(self) -> core.RandomOrder:
        return core.RandomOrder(self.antithetic)

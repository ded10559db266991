"""The exact or the most accurate attributions for what they cost."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
@write_constructor
class Best(SamplingAttribution):
    """Exact Shapley values where they cost no more, else the most accurate estimate for the time.

    The first of these that applies is chosen, and `last_estimate.choice` says which one and why:

    1. All 2^M coalitions of M features, which are exact: up to 10 features, where the budget pays
       for them, and where they take no longer than an estimate.
    2. Odd Gaussian-process regression (`OddGP`); with equal weights, or random orders, where its
       own work takes seconds and longer than the forward function.

    Costs are measured with the first evaluations. With `max_seconds`, the choice is what errs
    least within that time. A call of the method that was chosen, with its budget
    (`last_estimate.budget`) and `seed`, repeats the numbers exactly.

    Parameters
    ----------
    {parameters}
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Best
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> method = Best(lambda x: x.sum(1) ** 2, seed=0)
    >>> method.attribute(x, max_seconds=10.0)[0, :3]
    tensor([ 78., 156., 234.])
    >>> method.last_estimate.enumerated
    array([ True])
    """

    def _estimator(self) -> core.Best:
        return core.Best()

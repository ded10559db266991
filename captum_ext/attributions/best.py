"""Enumeration or odd Gaussian-process regression, whichever the budget allows."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
@write_constructor
class Best(SamplingAttribution):
    """Exact Shapley values where the budget or the time allows, else the most accurate estimate.

    Each example whose budget pays for all 2^M coalitions of its M features is enumerated, and its
    attributions are exact. The other examples are estimated by odd Gaussian-process regression, as
    by `OddGP`. `last_estimate.enumerated` holds which examples are exact.

    Pass the time that a call may take as `max_seconds`, or the standard error that is small enough
    as `tolerance`, or both. With a time, the costs of the forward function and of the estimator are
    measured first, and the budget is the largest that fits. Without either, the budget is that of
    all methods: 16 evaluations per feature, at least 500. The choice then depends on the number of
    features alone.

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

    def _estimator(self) -> core.OddGP:
        return core.OddGP()

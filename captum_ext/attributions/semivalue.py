"""Sampling of semivalues: Shapley, Banzhaf and beta values."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
@write_constructor
class Semivalue(SamplingAttribution):
    """Shapley values from marginal contributions, drawn for each feature alone.

    ApproSemivalue (Castro et al., 2009; Zhang et al., SimSHAP, 2023, Eq. 2). Unbiased. Random
    orders draw from the same distribution for half the evaluations, so prefer them. Needs at least
    4 M + 2 evaluations.

    Parameters
    ----------
    {parameters}
    antithetic : bool
        Whether each coalition comes with its complement among the other features.
    efficient : bool
        Whether the attributions are corrected, all by the same amount, to sum to the difference
        of the outputs.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Semivalue
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> Semivalue(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """

    antithetic: bool = True
    efficient: bool = True

    def _estimator(self) -> core.Semivalue:
        return core.Semivalue(self.antithetic, self.efficient)

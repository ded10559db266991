"""The sampled semivalues of SimSHAP."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
@write_constructor
class SimSemivalue(SamplingAttribution):
    """Shapley values from one draw of coalitions for all features, signed by membership.

    The estimator of SimSHAP (Zhang et al., 2023, Table 1 and Eq. 14). For the same draws it equals
    the unbiased form of least squares. Unbiased; the attributions sum exactly to the difference of
    the outputs. Works with any budget of at least 4 evaluations, but has a larger variance than
    random orders.

    Parameters
    ----------
    {parameters}
    paired : bool
        Whether each coalition comes with its complement.
    centred : bool
        Whether to subtract first the linear interpolation between the outputs without and with all
        features. This lowers the variance and does not change the expectation. The paper's form
        does not subtract it.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import SimSemivalue
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> SimSemivalue(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100).sum()
    tensor(6084.)
    """

    paired: bool = True
    centred: bool = True

    def _estimator(self) -> core.SimSemivalue:
        return core.SimSemivalue(self.paired, self.centred)

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

    The estimator of SimSHAP (Zhang et al., 2023, Table 1 and Eq. 14), and draw by draw the same as
    the unbiased form of least squares. Unbiased; the attributions sum to the difference of the
    outputs exactly. Works with any budget from 4 evaluations on, but has a larger variance than
    random orders.

    Parameters
    ----------
    {parameters}
    paired : bool
        Whether each coalition comes with its complement.
    centred : bool
        Whether values count from the straight line between the outputs without and with all
        features, which lowers the variance and leaves the expectation; the paper's form does not.
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

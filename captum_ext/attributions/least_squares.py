"""Least squares, KernelSHAP's regression among its forms."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
@write_constructor
class LeastSquares(SamplingAttribution):
    """Shapley values as the solution of a weighted regression (KernelSHAP).

    The attributions sum exactly to the difference of the outputs. By default the estimator is
    consistent, with a bias in proportion to 1 / budget. `unbiased=True` has no bias but a larger
    variance. The counterpart of `captum.attr.KernelShap`, solved for all examples at once. Needs at
    least 2 M + 2 evaluations; the unbiased form needs 4.

    Parameters
    ----------
    {parameters}
    {least_squares_options}
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import LeastSquares
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> LeastSquares(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """

    paired: bool = True
    sizes: str = "kernel"
    replacement: bool = True
    unbiased: bool = False

    def _estimator(self) -> core.LeastSquares | core.UnbiasedLeastSquares:
        return core.least_squares(self.paired, self.sizes, self.replacement, self.unbiased)

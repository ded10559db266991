"""Stratified sampling without marginal contributions (SVARM)."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
@write_constructor
class SVARM(SamplingAttribution):
    """Shapley values from coalition values, averaged by size and by membership.

    Stratified SVARM (Kolpaczki et al., Approximating the Shapley Value without Marginal
    Contributions, AAAI 2024). Each evaluation is used for all features. The coalitions of 0, 1, M −
    1 and M features are all evaluated. The defaults differ from the paper in three ways: each
    coalition comes with its complement; an additive game with known Shapley values is subtracted
    first; the attributions sum to the difference of the outputs. Unbiased. Needs at least about 2 M
    ln M evaluations: 34 for 8 features, 404 for 50.

    Parameters
    ----------
    {parameters}
    paired : bool
        Whether each coalition comes with its complement.
    centred : bool
        Whether to subtract first an additive game, which is computed from the coalitions of 1 and
        of M − 1 features. Additive models are then exact, and with `paired` quadratic models, too.
    efficient : bool
        Whether the attributions are corrected, all by the same amount, to sum to the difference
        of the outputs.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import SVARM
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> SVARM(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """

    paired: bool = True
    centred: bool = True
    efficient: bool = True

    def _estimator(self) -> core.SVARM:
        return core.SVARM(self.paired, self.centred, self.efficient)

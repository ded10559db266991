"""Stratified sampling without marginal contributions (SVARM), for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
@write_constructor
class SVARMExplainer(SamplingExplainer):
    """Shapley values from coalition values, averaged by size and by membership.

    Stratified SVARM (Kolpaczki et al., Approximating the Shapley Value without Marginal
    Contributions, AAAI 2024). Each evaluation is used for all features. The coalitions of 0, 1, M −
    1 and M features are all evaluated. The defaults differ from the paper in three ways: each
    coalition comes with its complement; an additive game with known Shapley values is subtracted
    first; the values sum to the model's output. Unbiased. Needs at least about 2 M ln M
    evaluations: 34 for 8 features, 404 for 50.

    Parameters
    ----------
    {parameters}
    paired : bool
        Whether each coalition comes with its complement.
    centred : bool
        Whether to subtract first an additive game, which is computed from the coalitions of 1 and
        of M − 1 features. Additive models are then exact, and with `paired` quadratic models, too.
    efficient : bool
        Whether the values are corrected, all by the same amount, to sum to the model's output.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.SVARMExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "SVARM"

    paired: bool = True
    centred: bool = True
    efficient: bool = True

    def _estimator(self) -> core.SVARM:
        return core.SVARM(self.paired, self.centred, self.efficient)

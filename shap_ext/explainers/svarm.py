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
    Contributions, AAAI 2024). Each evaluation serves all features. The coalitions of no feature,
    one, all but one and all are evaluated completely. The defaults differ from the paper in three
    ways: each coalition comes with its complement, an additive game whose Shapley values are known
    is subtracted first, and the values sum to the model's output. Unbiased. Needs about 2 M ln M
    evaluations at least: 34 for 8 features, 404 for 50.

    Parameters
    ----------
    {parameters}
    paired : bool
        Whether each coalition comes with its complement.
    centred : bool
        Whether to subtract first the additive game that the coalitions of one feature and of all
        but one suggest. Additive models are then exact, and with `paired` quadratic models, too.
    efficient : bool
        Whether what the values lack of the model's output is shared equally.
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

"""Random orders, for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
@write_constructor
class RandomOrderExplainer(SamplingExplainer):
    """Shapley values from random orders of the features and their reverses.

    Unbiased; the values sum exactly to the model's output. A pair of orders of M features costs 2
    (M − 1) evaluations. Pairs make quadratic models exact. The counterpart of shap's permutation
    explainer, for all rows at once and with standard errors.

    Parameters
    ----------
    {parameters}
    antithetic : bool
        Whether each order comes with its reverse.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.RandomOrderExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "random order"

    antithetic: bool = True

    def _estimator(self) -> core.RandomOrder:
        return core.RandomOrder(self.antithetic)

"""Enumeration or odd Gaussian-process regression, whichever the budget allows, for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
@write_constructor
class BestExplainer(SamplingExplainer):
    """Exact Shapley values where the budget or the time allows, else the most accurate estimate.

    Each row whose budget pays for all 2^M coalitions of its M features is enumerated, and its
    values are exact. The other rows are estimated by odd Gaussian-process regression, as by
    `OddGPExplainer`. `last_estimate.enumerated` holds which rows are exact.

    Pass the time that a call may take as `max_seconds`, or the standard error that is small enough
    as `tolerance`, or both. With a time, the costs of the model and of the estimator are measured
    first, and the budget is the largest that fits. Without either, the budget is that of all
    explainers: 16 evaluations per feature, at least 500. The choice then depends on the number of
    features alone.

    Parameters
    ----------
    {parameters}
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.BestExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_seconds=10).values[0, :3].round(6)
    array([ 78., 156., 234.])
    >>> explainer.last_estimate.enumerated
    array([ True])
    """

    name = "best"

    def _estimator(self) -> core.OddGP:
        return core.OddGP()

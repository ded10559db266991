"""Semivalues, for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
@write_constructor
class SemivalueExplainer(SamplingExplainer):
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
        Whether the values are corrected, all by the same amount, to sum to the model's output.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.SemivalueExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "semivalue"

    antithetic: bool = True
    efficient: bool = True

    def _estimator(self) -> core.Semivalue:
        return core.Semivalue(self.antithetic, self.efficient)

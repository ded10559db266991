"""Sim-semivalues, for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
@write_constructor
class SimSemivalueExplainer(SamplingExplainer):
    """Shapley values from one draw of coalitions for all features, signed by membership.

    The estimator of SimSHAP (Zhang et al., 2023, Table 1 and Eq. 14). For the same draws it equals
    the unbiased form of least squares. Unbiased; the values sum exactly to the model's output.
    Works with any budget of at least 4 evaluations, but has a larger variance than random orders.

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
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.SimSemivalueExplainer(model, np.zeros((1, 12)), seed=0)
    >>> round(float(explainer(np.arange(1.0, 13.0)[None], max_evals=100).values.sum()), 6)
    6084.0
    """

    name = "sim-semivalue"

    paired: bool = True
    centred: bool = True

    def _estimator(self) -> core.SimSemivalue:
        return core.SimSemivalue(self.paired, self.centred)

"""Owen sampling of the multilinear extension, for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
@write_constructor
class OwenExplainer(SamplingExplainer):
    """Shapley values by Owen sampling: each feature joins a coalition with probability q.

    The Shapley value is the integral over q of the expected marginal contribution (Owen, 1972;
    Okhrati and Lipani, A Multilinear Sampling Algorithm to Estimate Shapley Values, ICPR 2021).
    Each drawn coalition is used for all features and costs M + 1 evaluations. The paper's fixed
    grid of q has a bias. Here q is drawn uniformly within each of several levels, which has no
    bias. Needs at least 2 M + 4 evaluations.

    Parameters
    ----------
    {parameters}
    levels : int, optional
        Number of intervals of equal length from which q is drawn. By default half the number of
        draws that the budget allows.
    antithetic : bool
        Whether each coalition comes with its complement (halved Owen sampling). Quadratic models
        are then exact.
    efficient : bool
        Whether the values are corrected, all by the same amount, to sum to the model's output.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.OwenExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "Owen"

    levels: int | None = None
    antithetic: bool = True
    efficient: bool = True

    def _estimator(self) -> core.Owen:
        return core.Owen(self.levels, self.antithetic, self.efficient)

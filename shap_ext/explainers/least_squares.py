"""Least squares, for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
@write_constructor
class LeastSquaresExplainer(SamplingExplainer):
    """Shapley values as the solution of a weighted regression (KernelSHAP).

    The values sum exactly to the model's output. By default the estimator is consistent, with a
    bias in proportion to 1 / budget. `unbiased=True` has no bias but a larger variance. The
    counterpart of shap's kernel explainer, for all rows at once, with pairs and standard errors.
    Needs at least 2 M + 2 evaluations; the unbiased form needs 4.

    Parameters
    ----------
    {parameters}
    {least_squares_options}
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.LeastSquaresExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "least squares"

    paired: bool = True
    sizes: str = "kernel"
    replacement: bool = True
    unbiased: bool = False

    def _estimator(self) -> core.LeastSquares | core.UnbiasedLeastSquares:
        return core.least_squares(self.paired, self.sizes, self.replacement, self.unbiased)

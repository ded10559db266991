"""Shapley values by enumeration, for shap."""

from __future__ import annotations

import shapley_adapters as core

from .coalition_explainer import CoalitionExplainer
from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
class EnumerationExplainer(CoalitionExplainer):
    """Shapley values by enumeration of all 2^M coalitions, for up to 20 players.

    Unlike shap's exact explainer, it evaluates the coalitions of all rows together and accepts
    groups of columns as players. It finds features that equal the background by comparing their
    values. For Owen values of clustered maskers use shap's; here a clustering is only plotted.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> explainer = shap_ext.EnumerationExplainer(lambda x: x[:, 0] * x[:, 1], np.zeros((1, 2)))
    >>> explainer(np.array([[2.0, 3.0]])).values
    array([[3., 3.]])
    """

    name = "enumeration"
    global_importance = SamplingExplainer.global_importance

    def _estimator(self) -> core.Exact:
        return core.Exact()

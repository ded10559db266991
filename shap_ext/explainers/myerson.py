"""Myerson values, for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor
from shapley_adapters.graphs.reading import GraphLike

from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
@write_constructor
class MyersonExplainer(SamplingExplainer):
    """Myerson values: Shapley values of features that act together only where they are connected.

    For features with neighbours, such as atoms of a molecule. The value of a coalition is the sum
    of the values of its connected components. The Myerson value (1977) is the Shapley value of this
    game. It needs the values of connected sets only. If there are more of them than `max_evals`
    allows, random orders and their reverses are drawn; the estimate is then unbiased and has
    standard errors. The values of each component of the graph sum exactly to the value of this
    component alone. A feature that changes no output may get a value, because it connects others.

    Parameters
    ----------
    {parameters}
    {graph}
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x[:, 0] * x[:, 2]
    >>> explainer = shap_ext.MyersonExplainer(model, np.zeros((1, 3)), graph="line")
    >>> explainer(np.array([[1.0, 2.0, 3.0]])).values
    array([[1., 1., 1.]])
    """

    name = "Myerson"
    has_graph = True

    graph: GraphLike | None = None

    def _estimator(self) -> core.Myerson:
        return core.Myerson()

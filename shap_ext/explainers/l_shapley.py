"""L-Shapley, for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor
from shapley_adapters.graphs.reading import GraphLike

from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
@write_constructor
class LShapleyExplainer(SamplingExplainer):
    """L-Shapley values: each feature's Shapley value among its neighbours on a graph.

    For features with neighbours, such as words, pixels or atoms, if features that are far apart
    hardly interact. The value of feature i is its Shapley value in the game of the features within
    `order` edges (Chen et al., L-Shapley and C-Shapley, ICLR 2019, Definition 1). The values do not
    sum to the model's output unless the order covers the graph. The cost depends on order and
    graph: 2^(2k) evaluations per word for order k on a text. Without `max_evals`, a given order may
    need up to 65,536 evaluations per row. If the order costs more than the budget, random orders of
    the large neighbourhoods are drawn. This is unbiased for the L-Shapley value of that order, and
    has standard errors. Everything else is exact, with standard errors of 0. `last_estimate.orders`
    holds the order used.

    Parameters
    ----------
    {parameters}
    {graph}
    order : int or "auto"
        The largest distance of considered features, in edges. By default the largest order that
        `max_evals` allows, and at least 1; if order 1 costs more, random orders are drawn. If
        `max_evals` does not allow these either, the order is 0, with a warning.
    context : {"removed", "kept"}
        Whether features outside the neighbourhood are absent, as in the paper, or present, as in
        the authors' code.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> explainer = shap_ext.LShapleyExplainer(model, np.zeros((1, 3)), graph="line", order=1)
    >>> explainer(np.array([[1.0, 2.0, 3.0]])).values
    array([[1., 1., 3.]])
    """

    name = "L-Shapley"
    has_graph = True

    graph: GraphLike | None = None
    order: int | str = "auto"
    context: str = "removed"

    def _estimator(self) -> core.LShapley:
        return core.LShapley(self.order, self.context)

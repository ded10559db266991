"""L-Shapley, for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .graph_explainer import GraphExplainer
from .shared_parameters import documented


@documented
@write_constructor
class LShapleyExplainer(GraphExplainer):
    """L-Shapley values: each feature's Shapley value among its neighbours on a graph.

    For features with neighbours, such as words, pixels or atoms, of which those that are far apart
    hardly interact. Feature i gets its Shapley value in the game among the features within `order`
    edges of it (Chen et al., L-Shapley and C-Shapley, ICLR 2019, Definition 1). The values do not
    sum to the model's output unless the order covers the graph. The cost is decided by order and
    graph, 2^(2k) evaluations a word for order k on a text; without `max_evals`, a given order may
    take up to 65,536 evaluations a row. Where the order costs more than the budget, random orders
    of the large neighbourhoods are drawn: unbiased for the L-Shapley value of that order, with
    standard errors. Everything else is exact, with standard errors of 0. The order that was taken
    is in `last_estimate.orders`.

    Parameters
    ----------
    {parameters}
    {graph}
    order : int or "auto"
        How many edges away features are considered. By default the largest order whose coalitions
        `max_evals` pays for, and at least 1, of which random orders are drawn where it costs more.
        If `max_evals` does not pay for these either, the order is 0, of which a warning tells.
    context : {"removed", "kept"}
        Whether features outside the neighbourhood are absent, as the paper has it, or present, as
        the authors' code does.
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

    order: int | str = "auto"
    context: str = "removed"

    def _estimator(self) -> core.LShapley:
        return core.LShapley(self.order, self.context)

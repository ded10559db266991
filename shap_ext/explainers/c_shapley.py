"""C-Shapley, for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .graph_explainer import GraphExplainer
from .shared_parameters import documented


@documented
@write_constructor
class CShapleyExplainer(GraphExplainer):
    """C-Shapley values: marginal contributions to connected sets of features on a graph.

    For features with neighbours, such as words, pixels or atoms, of which those that are apart
    hardly interact. Feature i gets a weighted sum of v(U) − v(U∖i) over the connected sets U around
    it, within `order` edges (Chen et al., L-Shapley and C-Shapley, ICLR 2019, Definition 2): on a
    text, the n-grams around a word. The values do not sum to the model's output. The cost is
    decided by order and graph, about k² + 2k evaluations a word for order k on a text; without
    `max_evals`, a given order may take up to 65,536 evaluations a row. Where the order costs more
    than the budget, random orders of the large neighbourhoods are drawn, and a feature gets what it
    adds to its component when it arrives: unbiased for the C-Shapley value of that order, with
    standard errors. Everything else is exact, with standard errors of 0. The regression, and
    `weighting="paper"`, are never drawn. The order that was taken is in `last_estimate.orders`.

    Parameters
    ----------
    {parameters}
    {graph}
    order : int or "auto"
        How many edges away features are considered, or the largest size of the sets in the
        regression. By default the largest order that `max_evals` pays for, and for the sum at least
        1, of which random orders are drawn where it costs more. If `max_evals` does not pay for
        neighbours at all, each feature is taken by itself, of which a warning tells.
    {c_shapley_options}
    efficient : bool
        Whether the regression is made to sum to the model's output.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> explainer = shap_ext.CShapleyExplainer(model, np.zeros((1, 3)), graph="line", order=1)
    >>> explainer(np.array([[1.0, 2.0, 3.0]])).values
    array([[1., 1., 3.]])
    """

    name = "C-Shapley"

    order: int | str = "auto"
    variant: str = "sum"
    context: str = "removed"
    weighting: str = "myerson"
    marginals: str = "removal"
    shapes: str = "auto"
    kernel: str = "shapley"
    efficient: bool = False

    def _estimator(self) -> core.CShapley | core.ConnectedRegression:
        return core.c_shapley(
            self.order,
            self.variant,
            self.context,
            weighting=self.weighting,
            marginals=self.marginals,
            shapes=self.shapes,
            kernel=self.kernel,
            efficient=self.efficient,
        )

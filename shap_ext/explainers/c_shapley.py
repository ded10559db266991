"""C-Shapley, for shap."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor
from shapley_adapters.graphs.reading import GraphLike

from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
@write_constructor
class CShapleyExplainer(SamplingExplainer):
    """C-Shapley values: marginal contributions to connected sets of features on a graph.

    For features with neighbours, such as words, pixels or atoms, if features that are far apart
    hardly interact. The value of feature i is a weighted sum of v(U) − v(U∖i) over the connected
    sets U around i, within `order` edges (Chen et al., L-Shapley and C-Shapley, ICLR 2019,
    Definition 2). On a text these sets are the n-grams around a word. The values do not sum to the
    model's output. The cost depends on order and graph: about k² + 2k evaluations per word for
    order k on a text. Without `max_evals`, a given order may need up to 65,536 evaluations per row.
    If the order costs more than the budget, random orders of the large neighbourhoods are drawn. A
    feature then gets its marginal contribution to its component when it arrives. This is unbiased
    for the C-Shapley value of that order, and has standard errors. Everything else is exact, with
    standard errors of 0. For the regression and for `weighting="paper"`, nothing is drawn.
    `last_estimate.orders` holds the order used.

    Parameters
    ----------
    {parameters}
    {graph}
    order : int or "auto"
        The largest distance of considered features, in edges; for the regression, the largest size
        of the sets. By default the largest order that `max_evals` allows. For the sum it is at
        least 1; if order 1 costs more, random orders are drawn. If `max_evals` allows no neighbours
        at all, each feature is taken by itself, with a warning.
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
    has_graph = True

    graph: GraphLike | None = None
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

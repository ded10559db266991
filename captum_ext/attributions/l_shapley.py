"""L-Shapley."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor

from .graph_attribution import GraphAttribution
from .shared_parameters import documented


@documented
@write_constructor
class LShapley(GraphAttribution):
    """L-Shapley values: each feature's Shapley value among its neighbours on a graph.

    For features with neighbours, such as words, pixels or atoms, of which those that are far apart
    hardly interact. Feature i gets its Shapley value in the game among the features within `order`
    edges of it (Chen et al., L-Shapley and C-Shapley, ICLR 2019, Definition 1). The values do not
    sum to the difference of the outputs unless the order covers the graph. The cost is decided by
    order and graph, 2^(2k) evaluations a word for order k on a text; without `n_samples`, a given
    order may take up to 65,536 evaluations an example. Where the order costs more than the budget,
    random orders of the large neighbourhoods are drawn: unbiased for the L-Shapley value of that
    order, with standard errors. Everything else is exact, with standard errors of 0. The order that
    was taken is in `last_estimate.orders`.

    Parameters
    ----------
    {parameters}
    {graph}
    order : int or "auto"
        How many edges away features are considered. By default the largest order whose coalitions
        `n_samples` pays for, and at least 1, of which random orders are drawn where it costs more.
        If `n_samples` does not pay for these either, the order is 0, of which a warning tells.
    context : {"removed", "kept"}
        Whether features outside the neighbourhood are absent, as the paper has it, or present, as
        the authors' code does.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import LShapley
    >>> x = torch.tensor([[1.0, 2.0, 3.0]])
    >>> LShapley(lambda x: x[:, 0] * x[:, 1] + x[:, 2], order=1, graph="line").attribute(x)
    tensor([[1., 1., 3.]])
    """

    order: int | str = "auto"
    context: str = "removed"

    def _estimator(self) -> core.LShapley:
        return core.LShapley(self.order, self.context)

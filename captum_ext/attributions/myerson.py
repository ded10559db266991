"""Myerson values."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor
from shapley_adapters.graphs.reading import GraphLike

from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
@write_constructor
class Myerson(SamplingAttribution):
    """Myerson values: Shapley values of features that act together only where they are connected.

    For features with neighbours, such as atoms of a molecule. The value of a coalition is the sum
    of the values of its connected components. The Myerson value (1977) is the Shapley value of this
    game. It needs the values of connected sets only. If there are more of them than `n_samples`
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
    >>> import torch
    >>> from captum_ext import Myerson
    >>> x = torch.tensor([[1.0, 2.0, 3.0]])
    >>> Myerson(lambda x: x[:, 0] * x[:, 2], graph="line").attribute(x)
    tensor([[1., 1., 1.]])
    """

    has_graph = True

    graph: GraphLike | None = None

    def _estimator(self) -> core.Myerson:
        return core.Myerson()

"""The attribution methods on graphs: each is its options and its estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

import shapley_adapters as core
from shapley_adapters import PlayerGraph
from shapley_adapters.arguments import checked_flag
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.graph_reading import read_graphs

from .coalition_attribution import CoalitionAttribution
from .forward_function_game import ForwardFunctionGame
from .shared_parameters import documented


class GraphAttribution(CoalitionAttribution):
    """Base of the attribution methods that look at which features are neighbours."""

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
        graph: Any = None,
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.graph = graph

    def _graph(self, game: ForwardFunctionGame) -> PlayerGraph | list[PlayerGraph]:
        if self.graph is None:
            _refuse_tables(game.inputs)
        layouts = game.groups.layouts([tuple(given.shape[1:]) for given in game.inputs])
        graph = "grid" if self.graph is None else self.graph
        return read_graphs(graph, layouts, game.n_players)


def _refuse_tables(inputs: tuple[Tensor, ...]) -> None:
    """Refuse inputs whose shape says nothing about neighbours."""
    for index, given in enumerate(inputs):
        if given.dim() == 2 and given.shape[1] > 1 and given.is_floating_point():
            raise InvalidArgumentError(
                f"graph is missing: inputs[{index}] of shape {tuple(given.shape)} is a table of "
                "numbers, whose columns are not neighbours because they stand side by side. Pass "
                "graph= with the graph of its features, or graph='line' if they are a sequence. "
                "Token ids, embeddings, images and volumes bring their graph with them."
            )


@documented
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
    context : {{"removed", "kept"}}
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

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
        graph: Any = None,
        order: int | str = "auto",
        context: str = "removed",
        independent_rows: bool = False,
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function, graph=graph)
        self.order = order
        self.context = context
        self.independent_rows = checked_flag("independent_rows", independent_rows)
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.LShapley:
        return core.LShapley(self.order, self.context)


@documented
class CShapley(GraphAttribution):
    """C-Shapley values: marginal contributions to connected sets of features on a graph.

    For features with neighbours, such as words, pixels or atoms, of which those that are apart
    hardly interact. Feature i gets a weighted sum of v(U) − v(U∖i) over the connected sets U around
    it, within `order` edges (Chen et al., L-Shapley and C-Shapley, ICLR 2019, Definition 2): on a
    text, the n-grams around a word. The values do not sum to the difference of the outputs. The
    cost is decided by order and graph, about k² + 2k evaluations a word for order k on a text;
    without `n_samples`, a given order may take up to 65,536 evaluations an example. Where the order
    costs more than the budget, random orders of the large neighbourhoods are drawn, and a feature
    gets what it adds to its component when it arrives: unbiased for the C-Shapley value of that
    order, with standard errors. Everything else is exact, with standard errors of 0. The
    regression, and `weighting="paper"`, are never drawn. The order that was taken is in
    `last_estimate.orders`.

    Parameters
    ----------
    {parameters}
    {graph}
    order : int or "auto"
        How many edges away features are considered, or the largest size of the sets in the
        regression. By default the largest order that `n_samples` pays for, and for the sum at least
        1, of which random orders are drawn where it costs more. If `n_samples` does not pay for
        neighbours at all, each feature is taken by itself, of which a warning tells.
    {c_shapley_options}
    efficient : bool
        Whether the regression is made to sum to the difference of the outputs.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import CShapley
    >>> x = torch.tensor([[1.0, 2.0, 3.0]])
    >>> CShapley(lambda x: x[:, 0] * x[:, 1] + x[:, 2], order=1, graph="line").attribute(x)
    tensor([[1., 1., 3.]])
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
        graph: Any = None,
        order: int | str = "auto",
        variant: str = "sum",
        context: str = "removed",
        weighting: str = "myerson",
        marginals: str = "removal",
        shapes: str = "auto",
        kernel: str = "shapley",
        efficient: bool = False,
        independent_rows: bool = False,
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function, graph=graph)
        self.order = order
        self.variant = variant
        self.context = context
        self.weighting = weighting
        self.marginals = marginals
        self.shapes = shapes
        self.kernel = kernel
        self.efficient = efficient
        self.independent_rows = checked_flag("independent_rows", independent_rows)
        self._estimator()  # refuses options that cannot be used

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


@documented
class Myerson(GraphAttribution):
    """Myerson values: Shapley values of features that act together only where they are connected.

    For features with neighbours, such as atoms of a molecule. A coalition is worth the sum of what
    its connected components are worth apart; the Myerson value (1977) is the Shapley value of that.
    Needs the values of connected sets only; where these are more than `n_samples` pays for, random
    orders and their reverses are drawn: unbiased, with standard errors. The values of each
    component of the graph sum to what it is worth by itself, exactly. A feature that changes no
    output may be paid for joining others.

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

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
        graph: Any = None,
        independent_rows: bool = False,
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function, graph=graph)
        self.independent_rows = checked_flag("independent_rows", independent_rows)

    def _estimator(self) -> core.Myerson:
        return core.Myerson()

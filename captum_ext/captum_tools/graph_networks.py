"""Graph networks as functions of the features of the nodes, or of the presence of edges."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from shapley_adapters.errors import InvalidArgumentError, ModelOutputError


class StackedGraphs(nn.Module):
    """A graph network as a function of the nodes' features, for many copies of one graph.

    Attribution methods evaluate a model on many masked copies of the features. The networks of
    PyTorch Geometric take a batch of graphs as one large graph. This class arranges the copies in
    this form: `model(x, edge_index)` gets the features of the nodes of all copies, and the edges
    within each copy. If the forward method has an argument `batch`, it gets the index of each
    node's copy.

    Parameters
    ----------
    model : torch.nn.Module or callable
        Returns one entry per graph, or, with `node`, one per node.
    edge_index : Tensor, (2, E)
        The edges of the graph, such as `data.edge_index`.
    edge_arguments : mapping of str to Tensor, optional
        Further arguments of the model with one entry per edge, by their names:
        `{"edge_attr": data.edge_attr}`.
    node : int, optional
        The node whose output is explained, if the model returns one entry per node.
    nodes : Tensor, (N, …), optional
        The features of the nodes, such as `data.x`, if edges are explained: the inputs are then the
        presence of the edges, `torch.ones(1, E)`, and each copy of the graph has the edges whose
        presence is not 0. A feature mask joins both directions of an edge.

    Raises
    ------
    InvalidArgumentError
        If the edges are not those of a graph, or an example has no such node.
    ModelOutputError
        If the model does not return one entry per graph or, with `node`, one per node.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Myerson, StackedGraphs
    >>> def model(x, edge_index, batch):  # sum of products of neighbours
    ...     sources, sinks = edge_index
    ...     messages = (x[sources] * x[sinks]).sum(1)
    ...     return torch.zeros(int(batch.max()) + 1).index_add(0, batch[sinks], messages)
    >>> nodes, edge_index = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[0, 1], [1, 2]])
    >>> myerson = Myerson(StackedGraphs(model, edge_index), graph=edge_index)
    >>> myerson.attribute(nodes[None])
    tensor([[[1.],
             [4.],
             [3.]]])
    """

    def __init__(
        self,
        model: nn.Module,
        edge_index: Tensor,
        *,
        edge_arguments: Mapping[str, Tensor] | None = None,
        node: int | None = None,
        nodes: Tensor | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or len(edge_index) != 2:
            shape = getattr(edge_index, "shape", None)
            received = type(edge_index).__name__ if shape is None else f"shape {tuple(shape)}"
            raise InvalidArgumentError(
                f"edge_index must be a tensor of shape (2, E); got {received}. Pass "
                "data.edge_index."
            )
        if edge_index.numel() and int(edge_index.min()) < 0:
            raise InvalidArgumentError(
                f"edge_index names node {int(edge_index.min())}; nodes are numbered from 0."
            )
        if nodes is not None and (not isinstance(nodes, Tensor) or nodes.dim() > 2):
            shape = tuple(getattr(nodes, "shape", ()))
            raise InvalidArgumentError(
                f"nodes must have the shape (N, …), the features of the nodes of one graph; got "
                f"{type(nodes).__name__} {shape}. Pass data.x."
            )
        self.model = model
        self.edge_index = edge_index
        self.edge_arguments = dict(edge_arguments or {})
        self.node = node
        self.nodes = nodes
        self._takes_batch = (
            "batch" in inspect.signature(getattr(model, "forward", model)).parameters
        )
        self._check_edge_arguments()

    def _check_edge_arguments(self) -> None:
        n_edges = self.edge_index.shape[1]
        for name, values in self.edge_arguments.items():
            if len(values) != n_edges:
                raise InvalidArgumentError(
                    f"edge_arguments[{name!r}] must hold one entry for each of the {n_edges} edges "
                    f"of edge_index; got {len(values)}."
                )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs of P copies of the graph.

        Parameters
        ----------
        inputs : Tensor, (P, N, …) or (P, E)
            The features of the N nodes in each copy; with `nodes`, the presence of its edges.
        """
        n_edges, nodes, kept = self.edge_index.shape[1], inputs, None
        if self.nodes is not None:
            if inputs.shape[1:] != (n_edges,):
                raise InvalidArgumentError(
                    f"inputs must hold one number for each of the {n_edges} edges, their presence; "
                    f"got the shape {tuple(inputs.shape)}. Pass torch.ones(1, {n_edges})."
                )
            nodes = self.nodes.to(inputs.device).expand(len(inputs), *self.nodes.shape)
            kept = (inputs != 0).flatten()  # (P · E,)
        n_copies, n_nodes = nodes.shape[:2]
        self._check_nodes(n_nodes)
        copies = torch.arange(n_copies, device=nodes.device)
        edges = self.edge_index.to(nodes.device)
        stacked = (edges[:, None] + n_nodes * copies[:, None]).reshape(2, -1)  # (2, P · E)
        arguments = {
            name: torch.cat([values.to(nodes.device)] * n_copies)
            for name, values in self.edge_arguments.items()
        }
        if kept is not None:
            stacked = stacked[:, kept]
            arguments = {name: values[kept] for name, values in arguments.items()}
        if self._takes_batch:
            arguments["batch"] = copies.repeat_interleave(n_nodes)
        output = self.model(nodes.flatten(0, 1), stacked, **arguments)
        return self._selected(output, n_copies, n_nodes)

    def _check_nodes(self, n_nodes: int) -> None:
        largest = int(self.edge_index.max()) if self.edge_index.numel() else -1
        if self.node is not None:
            largest = max(largest, self.node)
        if largest >= n_nodes or (self.node is not None and self.node < 0):
            raise InvalidArgumentError(
                f"inputs hold {n_nodes} nodes for each example, but edge_index or node names node "
                f"{largest if largest >= n_nodes else self.node}; they are numbered from 0. Pass "
                "inputs of shape (examples, nodes, features), such as data.x[None]."
            )

    def _selected(self, output: Any, n_copies: int, n_nodes: int) -> Tensor:
        n_expected = n_copies if self.node is None else n_copies * n_nodes
        n_entries = len(output) if isinstance(output, Tensor) and output.dim() else None
        if n_entries != n_expected:
            hint = (
                "Pass the node to explain as node=."
                if self.node is None and n_entries == n_copies * n_nodes
                else "Pool over the nodes of each graph by the model's argument batch."
                if self.node is None
                else "Leave node= out for models that return one entry for each graph."
            )
            entry = "graph" if self.node is None else "node"
            received = type(output).__name__ if n_entries is None else f"{n_entries} entries"
            raise ModelOutputError(
                f"The model must return one entry for each {entry}, {n_expected} for {n_copies} "
                f"copies of {n_nodes} nodes; it returned {received}. {hint}"
            )
        selected: Tensor = output
        if self.node is not None:
            selected = output.reshape(n_copies, n_nodes, *output.shape[1:])[:, self.node]
        return selected

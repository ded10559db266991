"""Drawing a graph with nodes coloured by their attributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgumentError, required_packages
from .reading import read_graph

_LAYOUT_SEED = 0
"""Seed of the spring layout, so that equal graphs give equal drawings."""


def draw_graph(
    graph: Any,
    attributions: npt.ArrayLike,
    *,
    labels: Sequence[str] | None = None,
    positions: Mapping[int, Sequence[float]] | None = None,
    colours: str = "coolwarm",
    ax: Any = None,
) -> Any:
    """Draw a graph, each node in the colour of its attribution.

    Needs matplotlib and networkx (`pip install "shapley-ext[graphs]"`).

    Parameters
    ----------
    graph : graph
        Any graph that `graph=` of the estimators accepts, except names such as "line". If the nodes
        of a networkx graph are not the numbers from 0, pass
        `PlayerGraph.from_networkx(graph, nodelist)`.
    attributions : array, (M,)
        One number per node, in the order of the nodes; 0 is in the middle of the colour map.
    labels : sequence of str, optional
        Texts on the nodes, such as the symbols of atoms; the numbers of the nodes by default.
    positions : mapping of nodes to (x, y), optional
        Positions of the nodes; by default those of Kamada and Kawai's layout.
    colours : str
        A colour map of matplotlib, for values from negative to positive.
    ax : matplotlib axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib axes
        With the drawing and a colour bar.

    Raises
    ------
    InvalidArgumentError
        If the number of attributions or labels differs from the number of nodes.
    """
    with required_packages("draw_graph needs matplotlib and networkx", extra="graphs"):
        import matplotlib.pyplot as plt
        import networkx as nx

    values = np.asarray(attributions, dtype=np.float64)
    if values.ndim != 1:
        raise InvalidArgumentError(
            f"attributions must hold one number for each node; got shape {values.shape}. Choose "
            "one row and one output."
        )
    player_graph = read_graph(graph, len(values))
    if labels is not None and len(labels) != len(values):
        raise InvalidArgumentError(
            f"labels must hold one text for each of the {len(values)} nodes; got {len(labels)}."
        )
    nx_graph = nx.Graph()
    nx_graph.add_nodes_from(range(player_graph.n_players))
    nx_graph.add_edges_from(player_graph.edges.tolist())
    node_positions = positions if positions is not None else _positions(nx_graph)
    axes = plt.subplots()[1] if ax is None else ax
    limit = max(float(np.abs(values).max(initial=0.0)), np.finfo(float).tiny)
    nx.draw_networkx_edges(nx_graph, node_positions, ax=axes, edge_color="0.6")
    nodes = nx.draw_networkx_nodes(
        nx_graph,
        node_positions,
        ax=axes,
        node_color=values,
        cmap=colours,
        vmin=-limit,
        vmax=limit,
        edgecolors="0.3",
    )
    texts = dict(enumerate(map(str, range(len(values)) if labels is None else labels)))
    nx.draw_networkx_labels(nx_graph, node_positions, texts, ax=axes, font_size=9)
    axes.figure.colorbar(nodes, ax=axes, label="attribution")
    axes.set_axis_off()
    return axes


def _positions(nx_graph: Any) -> Any:
    """Return positions by Kamada and Kawai's layout; by springs if the graph is not connected."""
    import networkx as nx

    if nx.is_connected(nx_graph):
        return nx.kamada_kawai_layout(nx_graph)
    return nx.spring_layout(nx_graph, seed=_LAYOUT_SEED)

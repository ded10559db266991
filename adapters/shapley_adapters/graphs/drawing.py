"""A drawing of a graph whose nodes are coloured by their attributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgumentError, required_packages
from .player_graph import PlayerGraph
from .reading import read_graph

_LAYOUT_SEED = 0
"""Where nodes start from that no layout puts in a certain place; drawings repeat."""


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
        Anything that `graph=` of the estimators takes, but for names of graphs. Nodes of networkx
        graphs that are not the numbers from 0 need `PlayerGraph.of_networkx(graph, nodelist)`.
    attributions : array, (M,)
        One number for each node, in their order; 0 is in the middle of the colours.
    labels : sequence of str, optional
        What is written on the nodes, such as the symbols of atoms; their numbers by default.
    positions : mapping of nodes to (x, y), optional
        Where the nodes are drawn; by default where Kamada and Kawai's springs put them.
    colours : str
        A colour map of matplotlib, for values from negative to positive.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes
        With the drawing and a colour bar.

    Raises
    ------
    InvalidArgumentError
        If there is not one attribution, or label, for each node.
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
    read = read_graph(graph, len(values))
    if labels is not None and len(labels) != len(values):
        raise InvalidArgumentError(
            f"labels must hold one text for each of the {len(values)} nodes; got {len(labels)}."
        )
    drawn = _as_networkx(read)
    where = positions if positions is not None else _positions(drawn)
    axes = plt.subplots()[1] if ax is None else ax
    limit = max(float(np.abs(values).max(initial=0.0)), np.finfo(float).tiny)
    nx.draw_networkx_edges(drawn, where, ax=axes, edge_color="0.6")
    nodes = nx.draw_networkx_nodes(
        drawn,
        where,
        ax=axes,
        node_color=values,
        cmap=colours,
        vmin=-limit,
        vmax=limit,
        edgecolors="0.3",
    )
    texts = dict(enumerate(map(str, range(len(values)) if labels is None else labels)))
    nx.draw_networkx_labels(drawn, where, texts, ax=axes, font_size=9)
    axes.figure.colorbar(nodes, ax=axes, label="attribution")
    axes.set_axis_off()
    return axes


def _as_networkx(graph: PlayerGraph) -> Any:
    import networkx as nx

    drawn = nx.Graph()
    drawn.add_nodes_from(range(graph.n_players))
    drawn.add_edges_from(graph.edges.tolist())
    return drawn


def _positions(drawn: Any) -> Any:
    """Return positions; components that springs would push apart are drawn in one picture."""
    import networkx as nx

    if nx.is_connected(drawn):
        return nx.kamada_kawai_layout(drawn)
    return nx.spring_layout(drawn, seed=_LAYOUT_SEED)

"""Drawings of graphs with attributions."""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest

from shapley_adapters import PlayerGraph, draw_graph
from shapley_adapters.errors import InvalidArgumentError

pytestmark = pytest.mark.filterwarnings("error")


def nodes_and_edges(axes):
    nodes, edges = None, None
    for collection in axes.collections:
        if collection.get_array() is not None:
            nodes = collection
        else:
            edges = collection
    return nodes, edges


def test_nodes_have_the_colours_of_their_attributions():
    values = np.array([0.5, -1.0, 0.0, 2.0])
    axes = draw_graph(PlayerGraph.line(4), values, labels=list("CCNO"))
    nodes, edges = nodes_and_edges(axes)
    np.testing.assert_array_equal(nodes.get_array(), values)
    assert nodes.get_clim() == (-2.0, 2.0)
    assert len(edges.get_paths()) == 3
    assert [text.get_text() for text in axes.texts] == list("CCNO")
    middle = nodes.to_rgba([0.0])[0]
    assert abs(middle[0] - middle[2]) < 0.02  # as much red as blue


def test_positions_and_axes_of_ones_own():
    _, own = plt.subplots()
    where = {0: (0.0, 0.0), 1: (1.0, 2.0), 2: (3.0, 1.0)}
    axes = draw_graph(nx.path_graph(3), [1, 2, 3], positions=where, ax=own)
    assert axes is own
    nodes, _ = nodes_and_edges(axes)
    np.testing.assert_array_equal(nodes.get_offsets(), list(where.values()))
    assert [text.get_text() for text in axes.texts] == ["0", "1", "2"]


@pytest.mark.parametrize("graph", [nx.empty_graph(3), np.array([[0], [1]]), nx.cycle_graph(3)])
def test_any_graph(graph):
    draw_graph(graph, np.zeros(3))


def test_drawings_repeat():
    graph = nx.disjoint_union(nx.path_graph(4), nx.path_graph(3))
    first, second = (nodes_and_edges(draw_graph(graph, np.arange(7.0)))[0] for _ in range(2))
    np.testing.assert_array_equal(first.get_offsets(), second.get_offsets())


@pytest.mark.parametrize(
    ("values", "labels", "message"),
    [
        (np.zeros((2, 3)), None, r"one number for each node; got shape \(2, 3\)"),
        (np.zeros(4), None, "graph has 3 nodes, but there are 4 players"),
        (np.zeros(3), ["a"], "one text for each of the 3 nodes; got 1"),
    ],
)
def test_what_does_not_fit(values, labels, message):
    with pytest.raises(InvalidArgumentError, match=message):
        draw_graph(nx.path_graph(3), values, labels=labels)

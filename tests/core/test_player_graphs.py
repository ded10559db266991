"""Graphs of players and their connected sets against networkx and enumeration."""

import tracemalloc
from itertools import combinations, islice
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.graphs.connected_sets import (
    all_connected_sets,
    connected_sets,
    n_sets_at_least,
    subgraph_of,
)
from shapley_adapters.graphs.player_graph import PlayerGraph
from shapley_adapters.graphs.reading import read_graph
from tests.helpers.optional import torch

ATLAS = [graph for graph in nx.graph_atlas_g() if len(graph) > 0]  # all graphs up to 7 nodes


def edges_of(graph):
    return {tuple(edge) for edge in graph.edges.tolist()}


def graph_from_networkx(graph):
    return PlayerGraph.from_edges(len(graph), list(graph.edges))


def bits(members):
    return frozenset(place for place in range(members.bit_length()) if members >> place & 1)


def sets_of(graph, largest=None):
    """Return all connected sets with their boundaries, as the enumerator gives them."""
    found = []
    for part, sets in all_connected_sets(graph, largest):
        for members, boundary in sets:
            found.append(
                tuple(
                    frozenset(part.nodes[list(bits(one))].tolist()) for one in (members, boundary)
                )
            )
    return found


# --- makers ---


def test_lines_and_rings_differ_by_one_edge():
    line, ring = PlayerGraph.line(6), PlayerGraph.ring(6)
    assert edges_of(line) == set(nx.path_graph(6).edges)
    assert edges_of(ring) - edges_of(line) == {(0, 5)}
    assert PlayerGraph.line(1).edges.shape == PlayerGraph.ring(1).edges.shape == (0, 2)
    assert edges_of(PlayerGraph.ring(2)) == {(0, 1)}
    moved = PlayerGraph.line(4).relabelled(np.array([2, 0, 3, 1]))
    assert edges_of(moved) == {(0, 2), (0, 3), (1, 3)}


@pytest.mark.parametrize("shape", [(4, 5), (1, 7), (3, 4, 2), (2, 2, 2, 2)])
def test_grids(shape):
    wanted = nx.convert_node_labels_to_integers(nx.grid_graph(shape[::-1]), ordering="sorted")
    assert edges_of(PlayerGraph.grid(shape)) == {tuple(sorted(edge)) for edge in wanted.edges}
    places = np.argwhere(np.ones(shape))
    apart = np.abs(places[:, None] - places[None]).max(axis=2)
    assert edges_of(PlayerGraph.grid(shape, diagonals=True)) == {
        (i, j) for i, j in np.argwhere(apart == 1).tolist() if i < j
    }


@pytest.mark.parametrize("diagonals", [False, True])
@pytest.mark.parametrize("shape", [(9,), (5, 6), (3, 4, 5)])
def test_groups_that_touch(shape, diagonals):
    mask = np.random.default_rng(0).integers(7, size=shape)
    grid = PlayerGraph.grid(shape, diagonals)
    touching = {
        tuple(sorted((int(mask.flat[i]), int(mask.flat[j])))) for i, j in grid.edges.tolist()
    }
    found = PlayerGraph.touching(mask, diagonals, n_players=9)
    assert edges_of(found) == {edge for edge in touching if edge[0] != edge[1]}
    assert found.n_players == 9
    assert found.shape is None
    assert grid.shape == shape


def test_forms_of_users():
    graph = nx.karate_club_graph()
    wanted = graph_from_networkx(graph)
    index = np.array(list(graph.edges)).T
    both = np.concatenate([index, index[::-1], np.array([[3], [3]])], axis=1)
    forms = [
        graph,
        graph.to_directed(),
        nx.MultiGraph(graph),
        nx.to_scipy_sparse_array(graph),
        scipy.sparse.coo_matrix(nx.to_numpy_array(graph)),
        index,
        both,
        both.tolist(),
        SimpleNamespace(edge_index=both, num_nodes=34),
        wanted,
    ]
    for form in forms:
        assert read_graph(form, 34) == wanted
        assert hash(read_graph(form, 34)) == hash(wanted)
    named = nx.Graph([("b", "c"), ("c", "a")])
    assert edges_of(read_graph(named, 3, names=["a", "b", "c"])) == {(0, 2), (1, 2)}
    shuffled = nx.Graph()
    shuffled.add_nodes_from([2, 0, 1])
    shuffled.add_edge(2, 0)
    assert edges_of(read_graph(shuffled, 3)) == {(0, 2)}  # numbers are the players' numbers
    assert read_graph(np.zeros((2, 0)), 3) == PlayerGraph.from_edges(3, [])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PlayerGraph.line(0), "at least 1; got 0"),
        (lambda: PlayerGraph.grid((3, 0)), "at least 1; got 0"),
        (lambda: PlayerGraph.from_edges(3, [(0.7, 1)]), "whole numbers.*float64"),
        (lambda: PlayerGraph.from_edges(1, [(0, 1)]), r"nodes\[None\]"),
    ],
)
def test_graphs_of_no_players_or_half_nodes_are_refused(make, words):
    with pytest.raises(InvalidArgumentError, match=words):
        make()


def test_lists_of_pairs_are_edges_and_lists_of_lists_an_index():
    for edges in ([(0, 1), (2, 3)], [(0, 1), (2, 3), (3, 0)], [(3, 1)], ((0, 1), (2, 3))):
        assert edges_of(read_graph(edges, 4)) == {tuple(sorted(edge)) for edge in edges}
    assert edges_of(read_graph([[0, 1], [2, 3]], 4)) == {(0, 2), (1, 3)}
    assert edges_of(read_graph(([0, 1, 1], [2, 3, 2]), 4)) == {(0, 2), (1, 3), (1, 2)}
    assert edges_of(read_graph(np.array([[0, 1], [2, 3]]), 4)) == {(0, 2), (1, 3)}


def test_nodes_of_networkx_are_names_where_they_can_be():
    tens = nx.Graph()
    tens.add_nodes_from([10, 30, 20])
    tens.add_edge(10, 20)
    assert edges_of(read_graph(tens, 3, names=["10", "20", "30"])) == {(0, 1)}
    backwards = nx.path_graph(3)
    backwards.remove_edge(1, 2)
    assert edges_of(read_graph(backwards, 3, names=["2", "1", "0"])) == {(1, 2)}
    assert edges_of(read_graph(backwards, 3, names=["a", "b", "c"])) == {(0, 1)}


NOT_FROM_0 = nx.Graph([(3, 1), (1, 2), (2, 5), (5, 4), (4, 6)])  # a path, in another order


@pytest.mark.parametrize("names", [None, list("abcdef")])
@pytest.mark.parametrize(
    "graph",
    [
        NOT_FROM_0,
        nx.relabel_nodes(NOT_FROM_0, str),
        nx.grid_2d_graph(2, 3),
        nx.to_pandas_adjacency(NOT_FROM_0),
        nx.relabel_nodes(NOT_FROM_0, lambda node: node - 0.5),
    ],
    ids=["numbers", "texts", "pairs", "frame", "halves"],
)
def test_nodes_that_may_be_any_player_are_refused(graph, names):
    """Their own order is the players' only where users say so."""
    remedy = (
        "csr_array" if isinstance(graph, pd.DataFrame) else "PlayerGraph.from_networkx.*nodelist"
    )
    with pytest.raises(InvalidArgumentError, match=f"the player of each node is unknown.*{remedy}"):
        read_graph(graph, 6, names)


def test_an_order_of_nodes_that_users_give():
    for nodelist in ([1, 2, 3, 4, 5, 6], list(NOT_FROM_0), [6, 5, 4, 3, 2, 1]):
        wanted = {
            tuple(sorted((nodelist.index(i), nodelist.index(j)))) for i, j in NOT_FROM_0.edges
        }
        found = PlayerGraph.from_networkx(NOT_FROM_0, nodelist=nodelist)
        assert edges_of(found) == wanted
        assert read_graph(found, 6) == found
    for wrong in ([1, 2, 3], [1, 2, 3, 4, 5, 5], [0, 1, 2, 3, 4, 5], range(1, 8)):
        with pytest.raises(InvalidArgumentError, match="each of the 6 nodes of the graph once"):
            PlayerGraph.from_networkx(NOT_FROM_0, wrong)


def test_frames_of_adjacency_go_by_their_names():
    frame = nx.to_pandas_adjacency(nx.Graph([("c", "a"), ("a", "b")]))  # in the order c, a, b
    assert edges_of(read_graph(frame, 3, list("abc"))) == {(0, 1), (0, 2)}
    assert edges_of(read_graph(frame.loc[list("abc")], 3, list("abc"))) == {(0, 1), (0, 2)}
    numbered = frame.rename(index={"c": 2, "a": 0, "b": 1}, columns={"c": 2, "a": 0, "b": 1})
    assert edges_of(read_graph(numbered, 3, list("abc"))) == {(0, 1), (0, 2)}
    pair = pd.DataFrame([[1, 1], [1, 1]])  # of two nodes, which an edge index would join to nobody
    assert edges_of(read_graph(pair, 2)) == {(0, 1)}
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    with pytest.raises(InvalidArgumentError, match="adjacency.*from_pandas_edgelist"):
        read_graph(edges, 3, list("abc"))
    with pytest.raises(InvalidArgumentError, match="has 3 nodes, but there are 4"):
        read_graph(frame, 4, list("abcd"))
    with pytest.raises(InvalidArgumentError, match="NaN"):
        read_graph(frame.replace(0, np.nan), 3, list("abc"))


def test_edges_go_by_names_or_by_places():
    names = ["age", "income", "city"]
    assert edges_of(read_graph([("city", "age")], 3, names)) == {(0, 2)}
    with pytest.raises(InvalidArgumentError, match="'town', which is not the name of a pla"):
        read_graph([("town", "age"), ("age", "income")], 3, names)
    with pytest.raises(InvalidArgumentError, match="must hold pairs"):
        read_graph([("city", "age", "income")], 3, names)
    with pytest.raises(InvalidArgumentError, match="must hold pairs of whole numbers, or"):
        read_graph([("city", 0)], 3, names)


@pytest.mark.parametrize("names", [["1", "2", "3"], [2, 1, 0], [10, 20, 30]])
def test_numbers_that_may_be_names_or_places_are_refused(names):
    for edges in ([(0, 1), (1, 2)], np.array([[0, 1], [1, 2]]), [[0, 1], [1, 2]]):
        with pytest.raises(InvalidArgumentError, match="name or an index.*nx.Graph.*from_edges"):
            read_graph(edges, 3, names)
    assert read_graph(PlayerGraph.line(3), 3, names) == PlayerGraph.line(3)
    for plain in (None, [0, 1, 2], ["0", "1", "2"], ["Feature 0", "Feature 1", "Feature 2"]):
        assert read_graph([(0, 1), (1, 2)], 3, plain) == PlayerGraph.from_edges(3, [(0, 1), (1, 2)])


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (["a", "B", "c"], "node 'B' is not the name of a player, and player 'b' has no node"),
        ([10, "a", "b"], "node 10 is not the name of a player, and player 'c' has no node"),
    ],
)
def test_nodes_of_networkx_that_are_names_in_part(nodes, words):
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    with pytest.raises(InvalidArgumentError, match=words):
        read_graph(graph, 3, names=["a", "b", "c"])


def test_edge_indices_of_torch():
    index = torch.tensor([[0, 1, 1], [1, 0, 2]])
    assert edges_of(read_graph(index, 3)) == {(0, 1), (1, 2)}
    assert read_graph(SimpleNamespace(edge_index=index, num_nodes=3), 3).n_players == 3


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.eye(4, dtype=int), r"\(2, E\).*scipy.sparse.csr_array"),
        (np.ones((2, 3)), "whole numbers"),
        (np.array([[0, 1], [1, 9]]), "between 0 and 9, but the nodes are numbered from 0 to 3"),
        (np.array([[0, -1], [1, 2]]), "between -1"),
        ([(0, 1), (2, 9)], "between 0 and 9"),
        (np.array([[0], [1]]), "names 2 nodes, but there are 4 players.*feature_mask.*from_edges"),
        ([(0, 1, 2), (1, 2, 3)], "graph, as a list of tuples, must hold pairs"),
        ([(0, 1.5), (1, 2)], "graph, as a list of tuples, must hold pairs"),
        ([(0, "a"), (1, 2)], "graph, as a list of tuples, must hold pairs"),
        (nx.path_graph(3), "graph has 3 nodes, but there are 4 players"),
        (scipy.sparse.csr_matrix(np.ones((4, 3))), r"square.*\(4, 3\)"),
        (SimpleNamespace(edge_index=np.zeros((2, 0)), num_nodes=7), "graph has 7 nodes"),
    ],
)
def test_graphs_that_cannot_be(graph, message):
    with pytest.raises(InvalidArgumentError, match=message):
        read_graph(graph, 4)


@pytest.mark.parametrize("graph", ["linear", 3, None, object(), ["a", "b"]])
def test_what_is_no_graph(graph):
    with pytest.raises(InvalidArgumentTypeError, match="networkx graph, an adjacency matrix"):
        read_graph(graph, 4)


def test_fewer_nodes_than_players_leave_the_last_alone():
    padded = read_graph(PlayerGraph.line(3), 5)
    assert padded.n_players == 5
    assert edges_of(padded) == {(0, 1), (1, 2)}
    assert padded != PlayerGraph.line(5)


# --- distances ---


def test_distances_neighbourhoods_and_components():
    for wanted in ATLAS[::7]:
        graph = graph_from_networkx(wanted)
        lengths = dict(nx.all_pairs_shortest_path_length(wanted))
        distances = graph.distances()
        for i in wanted:
            assert {j: distances[i, j] for j in lengths[i]} == lengths[i]
            assert np.isfinite(distances[i]).sum() == len(lengths[i])
            assert graph.neighbours[i].tolist() == sorted(wanted[i])
            for order in range(4):
                near = graph.neighbourhood(i, order).tolist()
                assert sorted(near) == sorted(j for j, n in lengths[i].items() if n <= order)
                assert near[0] == i
        assert len(set(graph.components)) == nx.number_connected_components(wanted)
        assert graph.diameter == max(max(of_one.values()) for of_one in lengths.values())
        for order in range(graph.diameter + 2):
            assert graph.is_covered(order) == (order >= graph.diameter)


# --- connected sets ---


def by_enumeration(graph):
    """Return all connected sets of a networkx graph with their boundaries."""
    found = set()
    for size in range(1, len(graph) + 1):
        for members in combinations(graph, size):
            if nx.is_connected(graph.subgraph(members)):
                around = {n for node in members for n in graph[node]} - set(members)
                found.add((frozenset(members), frozenset(around)))
    return found


def test_sets_up_to_a_size_everywhere():
    for wanted in ATLAS[3::13]:
        for largest in (1, 2, 4, None):
            found = sets_of(graph_from_networkx(wanted), largest)
            assert len(found) == len(set(found))
            assert set(found) == {p for p in by_enumeration(wanted) if len(p[0]) <= (largest or 7)}


@pytest.mark.slow
def test_the_lower_bound_on_the_number_of_sets():
    """Exact on trees; never too high, with null players neither."""
    rng = np.random.default_rng(0)
    for wanted in ATLAS[5::13]:
        graph, n = graph_from_networkx(wanted), len(wanted)
        first = graph.neighbourhood(0, n)
        part = subgraph_of(graph, first)
        inside = wanted.subgraph(first.tolist())
        for is_active in (np.ones(len(first), dtype=bool), rng.random(len(first)) < 0.6):
            nulls = set(first[~is_active].tolist())
            sets = {members - nulls for members, _ in by_enumeration(inside)} - {frozenset()}
            around = {members - nulls for members, _ in by_enumeration(inside) if 0 in members}
            least = n_sets_at_least(part, is_active, is_rooted=False)
            rooted = n_sets_at_least(part, is_active, is_rooted=True)
            assert least <= len(sets)
            assert rooted <= len(around)
            if nx.is_tree(inside) and is_active.all():
                assert (least, rooted) == (len(sets), len(around))


def test_memory_does_not_grow_with_the_number_of_sets():
    grid = PlayerGraph.grid((20, 20))
    part = subgraph_of(grid, grid.neighbourhood(210, 12))

    def peak(n):
        tracemalloc.start()
        assert sum(1 for _ in islice(connected_sets(part.neighbour_sets), n)) == n
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    few = peak(5_000)
    assert peak(50_000) < 2 * few + 20_000


# --- boxes ---

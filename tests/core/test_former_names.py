"""Former names of public methods work, and warn with the present name."""

import networkx as nx
import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.coalitions.tables import CoalitionTable
from shapley_adapters.estimators.protocol import Design
from shapley_adapters.graphs.player_graph import PlayerGraph
from tests.helpers.reference_games import random_game

GRAPH = nx.path_graph(3)
DESIGN = Design(CoalitionTable(np.zeros((1, 2, 3), dtype=bool), np.array([2])))
ROWS = np.array([0])


@pytest.mark.parametrize(
    ("call", "former", "present"),
    [
        (lambda: PlayerGraph.of_edges(3, GRAPH.edges), "PlayerGraph.of_edges", "from_edges"),
        (
            lambda: PlayerGraph.of_networkx(GRAPH, nodelist=[0, 1, 2]),
            "PlayerGraph.of_networkx",
            "from_networkx",
        ),
        (lambda: DESIGN.of_rows(ROWS), "Design.of_rows", "subset_rows"),
    ],
)
def test_former_names_warn(call, former, present):
    with pytest.warns(
        FutureWarning, match=rf"{former} .*0\.1 .*0\.2: use \w+\.{present}"
    ) as record:
        found = call()
    assert record[0].filename == __file__
    assert found == (PlayerGraph.from_edges(3, GRAPH.edges) if "Graph" in former else DESIGN)


def test_former_name_of_the_estimate_of_a_row():
    estimate = core.estimate(random_game(3), core.Exact(), core.Settings(seed=0))
    with pytest.warns(FutureWarning, match="use Estimate.subset_row"):
        np.testing.assert_array_equal(estimate.of_row(0).values, estimate.values[:1])


def test_designs_of_others_may_have_the_former_name():
    with pytest.warns(FutureWarning, match="Own.of_rows .*use Own.subset_rows"):

        class Own(Design):
            def of_rows(self, indices):
                return indices

    found: object = Own(DESIGN.table).subset_rows(ROWS)
    assert found is ROWS

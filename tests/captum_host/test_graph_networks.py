"""Networks that take a batch of graphs as one large graph, as those of PyTorch Geometric do."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn

from captum_ext import Exact, Myerson, StackedGraphs
from shapley_adapters.errors import InvalidArgumentError, ModelOutputError, ShapleyExtWarning
from tests.captum_host.networks import game_of
from tests.captum_host.test_graphs import METHODS, each_method
from tests.helpers.brute_force import shapley_values
from tests.helpers.tolerances import EXACT

pytestmark = pytest.mark.filterwarnings("error")

MOLECULE = nx.cycle_graph(6)
MOLECULE.add_edges_from([(0, 6), (6, 7)])
N_ATOMS = len(MOLECULE)
BY_ATOM = torch.arange(N_ATOMS).reshape(1, N_ATOMS, 1)


def molecules(n_molecules=1):
    """Return the features of atoms, (B, N, 4), and the edges, in both directions."""
    generator = torch.Generator().manual_seed(5)
    nodes = torch.randn(n_molecules, N_ATOMS, 4, generator=generator, dtype=torch.float64)
    edges = torch.tensor(list(MOLECULE.edges)).T
    return nodes, torch.cat([edges, edges.flip(0)], 1)


def seeded(network):
    """Return the network with random weights, in double precision."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 2)
    return network.double().eval()


class PooledMessages(nn.Module):
    """Two rounds of messages, weighted by edge, and a sum over the atoms of each graph."""

    def __init__(self, pooled=True):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 5), nn.Linear(5, 5)])
        self.head = nn.Linear(5, 2)
        self.pooled = pooled

    def forward(self, x, edge_index, batch=None, edge_weight=None):
        source, sink = edge_index
        for layer in self.layers:
            sent = layer(x)[source]
            sent = sent if edge_weight is None else sent * edge_weight[:, None]
            x = torch.tanh(layer(x).index_add(0, sink, sent))
        if not self.pooled:
            return self.head(x)
        sums = torch.zeros(int(batch.max()) + 1, 5, dtype=x.dtype).index_add(0, batch, x)
        return self.head(sums)


def one_at_a_time(network, edge_index, **arguments):
    """Return the function of one graph's features without any stacking."""
    alone = torch.zeros(N_ATOMS, dtype=torch.long)
    return lambda x: network(x[0], edge_index, alone, **arguments)[:, 1]


def check(method, model, alone, nodes, graph):
    """Compare attributions of the stacked network with the definition on single graphs."""
    kind, options, by_definition = METHODS[method]
    found = kind(model, graph=graph, **options).attribute(
        nodes, target=1, feature_mask=BY_ATOM, n_samples=400
    )
    for example, own in zip(nodes, found, strict=True):
        game = game_of(alone, example, torch.zeros_like(example), BY_ATOM[0])
        np.testing.assert_allclose(own[:, 0].numpy(), by_definition(MOLECULE, game), **EXACT)


@each_method
def test_copies_do_not_mix(method):
    network, (nodes, edge_index) = seeded(PooledMessages()), molecules(2)
    alone = one_at_a_time(network, edge_index)
    check(method, StackedGraphs(network, edge_index), alone, nodes, edge_index)


def test_all_copies_go_in_one_pass():
    sizes = []
    network, (nodes, edge_index) = seeded(PooledMessages()), molecules()
    network.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    exact = Exact(StackedGraphs(network, edge_index))
    exact.attribute(nodes, target=0, feature_mask=BY_ATOM)
    assert max(sizes) > 100 * N_ATOMS
    n_checks = exact.last_estimate.check_evaluations
    assert sum(sizes) == (2**N_ATOMS + n_checks) * N_ATOMS


def test_graphs_without_edges():
    network, (nodes, _) = seeded(PooledMessages()), molecules()
    none = torch.zeros(2, 0, dtype=torch.long)
    model = StackedGraphs(network, none)
    myerson = Myerson(model, graph=nx.empty_graph(N_ATOMS))
    with pytest.warns(ShapleyExtWarning, match="joins no two players"):
        found = myerson.attribute(nodes, target=1, feature_mask=BY_ATOM)
    alone = game_of(one_at_a_time(network, none), nodes[0], torch.zeros_like(nodes[0]), BY_ATOM[0])
    for atom in range(N_ATOMS):
        assert found[0, atom, 0].item() == pytest.approx((alone({atom}) - alone(set())).item())


def test_wrong_calls():
    network, (nodes, edge_index) = seeded(PooledMessages()), molecules()
    with pytest.raises(InvalidArgumentError, match=r"edge_index must be .*\(2, E\); got shape \(1"):
        StackedGraphs(network, edge_index.T)
    with pytest.raises(InvalidArgumentError, match=r"got PooledMessages.*data\.edge_index"):
        StackedGraphs(network, network)
    with pytest.raises(InvalidArgumentError, match="'edge_weight'.* each of the 16 edges.*got 3"):
        StackedGraphs(network, edge_index, edge_arguments={"edge_weight": torch.ones(3)})
    with pytest.raises(InvalidArgumentError, match="edge_index names node -1"):
        StackedGraphs(network, edge_index - 1)
    model = StackedGraphs(network, edge_index)
    with pytest.raises(InvalidArgumentError, match=r"hold 4 nodes.*node 7.*data\.x\[None\]"):
        Exact(model).attribute(nodes[0], target=0)
    with pytest.raises(InvalidArgumentError, match="node names node -1"):
        Exact(StackedGraphs(network, edge_index, node=-1)).attribute(nodes, feature_mask=BY_ATOM)
    by_node = StackedGraphs(seeded(PooledMessages(pooled=False)), edge_index)
    with pytest.raises(ModelOutputError, match="each graph, 1 for 1 copies of 8.*8 entries.*node="):
        Exact(by_node).attribute(nodes, target=0, feature_mask=BY_ATOM)
    with pytest.raises(ModelOutputError, match="each node, 8 .*it returned 1 entries. Leave node="):
        Exact(StackedGraphs(network, edge_index, node=0)).attribute(nodes, feature_mask=BY_ATOM)


# --- PyTorch Geometric ---


def geometric():
    """Return the package, or skip."""
    pytest.importorskip("torch_geometric")
    import torch_geometric.data
    import torch_geometric.nn

    return torch_geometric


def convolutions(package):
    """Return a graph convolutional network as its users write it, and a molecule."""
    layers = package.nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = layers.GCNConv(4, 6), layers.GCNConv(6, 6)
            self.head = nn.Linear(6, 2)

        def forward(self, x, edge_index, batch):
            x = torch.tanh(self.first(x, edge_index))
            x = torch.tanh(self.second(x, edge_index))
            return self.head(layers.global_add_pool(x, batch))

    nodes, edge_index = molecules()
    return seeded(Network()), package.data.Data(x=nodes[0], edge_index=edge_index)


def test_the_explainer_of_pytorch_geometric():
    """It knows methods by the names of their classes, and passes one graph at a time."""
    package = geometric()
    from torch_geometric.explain import CaptumExplainer, Explainer

    network, data = convolutions(package)

    class ShapleyValueSampling(Myerson):
        def __init__(self, forward_func):
            super().__init__(forward_func, seed=0, graph=data)

    alone = torch.zeros(N_ATOMS, dtype=torch.long)
    explainer = Explainer(
        network,
        CaptumExplainer(ShapleyValueSampling, perturbations_per_eval=1, feature_mask=BY_ATOM),
        explanation_type="phenomenon",
        node_mask_type="attributes",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "graph",
            "return_type": "raw",
        },
    )
    explanation = explainer(data.x, data.edge_index, batch=alone, target=torch.tensor([1]))
    from torch_geometric.nn.models import to_captum_model

    right = Myerson(to_captum_model(network, "node"), seed=0, graph=data).attribute(
        data.x[None],
        target=1,
        additional_forward_args=(data.edge_index, alone),
        feature_mask=BY_ATOM,
        perturbations_per_eval=1,
    )
    torch.testing.assert_close(explanation.node_mask, right[0].to(explanation.node_mask))


# Edges as players


@pytest.mark.parametrize("pooled", [True, False])
def test_edges_are_players(pooled):
    network, (nodes, both) = seeded(PooledMessages(pooled)), molecules()
    weights = torch.linspace(-1, 2, both.shape[1], dtype=torch.float64)
    model = StackedGraphs(
        network,
        both,
        edge_arguments={"edge_weight": weights},
        nodes=nodes[0],
        node=None if pooled else 1,
    )
    n_bonds = both.shape[1] // 2
    bonds = torch.arange(n_bonds).repeat(2)[None]  # both directions together
    found = Exact(model).attribute(torch.ones(1, 2 * n_bonds), target=1, feature_mask=bonds)

    def value(coalition):
        kept = [edge for edge in range(2 * n_bonds) if edge % n_bonds in coalition]
        batch = torch.zeros(N_ATOMS, dtype=torch.long)
        with torch.no_grad():
            output = network(nodes[0], both[:, kept], batch, weights[kept])
        return float(output[0 if pooled else 1, 1])

    np.testing.assert_allclose(found[0, :n_bonds], shapley_values(n_bonds, value), atol=1e-10)
    assert torch.equal(found[0, :n_bonds], found[0, n_bonds:])


@pytest.mark.parametrize("nodes", [3, torch.zeros(1, N_ATOMS, 4)], ids=["a number", "a batch"])
def test_nodes_of_no_single_graph_are_refused(nodes):
    with pytest.raises(InvalidArgumentError, match=r"nodes must have the shape \(N, …\).*data\.x"):
        StackedGraphs(PooledMessages(), molecules()[1], nodes=nodes)


def test_the_presence_of_each_edge_is_needed():
    model = StackedGraphs(PooledMessages(), molecules()[1], nodes=torch.zeros(N_ATOMS, 4))
    message = r"one number for each of the \d+ edges.*\(1, 3\).*torch\.ones"
    with pytest.raises(InvalidArgumentError, match=message):
        Exact(model).attribute(torch.ones(1, 3))

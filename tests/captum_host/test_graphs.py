"""L-Shapley, C-Shapley and the Myerson value through captum: masks, tokens, images, molecules."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from captum.attr import TextTemplateInput

from captum_ext import CShapley, LShapley, Myerson, PlayerGraph
from shapley_adapters.errors import InvalidArgumentError
from tests.captum_host.networks import game_of
from tests.captum_host.test_language_models import (
    MODEL,
    PROMPT,
    TOKENIZER,
    attributed,
    log_probabilities,
)
from tests.helpers import graph_oracles as oracle
from tests.helpers.tolerances import EXACT

pytestmark = pytest.mark.filterwarnings("error")

METHODS: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "L": (LShapley, {"order": 1}, lambda graph, v: oracle.l_shapley(graph, v, 1)),
    "C, regression": (
        CShapley,
        {"order": 3, "variant": "regression", "shapes": "connected"},
        lambda graph, v: oracle.regression(oracle.connected_sets(graph, 3), v, len(graph)),
    ),
    "Myerson": (Myerson, {}, oracle.myerson),
}
each_method = pytest.mark.parametrize("method", METHODS)


def smooth(x):
    """Return an output of each example in which all its numbers interact."""
    flat = x.reshape(len(x), -1)
    weights = torch.linspace(-1, 1, flat.shape[1], dtype=x.dtype)
    return torch.tanh(flat @ weights) + torch.sin(flat.roll(1, 1) * flat).sum(1)


def examples(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def check(method, function, x, wanted_graph, mask=None, baseline=None, **settings):
    """Compare attributions of a method with its definition, player by player."""
    kind, options, by_definition = METHODS[method]
    feature_mask = None if mask is None else mask
    attribution = kind(function, seed=0, **options, **settings)
    given = None if baseline is None else baseline[None]
    found = attribution.attribute(x, feature_mask=feature_mask, baselines=given)
    assert found.shape == x.shape
    ids = torch.arange(x[0].numel()).reshape(x.shape[1:]) if mask is None else mask[0]
    ids = ids.expand(x.shape[1:])
    zero = torch.zeros_like(x[0]) if baseline is None else baseline
    for example, own in zip(x, found, strict=True):
        wanted = by_definition(wanted_graph, game_of(function, example, zero, ids))
        np.testing.assert_allclose(own.numpy(), wanted[ids.numpy()].reshape(own.shape), **EXACT)
    return attribution


# --- graphs that are found ---


@each_method
def test_sequences_of_numbers_are_lines_or_rings_where_users_say_so(method):
    check(method, smooth, examples(3, 6), nx.path_graph(6), graph="line")
    check(method, smooth, examples(3, 6), nx.cycle_graph(6), graph="ring")


@each_method
def test_images_are_grids_along_all_dimensions(method):
    grid = nx.convert_node_labels_to_integers(nx.grid_graph((2, 2, 2)), ordering="sorted")
    check(method, smooth, examples(2, 2, 2, 2), grid)


@each_method
def test_superpixels_that_touch_are_neighbours(method):
    """A ring of four around a middle, shared by the channels."""
    mask = torch.tensor([[0, 0, 1], [3, 4, 1], [3, 2, 2]])[None, None]
    graph = nx.wheel_graph(5)
    graph = nx.relabel_nodes(graph, {0: 4, 1: 0, 2: 1, 3: 2, 4: 3})
    check(method, smooth, examples(2, 2, 3, 3), graph, mask)


def test_channels_grouped_by_a_mask_make_a_flat_grid():
    x = examples(1, 3, 4, 4)
    mask = torch.arange(16).reshape(1, 1, 4, 4)
    squares = CShapley(smooth, variant="regression", order=2)
    squares.attribute(x, feature_mask=mask)
    assert squares.last_estimate.evaluations == 16 + 9 + 2
    local = LShapley(smooth, order=1)
    found = local.attribute(x, feature_mask=mask)
    given = LShapley(smooth, order=1, graph=PlayerGraph.grid((4, 4)))
    assert torch.equal(found, given.attribute(x, feature_mask=mask))


def test_masks_that_differ_by_example():
    x = examples(2, 6)
    mask = torch.tensor([[0, 0, 1, 1, 2, 2], [2, 2, 0, 0, 1, 1]])
    graphs = [nx.path_graph(3), nx.Graph([(2, 0), (0, 1)])]
    found = LShapley(smooth, order=1, graph="line").attribute(x, feature_mask=mask)
    for row, graph in enumerate(graphs):
        game = game_of(smooth, x[row], torch.zeros(6, dtype=x.dtype), mask[row])
        wanted = oracle.l_shapley(graph, game, 1)
        np.testing.assert_allclose(found[row].numpy(), wanted[mask[row]], **EXACT)


def test_several_inputs_are_graphs_of_their_own():
    x = examples(2, 3), examples(2, 4)

    def function(first, second):
        return smooth(torch.cat([first, second], 1))

    found = CShapley(function, order=2, graph="line").attribute(x)
    graph = nx.disjoint_union(nx.path_graph(3), nx.path_graph(4))
    wanted = CShapley(function, order=2, graph=graph).attribute(x)
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)
    assert isinstance(found, tuple)


# --- tokens ---


TOKENS = torch.randint(1, 20, (3, 8), generator=torch.Generator().manual_seed(0))


def of_tokens(tokens):
    """Return an output in which all tokens take part; padding is the word 0."""
    return smooth(torch.cos(tokens.double()))


@each_method
def test_integer_tokens(method):
    kind, options, by_definition = METHODS[method]
    found = kind(of_tokens, **options).attribute(TOKENS)
    assert found.dtype == torch.float64
    for row, own in zip(TOKENS, found, strict=True):
        game = game_of(of_tokens, row, 0 * row, torch.arange(8))
        np.testing.assert_allclose(own.numpy(), by_definition(nx.path_graph(8), game), **EXACT)


def test_each_example_may_have_a_graph_of_its_own():
    x, graphs = examples(2, 5), [nx.path_graph(5), nx.star_graph(4)]
    found = CShapley(smooth, order=1, graph=graphs).attribute(x)
    for row, graph in enumerate(graphs):
        alone = CShapley(smooth, order=1, graph=graph).attribute(x[row : row + 1])
        torch.testing.assert_close(found[row], alone[0])


# --- language models ---


@each_method
def test_language_models_token_by_token(method):
    kind, options, by_definition = METHODS[method]
    attribution = kind(MODEL, **options)
    found, explainer = attributed(attribution)
    ids = TOKENIZER.encode(PROMPT)

    def value(members):
        return log_probabilities([1, *(t if i in members else 0 for i, t in enumerate(ids[1:]))])

    wanted = by_definition(nx.path_graph(len(ids) - 1), value).T
    np.testing.assert_allclose(found.seq_attr, wanted[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.token_attr, wanted[1:], rtol=0, atol=1e-6)
    assert explainer.attr_method.last_estimate.evaluations <= 2 ** (len(ids) - 1)
    found.plot_token_attr(show=False)


def test_slots_of_templates_are_neighbours_where_users_say_so():
    template = TextTemplateInput("the {} sat {} the {}", values=["cat", "on", "mat"])
    with pytest.raises(InvalidArgumentError, match="graph is missing"):
        attributed(CShapley(MODEL, order=1), template)
    found, _ = attributed(CShapley(MODEL, order=2, marginals="components", graph="line"), template)
    wanted, _ = attributed(Myerson(MODEL, graph=nx.path_graph(3)), template)
    torch.testing.assert_close(found.token_attr, wanted.token_attr)


# --- wrong calls ---


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ("tree", "graph must be one of 'line', 'ring', 'grid'"),
        (torch.tensor([[0, 1], [1, 2]]), "names 3 nodes.* 6 players"),
    ],
)
def test_graphs_that_cannot_be_used(graph, message):
    with pytest.raises(InvalidArgumentError, match=message):
        LShapley(smooth, graph=graph).attribute(examples(2, 6))


@pytest.mark.parametrize("kind", [LShapley, CShapley, Myerson])
def test_columns_of_tables_are_no_neighbours(kind):
    """shap refuses them, too. Where they are a sequence, users have to say so."""
    x, mask = examples(2, 6), torch.tensor([[0, 0, 1, 1, 2, 2]])
    message = r"graph is missing: inputs\[0\] of shape \(2, 6\) is a table .*graph='line'"
    for feature_mask in (None, mask):
        with pytest.raises(InvalidArgumentError, match=message):
            kind(smooth).attribute(x, feature_mask=feature_mask)
    with pytest.raises(InvalidArgumentError, match=r"inputs\[1\] of shape \(2, 6\)"):
        kind(lambda image, table: smooth(table)).attribute((examples(2, 2, 2), x))
    by_itself = kind(lambda x: smooth(x[:, :1])).attribute(x[:, :1])  # one column has no order
    torch.testing.assert_close(by_itself[:, 0], smooth(x[:, :1]) - smooth(0 * x[:, :1]))

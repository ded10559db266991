"""L-Shapley, C-Shapley and the Myerson value through shap: tables, texts, images, plots."""

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentError
from tests.helpers import graph_oracles as oracle
from tests.helpers.brute_force import masked_model_values
from tests.shap_host.games import ROUNDING, curved, curved_columns, rows
from tests.shap_host.test_text import TEXTS, Tokenizer, by_spaces, model

pytestmark = pytest.mark.filterwarnings("error")

BACKGROUND, X = rows(2, 5, seed=1), rows(3, 5)
TREE = nx.Graph([(0, 1), (0, 2), (2, 3), (2, 4)])

METHODS: dict[str, tuple[dict[str, Any], Any]] = {
    "lshapley": ({"order": 1}, lambda graph, v: oracle.l_shapley(graph, v, 1)),
    "cshapley, paper": (
        {"order": 2, "weighting": "paper", "context": "kept"},
        lambda graph, v: oracle.c_shapley(graph, v, 2, "paper", "kept"),
    ),
    "cshapley, efficient": (
        {
            "order": 2,
            "variant": "regression",
            "shapes": "connected",
            "kernel": "equal",
            "efficient": True,
        },
        lambda graph, v: oracle.regression(
            oracle.connected_sets(graph, 2), v, len(graph), "equal", True
        ),
    ),
    "myerson": ({}, oracle.myerson),
}
each_method = pytest.mark.parametrize("method", METHODS)


def build(method, function, masker, **options):
    own, by_definition = METHODS[method]
    name = method.partition(",")[0]
    built = shap.Explainer(function, masker, algorithm=name, seed=0, **own, **options)
    return built, by_definition


# --- tables ---


@each_method
def test_tables_with_a_graph(method):
    explainer, by_definition = build(method, curved, BACKGROUND, graph=TREE)
    sv = explainer(X, silent=True)
    for row, values in zip(X, sv.values, strict=True):
        wanted = by_definition(TREE, masked_model_values(curved, row, BACKGROUND))
        np.testing.assert_allclose(values, wanted, **ROUNDING)
    assert (explainer.last_estimate.standard_errors == 0).all()


def test_frames_and_edges_of_names():
    frame, background = (pd.DataFrame(one, columns=list("abcde")) for one in (X, BACKGROUND))
    named = nx.relabel_nodes(TREE, dict(enumerate("abcde")))
    shuffled = nx.to_pandas_adjacency(named, nodelist=list("dbeca"))
    wanted = shap_ext.MyersonExplainer(curved, BACKGROUND, graph=TREE)(X).values
    for graph in (shuffled, list(named.edges), nx.to_pandas_adjacency(TREE)):
        explainer = shap_ext.MyersonExplainer(
            lambda x: curved(np.asarray(x)), background, graph=graph
        )
        np.testing.assert_allclose(explainer(frame).values, wanted, **ROUNDING)


def test_groups_are_nodes_by_their_names():
    columns = [f"x{j}" for j in range(5)]
    frame, background = (pd.DataFrame(one, columns=columns) for one in (X, BACKGROUND))
    groups = {"pair": ["x1", "x2"]}
    backwards = nx.Graph([("x4", "x3"), ("x3", "pair"), ("pair", "x0")])
    for graph in (backwards, nx.to_pandas_adjacency(backwards), list(backwards.edges)):
        found = shap_ext.MyersonExplainer(
            lambda x: curved(np.asarray(x)), background, graph=graph, groups=groups
        )(frame)
        wanted = shap_ext.MyersonExplainer(
            curved, BACKGROUND, graph="line", groups={"pair": [1, 2]}
        )(X)
        np.testing.assert_allclose(found.values, wanted.values, **ROUNDING)


# --- hubs, and what the budget does not pay for ---


@pytest.mark.parametrize("name", ["lshapley", "cshapley"])
def test_images_of_default_arguments_look_at_neighbours(name):
    """A pixel's cross of five has 2^5 coalitions, and the default budget pays for 16 a pixel."""
    shape = (20, 20, 1)
    masker = shap.maskers.Image(np.zeros(shape), shape)
    products = lambda x: (x[:, 1:] * x[:, :-1]).sum(axis=(1, 2, 3))  # noqa: E731
    explainer = shap.Explainer(products, masker, algorithm=name, seed=0)
    sv = explainer(np.ones((1, *shape)), silent=True)
    assert explainer.last_estimate.orders == 1
    assert explainer.last_estimate.evaluations <= 16 * 400
    wanted = np.ones((20, 20, 1))
    wanted[[0, -1]] = 0.5
    np.testing.assert_allclose(sv.values[0].reshape(20, 20, 1), wanted, **ROUNDING)


# --- texts ---


def text_game(masker, text):
    """Return the game of a text's tokens, by a masker that sees nothing else, and its length."""
    size = masker.shape(text)[1]

    def value(coalition):
        mask = np.zeros(size, dtype=bool)
        mask[list(coalition)] = True
        return model(masker(mask, text)[0])[0]

    return value, size


@each_method
@pytest.mark.parametrize("tokenizer", [by_spaces, Tokenizer()], ids=["function", "Hugging Face"])
def test_texts_are_lines_of_their_own_lengths(method, tokenizer):
    masker = shap.maskers.Text(tokenizer)
    explainer, by_definition = build(method, model, masker)
    sv = explainer(TEXTS)
    for text, values in zip(TEXTS, sv.values, strict=True):
        value, size = text_game(shap.maskers.Text(tokenizer), text)
        is_regression = METHODS[method][0].get("variant") == "regression"
        if is_regression and (tokenizer is not by_spaces or size == 1):
            continue  # of players with nulls among them, see the core's tests
        np.testing.assert_allclose(values, by_definition(nx.path_graph(size), value), **ROUNDING)


# --- images ---


def of_image(images):
    return curved_columns(images.reshape(len(images), -1))


def image_values(image, masked):
    def value(coalition):
        flat = masked.ravel().copy()
        flat[list(coalition)] = image.ravel()[list(coalition)]
        return of_image(flat[None])[0]

    return value


@each_method
@pytest.mark.parametrize("as_masker", [True, False], ids=["masker", "array"])
def test_images_are_grids(method, as_masker):
    shape = (2, 2, 2)
    images, background = rows(2, 8).reshape(2, *shape), np.full(shape, 0.25)
    masker = shap.maskers.Image(background, shape) if as_masker else background[None]
    explainer, by_definition = build(method, of_image, masker)
    sv = explainer(images)
    assert sv.values.shape == (2, *shape, 3)
    grid = nx.convert_node_labels_to_integers(nx.grid_graph(shape[::-1]), ordering="sorted")
    for image, values in zip(images, sv.values, strict=True):
        wanted = by_definition(grid, image_values(image, background))
        np.testing.assert_allclose(values.reshape(8, 3), wanted, **ROUNDING)


# --- wrong calls ---


@pytest.mark.parametrize(
    "kind", [shap_ext.LShapleyExplainer, shap_ext.CShapleyExplainer, shap_ext.MyersonExplainer]
)
def test_tables_need_a_graph(kind):
    with pytest.raises(InvalidArgumentError, match="graph is missing.*texts and images.*networkx"):
        kind(curved, BACKGROUND)(X)

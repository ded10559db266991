"""Owen values of hierarchies through shap: tables, texts, images, plots, other trees."""

import re
import time

import numpy as np
import pandas as pd
import pytest
import shap
from scipy.cluster.hierarchy import linkage

import shap_ext
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers.brute_force import masked_model_values
from tests.helpers.hierarchy_oracle import owen_values
from tests.shap_host.games import ROUNDING, curved, rows

pytestmark = pytest.mark.filterwarnings("error")

BACKGROUND, X = rows(2, 5, seed=1), rows(3, 5)
NESTED = [[0, 1], [2, [3, 4]]]


def explain(data=X, masker=BACKGROUND, function=curved, max_evals=500, **options):
    explainer = shap.Explainer(function, masker, algorithm="hierarchy", seed=0, **options)
    return explainer(data, max_evals=max_evals, error_bounds=True, silent=True)


def test_tables_of_every_form_of_hierarchy():
    names = list("abcde")
    by_name = {"first": ["a", "b"], "others": ["c", ["d", "e"]]}
    frame, background = (pd.DataFrame(one, columns=names) for one in (X, BACKGROUND))
    tree = shap_ext.PlayerTree.from_nested(NESTED, 5)
    wanted = [owen_values(NESTED, masked_model_values(curved, row, BACKGROUND)) for row in X]
    for hierarchy in (NESTED, tree, [tree] * 3, tree.to_linkage(5)):
        np.testing.assert_allclose(explain(hierarchy=hierarchy).values, wanted, **ROUNDING)
    found = explain(frame, background, lambda x: curved(np.asarray(x)), hierarchy=by_name)
    np.testing.assert_allclose(found.values, wanted, **ROUNDING)
    masks = [np.array([0, 0, 1, 1, 1]), np.array([0, 1, 2, 3, 3])]
    np.testing.assert_allclose(explain(hierarchy=masks).values, wanted, **ROUNDING)


@pytest.mark.parametrize(("n_backgrounds", "n_rows"), [(3, 180), (20, 400)])
def test_intervals_hold_where_coalitions_have_a_part_of_the_background(n_backgrounds, n_rows):
    nested = [[[0, 1, 2], [3, 4]], [5, [6, 7]], [8, 9, 10, 11]]
    background, data = rows(n_backgrounds, 12, seed=2), rows(10, 12, seed=3)
    weights = rows(12, 3, seed=4)

    def model(x):
        return np.tanh(x @ weights).sum(axis=1) + x[:, 0] * x[:, 1] * x[:, 5]

    explainer = shap.Explainer(model, background, algorithm="hierarchy", hierarchy=nested, seed=0)
    exact = explainer(data, max_evals=500).values  # all 160 coalitions
    found = explainer(data, max_model_rows=n_rows, error_bounds=True)
    assert (explainer.last_estimate.model_rows <= n_rows).all()
    are_held = (found.lower_bounds <= exact) & (exact <= found.upper_bounds)
    assert are_held.mean() > 0.9  # all rows share their draws


def test_the_clustering_of_a_partition_masker():
    table = linkage(rows(3, 5, seed=4).T)
    found = explain(masker=shap.maskers.Partition(BACKGROUND, clustering=table))
    nested = shap_ext.PlayerTree.from_linkage(table).nested()
    wanted = [owen_values(nested, masked_model_values(curved, row, BACKGROUND)) for row in X]
    np.testing.assert_allclose(found.values, wanted, **ROUNDING)
    np.testing.assert_array_equal(found.clustering, [table] * 3)
    in_nodes = np.concatenate([wanted, np.zeros((3, 4))], axis=1)  # as Partition has them
    np.testing.assert_allclose(found.hierarchical_values, in_nodes, **ROUNDING)


TEXT = "The film was not good, but the sound was. I liked it! Another day it rained here again."


def scores(texts):
    """Return two outputs of texts, in which words interact."""
    texts = [str(text) for text in texts]
    found = np.array([[text.count(word) for word in ("good", "not", "liked")] for text in texts])
    good, n_not, liked = found.T
    length = np.array([len(text.split()) for text in texts])
    return np.stack([good * (1 - 2.0 * n_not) + liked + 0.1 * length, liked * 1.0], axis=1)


def test_texts_fold_into_phrases_with_intervals():
    masker = shap.maskers.Text(r"\W+")
    found = explain([TEXT, "not good"], masker, scores, max_evals=40)
    first = found[0, :, 0]
    n_words = len(first.data)
    assert first.hierarchical_values.shape == (2 * n_words - 1,)
    assert first.clustering.shape == (n_words - 1, 4)
    np.testing.assert_allclose(first.hierarchical_values.sum(), first.values.sum())
    html = str(shap_ext.plots.text(first, display=False))
    shown = re.findall(r"title='([^;]*); 95 % interval.*?>([^<]+)</div", html, re.DOTALL)
    phrases = [phrase for _, phrase in shown]
    assert "".join(phrases) == "".join(first.data)
    assert any(len(phrase.split()) > 1 for phrase in phrases)
    total = sum(float(value) for value, _ in shown)
    assert total == pytest.approx(first.values.sum(), abs=0.02)
    whole = explain([TEXT], masker, scores)[0, :, 0]
    unfolded = shap.plots.text(whole, display=False)
    assert unfolded.count("_tp_") - unfolded.count("_tp_'") >= n_words


def test_texts_of_one_word():
    found = explain(["good", "not good"], shap.maskers.Text(r"\W+"), scores)
    assert [len(values) for values in found.values] == [1, 2]
    assert [len(values) for values in found.hierarchical_values] == [1, 3]


def test_long_texts_take_seconds():
    words = ("The film was good, but the sound was not. It was cold! " * 420).split(" ")[:5000]
    masker = shap.maskers.Text(r"\s+")
    started = time.perf_counter()
    found = explain([" ".join(words)], masker, lambda texts: scores(texts)[:, 0])
    assert time.perf_counter() - started < 30
    assert found.values.shape == (1, 5000)
    whole = scores([" ".join(words)])[0, 0]
    np.testing.assert_allclose(found.values.sum(), whole - found.base_values[0], atol=1e-6)


def test_images_by_quadrants_superpixels_and_the_masker():
    images = np.random.default_rng(0).random((2, 8, 8, 3)).astype(np.float32)

    def bright(x):
        return np.asarray(x)[:, 2:4, 4:6].mean(axis=(1, 2, 3)) ** 2

    found = explain(images, np.zeros((1, 8, 8, 3), np.float32), bright, max_evals=300)
    assert found.values.shape == images.shape
    np.testing.assert_allclose(found.values.sum(axis=(1, 2, 3)), bright(images), rtol=1e-5)
    inside = found.values[:, 2:4, 4:6].sum(axis=(1, 2, 3))
    np.testing.assert_allclose(inside, bright(images), rtol=0.01)  # it went down to the square
    dark = explain(
        images, shap.maskers.Image(np.zeros((8, 8, 3)), (8, 8, 3)), bright, max_evals=300
    )
    assert dark.hierarchical_values.shape == (2, 2 * 192 - 1)
    pieces = explain(images, shap_ext.maskers.Superpixels(16), bright, max_evals=60)
    assert pieces.values.shape == images.shape


@pytest.mark.parametrize(
    ("hierarchy", "error", "message"),
    [
        (None, InvalidArgumentError, "hierarchy is missing: the columns of a table"),
        ("line", InvalidArgumentTypeError, "hierarchy must be nested lists"),
        ([], InvalidArgumentError, "hierarchy is empty"),
        (np.zeros((4, 2)), InvalidArgumentError, "must have four columns"),
        ([["Feature 0"], [9]], InvalidArgumentError, "unknown player, 9"),
        ([np.zeros(5), np.zeros(5)], InvalidArgumentTypeError, "must hold whole numbers"),
        ([np.zeros(4, int)], InvalidArgumentError, "does not broadcast"),
    ],
)
def test_bad_hierarchies(hierarchy, error, message):
    with pytest.raises(error, match=message):
        explain(hierarchy=hierarchy)
    if isinstance(hierarchy, list) and not hierarchy:
        tree = shap_ext.PlayerTree.from_nested(NESTED, 5)
        with pytest.raises(InvalidArgumentError, match="holds 2 trees, but there are 3 rows"):
            explain(hierarchy=[tree] * 2)

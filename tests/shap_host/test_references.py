"""What absent features take their values from: zeros, summaries of shap, and rows as they come."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import shap
from shap.utils._legacy import DenseData, SparseData

import shap_ext
import shap_ext.criteria
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtWarning
from tests.helpers.brute_force import shapley_values
from tests.shap_host.games import ROUNDING, Seen, curved, network, probability, rows

# No warnings in ordinary use.
pytestmark = pytest.mark.filterwarnings("error")

NAMES = ["randomorder", "oddgp"]
every_name = pytest.mark.parametrize("name", NAMES)
X, TRAIN = rows(3, 4), rows(60, 4, seed=2)
COLUMNS = list("abcd")


def explain(model, masker, name="enumeration", explained=X, **options):
    return shap.Explainer(model, masker, algorithm=name, seed=0, **options)(explained)


# No masker: zeros


def test_columns_of_frames_keep_their_types_without_a_masker():
    frame = pd.DataFrame({"i": [3, 4], "b": [True, False], "f": [0.5, 2.0]})
    frame["n"] = pd.array([1, 2], dtype="Int64")
    seen = Seen(lambda masked: masked.astype(float).to_numpy() @ np.arange(1.0, 5.0))
    with pytest.warns(ShapleyExtWarning, match="absent features are zero"):
        sv = shap.Explainer(seen, algorithm="oddgp", seed=0)(frame)
    for call in seen.calls:
        pd.testing.assert_series_equal(call.dtypes, frame.dtypes)
    wanted = frame.astype(float).to_numpy() * np.arange(1.0, 5.0)
    np.testing.assert_allclose(sv.values, wanted, **ROUNDING)


# Summaries, whose rows have weights


SUMMARY = shap.kmeans(TRAIN, 5)
COUNTS = np.array([1, 4, 2])
WEIGHTED = DenseData(TRAIN[:3], COLUMNS, None, COUNTS.astype(float))
REPEATED = np.repeat(TRAIN[:3], COUNTS, axis=0)
"""What weights of whole numbers stand for."""


def test_equal_weights_are_the_plain_average():
    summary = DenseData(TRAIN[:5], [str(i) for i in range(4)])
    got, wanted = explain(curved, summary), explain(curved, TRAIN[:5])
    np.testing.assert_array_equal(got.values, wanted.values)
    sparse = explain(curved, SparseData(scipy.sparse.csr_matrix(TRAIN[:5])))
    np.testing.assert_array_equal(sparse.values, wanted.values)


@pytest.mark.parametrize("linearize", [True, False])
def test_weights_go_through_links(linearize):
    options = {"link": shap.links.logit, "linearize_link": linearize}
    got, wanted = (explain(probability, one, **options) for one in (WEIGHTED, REPEATED))
    np.testing.assert_allclose(got.values, wanted.values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(got.base_values, wanted.base_values, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["log_probability", "expected_log_probability", "margin"])
def test_weights_go_through_value_functions(kind):
    got, wanted = (explain(probability, one, value_function=kind) for one in (WEIGHTED, REPEATED))
    np.testing.assert_allclose(got.values, wanted.values, rtol=0, atol=1e-10)
    curves = [
        shap_ext.criteria.masked_log_odds(wanted.values, probability, masker, X).values
        for masker in (REPEATED, WEIGHTED)
    ]
    np.testing.assert_allclose(curves[0], curves[1], rtol=0, atol=1e-10)


def test_weights_go_through_derivatives_and_standard_errors():
    net, x, background = network(9), rows(2, 9, seed=3), rows(3, 9, seed=4)
    summary = DenseData(background, [str(i) for i in range(9)], None, COUNTS.astype(float))
    results = []
    for masker in (np.repeat(background, COUNTS, axis=0), summary):
        explainer = shap.Explainer(net, masker, algorithm="shear", seed=0, cooperators="hessian")
        results.append(explainer(x, max_evals=120, error_bounds=True))
        assert explainer.last_estimate.cooperators.tolist() == ["hessian"] * 2
    np.testing.assert_allclose(results[0].values, results[1].values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(results[0].error_std, results[1].error_std, rtol=0, atol=1e-10)


def test_summaries_are_kept_as_they_were_and_saved(tmp_path):
    summary = shap.kmeans(TRAIN, 5)
    explainer = shap.Explainer(curved, summary, algorithm="enumeration")
    with open(tmp_path / "explainer", "wb") as file:
        explainer.save(file)
    wanted = explain(curved, SUMMARY).values
    summary.data[:] = 99.0
    summary.weights[:] = 0.2
    with open(tmp_path / "explainer", "rb") as file:
        loaded = shap.Explainer.load(file)
    for one in (explainer, pickle.loads(pickle.dumps(explainer)), loaded):
        np.testing.assert_array_equal(one(X).values, wanted)


@pytest.mark.parametrize(
    ("masker", "words"),
    [
        (DenseData(TRAIN[:3], COLUMNS, None, np.array([1.0, -2.0, 3.0])), "weights are negative"),
        (DenseData(TRAIN[:3], list("abc"), [[0], [1], [2, 3]]), "groups of columns.*groups="),
        (shap.maskers.FixedComposite(SUMMARY), r"Independent\(summary\.data\)"),
    ],
)
def test_summaries_that_cannot_be_used(masker, words):
    with pytest.raises(InvalidArgumentError, match=words):
        explain(curved, masker)


# Tables that are no plain arrays of numbers


@pytest.mark.parametrize("summarize", [lambda frame: frame.iloc[3:6], lambda f: shap.kmeans(f, 3)])
def test_columns_of_several_levels_reach_the_model(summarize):
    columns = pd.MultiIndex.from_tuples(
        [("u", "a"), ("u", "b"), ("v", "a"), ("v", "b")], names=["top", "low"]
    )
    frame = pd.DataFrame(TRAIN, columns=columns)

    def model(masked):
        pd.testing.assert_index_equal(masked.columns, columns)
        return masked["u"].sum(axis=1) * masked["v"]["b"]

    sv = explain(model, summarize(frame), explained=frame.iloc[:3])
    gained = sv.values.sum(axis=1) + sv.base_values
    np.testing.assert_allclose(gained, model(frame.iloc[:3]), **ROUNDING)


def test_groups_whose_names_are_the_same_text_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"two players '1': 1 and '1'"):
        explain(curved, TRAIN[:3], groups={1: [0, 1], "1": [2, 3]})


# Zeros of two signs


def by_angle(x):
    """Return a number that tells -0.0 from 0.0."""
    x = np.asarray(x, dtype=float)
    return np.arctan2(x[:, 0], -1.0) * (1.0 + x[:, 1])


@every_name
@pytest.mark.parametrize("kind", ["array", "objects"])
def test_zeros_of_two_signs_differ(name, kind):
    background, x = np.array([[0.0, 1.0]]), np.array([[-0.0, 2.0]])
    wanted = shapley_values(
        2,
        lambda coalition: by_angle(np.where([[0 in coalition, 1 in coalition]], x, background))[0],
    )
    assert abs(wanted[0]) > 1
    masker: Any = background
    model, explained = by_angle, x
    if kind == "objects":
        masker, explained = (pd.DataFrame(one).assign(c="t") for one in (background, x))

        def model(masked):
            return by_angle(masked.iloc[:, :2])

    sv = explain(model, masker, name, explained)
    np.testing.assert_allclose(sv.values[0, :2], wanted, **ROUNDING)

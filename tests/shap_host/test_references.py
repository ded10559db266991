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
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtWarning,
)
from tests.helpers.brute_force import shapley_values
from tests.helpers.optional import nn, torch
from tests.shap_host.games import (
    ROUNDING,
    curved,
    curved_columns,
    network,
    of_module,
    oracle,
    oracle_of,
    probability,
    rows,
)

# No warnings in ordinary use.
pytestmark = pytest.mark.filterwarnings("error")

NAMES = ["randomorder", "oddgp"]
every_name = pytest.mark.parametrize("name", NAMES)
X, TRAIN = rows(3, 4), rows(60, 4, seed=2)
COLUMNS = list("abcd")


def explain(model, masker, name="enumeration", explained=X, **options):
    return shap.Explainer(model, masker, algorithm=name, seed=0, **options)(explained)


# No masker: zeros


@pytest.mark.parametrize("kind", ["array", "list", "sparse", "module"])
def test_lists_sparse_matrices_and_modules_need_no_masker(kind):
    x = {"list": X.tolist(), "sparse": scipy.sparse.csr_matrix(X)}.get(kind, X)
    net = network(4)
    model = net if kind == "module" else of_module(net)
    if kind == "sparse":

        def model(masked):
            return of_module(net)(masked.toarray())

    with pytest.warns(ShapleyExtWarning, match="absent features are zero"):
        sv = shap.Explainer(model, algorithm="shear")(x)
    wanted = oracle(lambda masked: of_module(net)(masked)[:, 0], X, np.zeros((1, 4)))
    np.testing.assert_allclose(sv.values, wanted, **ROUNDING)


def test_columns_of_frames_keep_their_types_without_a_masker():
    frame = pd.DataFrame({"i": [3, 4], "b": [True, False], "f": [0.5, 2.0]})
    frame["n"] = pd.array([1, 2], dtype="Int64")
    seen = []

    def model(masked):
        seen.append(masked.dtypes)
        return masked.astype(float).to_numpy() @ np.array([1.0, 2.0, 3.0, 4.0])

    with pytest.warns(ShapleyExtWarning, match="absent features are zero"):
        sv = shap.Explainer(model, algorithm="oddgp", seed=0)(frame)
    for dtypes in seen:
        pd.testing.assert_series_equal(dtypes, frame.dtypes)
    wanted = frame.astype(float).to_numpy() * np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(sv.values, wanted, **ROUNDING)


# Summaries, whose rows have weights


def weighted_oracle(function, background, weights, explained=X):
    """Return the Shapley values of a function of the outputs, averaged by weights."""

    def value(row, coalition):
        masked = np.array(background, dtype=float)
        for column in coalition:
            masked[:, column] = row[column]
        return function(masked, weights / weights.sum())

    return oracle_of(value, explained.shape[1], explained)


def mean_of(model):
    return lambda masked, weights: np.average(model(masked), axis=0, weights=weights)


SUMMARY = shap.kmeans(TRAIN, 5)


def test_the_summary_of_the_tests_has_weights():
    assert len(set(SUMMARY.weights)) > 1


@every_name
def test_summaries_are_averaged_by_their_weights(name):
    wanted = weighted_oracle(mean_of(curved_columns), SUMMARY.data, SUMMARY.weights)
    sv = explain(curved_columns, SUMMARY, name)
    np.testing.assert_allclose(sv.values, wanted, **ROUNDING)
    base = np.average(curved_columns(SUMMARY.data), axis=0, weights=SUMMARY.weights)
    np.testing.assert_allclose(sv.base_values, np.tile(base, (3, 1)), **ROUNDING)


def test_equal_weights_are_the_plain_average():
    summary = DenseData(TRAIN[:5], [str(i) for i in range(4)])
    got, wanted = explain(curved, summary), explain(curved, TRAIN[:5])
    np.testing.assert_array_equal(got.values, wanted.values)
    sparse = explain(curved, SparseData(scipy.sparse.csr_matrix(TRAIN[:5])))
    np.testing.assert_array_equal(sparse.values, wanted.values)


@pytest.mark.parametrize("linearize", [True, False])
def test_weights_go_through_links(linearize):
    # Weights of whole numbers are the same as repeated rows.
    counts = np.array([1, 4, 2])
    background = TRAIN[:3]
    summary = DenseData(background, COLUMNS, None, counts.astype(float))
    options = {"link": shap.links.logit, "linearize_link": linearize}
    wanted = explain(probability, np.repeat(background, counts, axis=0), **options)
    got = explain(probability, summary, **options)
    np.testing.assert_allclose(got.values, wanted.values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(got.base_values, wanted.base_values, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["log_probability", "expected_log_probability", "margin"])
def test_weights_go_through_value_functions(kind):
    counts = np.array([1, 4, 2])
    summary = DenseData(TRAIN[:3], COLUMNS, None, counts.astype(float))
    repeated = np.repeat(TRAIN[:3], counts, axis=0)
    wanted = explain(probability, repeated, value_function=kind)
    got = explain(probability, summary, value_function=kind)
    np.testing.assert_allclose(got.values, wanted.values, rtol=0, atol=1e-10)
    curves = [
        shap_ext.criteria.masked_log_odds(wanted.values, probability, masker, X).values
        for masker in (repeated, summary)
    ]
    np.testing.assert_allclose(curves[0], curves[1], rtol=0, atol=1e-10)


def test_weights_go_through_derivatives_and_standard_errors():
    counts = np.array([1, 4, 2])
    net, x, background = network(9), rows(2, 9, seed=3), rows(3, 9, seed=4)
    summary = DenseData(background, [str(i) for i in range(9)], None, counts.astype(float))
    results = []
    for masker in (np.repeat(background, counts, axis=0), summary):
        explainer = shap.Explainer(net, masker, algorithm="shear", seed=0, cooperators="hessian")
        results.append(explainer(x, max_evals=120, error_bounds=True))
        assert explainer.last_estimate.cooperators.tolist() == ["hessian"] * 2
    np.testing.assert_allclose(results[0].values, results[1].values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(results[0].error_std, results[1].error_std, rtol=0, atol=1e-10)


def test_weights_go_through_sparse_rows():
    counts = np.array([1, 4, 2])
    summary = DenseData(TRAIN[:3], COLUMNS, None, counts.astype(float))

    def model(masked):
        return curved(masked.toarray())

    got = explain(model, summary, explained=scipy.sparse.csr_matrix(X))
    np.testing.assert_allclose(
        got.values, weighted_oracle(mean_of(curved), TRAIN[:3], counts), **ROUNDING
    )


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


def as_matrix(array):
    with pytest.warns(PendingDeprecationWarning):
        return np.matrix(array)


def test_matrices_are_tables():
    wanted = explain(curved, TRAIN[:3])
    for x, background in ((as_matrix(X), TRAIN[:3]), (X, as_matrix(TRAIN[:3]))):
        sv = explain(curved, background, explained=x)
        assert sv.shape == sv.data.shape == (3, 4)
        np.testing.assert_array_equal(sv.values, wanted.values)


@pytest.mark.parametrize("name", ["oddgp", "centroid"])
def test_masked_tables_are_refused(name):
    masked = np.ma.masked_array(X, X > 0)
    for masker, x, words in (
        (TRAIN[:3], masked, "X"),
        (TRAIN[:3], list(masked), "X"),
        (masked, X, "masker"),
    ):
        with pytest.raises(InvalidArgumentError, match=rf"{words} is a masked array.*filled"):
            explain(curved, masker, name, x)
    unmasked = np.ma.masked_array(X)
    wanted = explain(curved, TRAIN[:3]).values
    np.testing.assert_allclose(
        explain(curved, np.ma.masked_array(TRAIN[:3]), "oddgp", unmasked).values, wanted, **ROUNDING
    )


@every_name
def test_tables_without_columns_are_refused(name):
    for masker in (np.empty((2, 0)), pd.DataFrame(index=range(2))):
        with pytest.raises(InvalidArgumentError, match=r"shape \(\d, 0\): there are no columns"):
            explain(curved, masker, name, masker)
    with pytest.raises(InvalidArgumentError, match=r"X has shape \(3, 0\)"):
        explain(curved, None, name, X[:, :0])


def test_arrays_in_cells_are_refused():
    frame = pd.DataFrame({"a": [np.ones(2), np.zeros(2)], "b": [1.0, 2.0]})
    for x, masker in ((frame, frame.iloc[:1]), (frame.to_numpy(), np.zeros((1, 2)))):
        with pytest.raises(InvalidArgumentTypeError, match="ndarray in row 0, column 0.*groups="):
            explain(curved, masker, explained=x)


def test_times_and_texts_beside_numbers_are_refused():
    times = np.array([["2020-01-01", "2021-01-01"]], dtype="datetime64[D]")
    for x, background in ((times, np.zeros((1, 2))), (np.array([["a", "b"]]), np.zeros((1, 2)))):
        with pytest.raises(InvalidArgumentTypeError, match="X holds .* and masker's background"):
            explain(curved, background, explained=x)
    with pytest.raises(InvalidArgumentTypeError, match="not numbers, which a torch module"):
        explain(network(2), times, explained=times)

    def days(masked):
        return (masked - np.datetime64("2020-01-01")).astype(float).sum(axis=1)

    sv = explain(days, times, explained=times + np.timedelta64(3, "D"))
    np.testing.assert_allclose(sv.values, [[3.0, 3.0]], **ROUNDING)


@pytest.mark.parametrize("kind", ["background", "none", "Independent", "kmeans"])
def test_columns_of_several_levels_reach_the_model(kind):
    columns = pd.MultiIndex.from_tuples(
        [("u", "a"), ("u", "b"), ("v", "a"), ("v", "b")], names=["top", "low"]
    )
    frame = pd.DataFrame(TRAIN, columns=columns)
    x = frame.iloc[:3]

    def model(masked):
        pd.testing.assert_index_equal(masked.columns, columns)
        return masked["u"].sum(axis=1) * masked["v"]["b"]

    maskers = {
        "background": lambda: frame.iloc[3:6],
        "Independent": lambda: shap.maskers.Independent(frame.iloc[3:6]),
        "kmeans": lambda: shap.kmeans(frame, 3),
        "none": lambda: None,
    }
    explainer = shap.Explainer(model, maskers[kind](), algorithm="enumeration")
    if kind == "none":
        with pytest.warns(ShapleyExtWarning, match="absent features are zero"):
            sv = explainer(x)
    else:
        sv = explainer(x)
    gained = sv.values.sum(axis=1) + sv.base_values
    np.testing.assert_allclose(gained, model(x), **ROUNDING)


def test_columns_of_several_levels_and_types_keep_their_types():
    columns = pd.MultiIndex.from_tuples([("u", "a"), ("u", "b")])
    frame = pd.DataFrame([[1, "x"], [2, "y"]], columns=columns)
    frame[("u", "a")] = frame[("u", "a")].astype(int)

    def model(masked):
        assert masked["u"]["a"].dtype == frame["u"]["a"].dtype
        return masked["u"]["a"] * (masked["u"]["b"] == "y")

    sv = explain(model, frame.iloc[:1], explained=frame.iloc[1:])
    np.testing.assert_allclose(sv.values, [[0.5, 1.5]], **ROUNDING)


def test_groups_whose_names_are_the_same_text_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"two players '1': 1 and '1'"):
        explain(curved, TRAIN[:3], groups={1: [0, 1], "1": [2, 3]})


# Zeros of two signs


def by_angle(x):
    """Return a number that tells -0.0 from 0.0."""
    x = np.asarray(x, dtype=float)
    return np.arctan2(x[:, 0], -1.0) * (1.0 + x[:, 1])


@every_name
@pytest.mark.parametrize("kind", ["array", "objects", "function", "module"])
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

    elif kind == "function":

        def masker(mask, row):
            return np.where(mask, row, background)

    elif kind == "module":

        class Angle(nn.Module):
            def forward(self, z):
                return torch.atan2(z[:, 0], -torch.ones_like(z[:, 0])) * (1 + z[:, 1])

        model = Angle()
    sv = explain(model, masker, name, explained)
    np.testing.assert_allclose(sv.values[0, :2], wanted, **ROUNDING)

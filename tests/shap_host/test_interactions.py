"""Interactions through shap: their form, their values, their plots, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentError, MissingPackageError
from tests.helpers.brute_force import masked_model_values, shapley_values
from tests.helpers.interaction_oracles import (
    matrix_of,
    pair_interactions,
    semivalues_by_sizes,
    set_interactions,
)

N_FEATURES = 9


def model(x):
    return x[:, 0] * x[:, 1] * x[:, 2] + x[:, 3] * x[:, 4] + np.tanh(x.sum(axis=1))


def two_outputs(x):
    return np.stack([model(x), x[:, 0] * x[:, 5]], axis=1)


def good_but_not(texts):
    return np.array([float("good" in text) * (1 - 2 * ("not" in text)) for text in texts])


def rows(n_rows=3, n_features=N_FEATURES, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


BACKGROUND = rows(2, seed=1)


def true_matrix(function, row, background):
    value = masked_model_values(function, row, background)
    pairs = pair_interactions("shapley", len(row), value)
    return matrix_of(len(row), pairs, shapley_values(len(row), value))


def explainer(function=model, algorithm="oddgp", background=BACKGROUND, **options):
    return shap.Explainer(function, background, algorithm=algorithm, seed=0, **options)


@pytest.mark.parametrize("algorithm", ["oddgp", "best", "leastsquares"])
def test_estimates_have_the_form_of_tree_explainer(algorithm):
    X = rows()
    explain = explainer(algorithm=algorithm)
    values = explain(X, max_evals=200)
    explanation = explain(X, max_evals=200, interactions=True, error_bounds=True)
    assert isinstance(explanation, shap.Explanation)
    assert explanation.shape == (3, N_FEATURES, N_FEATURES)
    sums = explanation.values.sum(axis=2)
    np.testing.assert_allclose(sums, explain.last_estimate.values[..., 0], atol=1e-12)
    if algorithm != "best":  # which takes less time for attributions alone
        np.testing.assert_allclose(sums, values.values, atol=1e-12)
    np.testing.assert_array_equal(explanation.values, explanation.values.swapaxes(1, 2))
    np.testing.assert_array_equal(explanation.base_values, values.base_values)
    np.testing.assert_array_equal(explanation.data, X)
    assert explanation.feature_names == values.feature_names
    truth = np.array([true_matrix(model, row, BACKGROUND) for row in X])
    errors = np.abs(explanation.values - truth)
    assert errors.sum() < 0.3 * np.abs(truth).sum()
    assert (errors <= 4 * explanation.error_std + 1e-9).mean() > 0.9
    widths = (explanation.upper_bounds - explanation.lower_bounds) / 2
    assert (widths >= 1.95 * explanation.error_std).all()


def test_several_outputs():
    X = rows()
    explanation = explainer(two_outputs)(X, max_evals=200, interactions=True, error_bounds=True)
    assert explanation.shape == (3, N_FEATURES, N_FEATURES, 2)
    assert explanation.error_std.shape == explanation.shape
    second = explainer(two_outputs)(X, max_evals=200, interactions=True, outputs=[1])
    np.testing.assert_array_equal(second.values[..., 0], explanation.values[..., 1])
    np.testing.assert_allclose(
        explanation.values[:, 0, 5, 1],
        [true_matrix(lambda x: two_outputs(x)[:, 1], row, BACKGROUND)[0, 5] for row in X],
        atol=1e-6,
    )


def test_texts_have_a_matrix_for_each_row():
    explain = explainer(good_but_not, background=shap.maskers.Text(r"\W+"))
    texts = ["not good at all", "good"]
    explanation = explain(texts, interactions=True)
    values = explain(texts)
    for matrix, attributions in zip(explanation.values, values.values, strict=True):
        assert matrix.shape == (len(attributions), len(attributions))
        np.testing.assert_allclose(matrix.sum(axis=1), attributions, atol=1e-10)
    assert explanation.values[0][0, 1] == pytest.approx(-1.0)


def test_inputs_of_several_datasets_share_a_matrix():
    first, second = rows(2, 3), rows(2, 4, seed=5)

    def product(a, b):
        return a[:, 0] * b[:, 1]

    masker = shap.maskers.Composite(
        shap.maskers.Independent(np.zeros((1, 3))), shap.maskers.Independent(np.zeros((1, 4)))
    )
    explanation = shap_ext.OddGPExplainer(product, masker)(first, second, interactions=True)
    assert explanation.shape == (2, 7, 7)
    np.testing.assert_allclose(explanation.values[:, 0, 4], first[:, 0] * second[:, 1] / 2)


# Ranking


def test_pairs_are_ranked_with_few_false_discoveries():
    X = rows(20, 12)

    def with_four_pairs(x):
        strong = x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3]
        return strong + np.tanh(x[:, 4] + x[:, 5]) + 0.3 * x[:, 6] * x[:, 7] + x[:, 8:].sum(axis=1)

    explain = explainer(with_four_pairs, background=np.zeros((1, 12)))
    explanation = explain(X, interactions=True, error_bounds=True, max_evals=96)
    ranking = shap_ext.rank_interactions(explanation)
    true_pairs = {(0, 1), (2, 3), (4, 5), (6, 7)}
    found = {tuple(pair) for pair in ranking.pairs[ranking.q_values <= 0.05].tolist()}
    assert {tuple(pair) for pair in ranking.pairs[:4].tolist()} == true_pairs
    assert true_pairs - {(6, 7)} <= found
    assert len(found - true_pairs) <= 1
    frame = ranking.to_frame()
    assert list(frame["first"][:2]) == [ranking.names[0][0], ranking.names[1][0]]
    assert (np.diff(frame["mean_absolute"]) <= 0).all()
    by_estimate = explain.last_estimate.rank_interactions(explanation.feature_names)
    np.testing.assert_array_equal(by_estimate.pairs, ranking.pairs)
    np.testing.assert_allclose(by_estimate.q_values, ranking.q_values, rtol=1e-6, atol=1e-12)


def test_exact_interactions_are_certain():
    X = rows(3, 4)
    explanation = explainer(lambda x: x[:, 0] * x[:, 1] + x[:, 2], background=np.zeros((1, 4)))(
        X, interactions=True, error_bounds=True
    )
    ranking = shap_ext.rank_interactions(explanation)
    assert ranking.n_discoveries == 1
    assert ranking.in_rows[0].all()
    assert not ranking.in_rows[1:].any()


@pytest.mark.parametrize(("n_features", "budget"), [(5, None), (12, None), (12, 96)])
def test_additive_models_have_no_discoveries(n_features, budget):
    X = 100 * rows(8, n_features)
    explain = explainer(lambda x: x @ X[0] + 1e3, background=np.zeros((1, n_features)))
    explanation = explain(X, interactions=True, error_bounds=True, max_evals=budget or "auto")
    assert shap_ext.rank_interactions(explanation).n_discoveries == 0
    assert explain.last_estimate.rank_interactions().n_discoveries == 0
    assert shap_ext.rank_interactions(3 * explanation[1:3]).n_discoveries == 0


def test_a_small_interaction_beside_large_main_effects_is_found():
    X = rows(6, 12)
    explain = explainer(
        lambda x: 1000 * (x @ X[0]) + x[:, 0] * x[:, 1], background=np.zeros((1, 12))
    )
    ranking = shap_ext.rank_interactions(
        explain(X, interactions=True, error_bounds=True, max_evals=500)
    )
    assert ranking.pairs[0].tolist() == [0, 1]
    assert ranking.n_discoveries == 1


def test_p_values_fit_the_intervals():
    """Errors of few evaluations have 2 degrees of freedom."""
    X = rows(4, 12)
    explain = explainer(lambda x: np.tanh(x.sum(axis=1)), background=np.zeros((1, 12)))
    explanation = explain(X[:1], interactions=True, error_bounds=True, max_evals=24)
    assert (explain.last_estimate.degrees_of_freedom <= 2).all()
    is_outside = explanation.lower_bounds * explanation.upper_bounds > 0
    for ranking in (
        shap_ext.rank_interactions(explanation),
        explain.last_estimate.rank_interactions(),
    ):
        first, second = ranking.pairs.T
        np.testing.assert_array_equal(ranking.p_values < 0.05, is_outside[0, first, second])
    distances = ranking.mean / ranking.standard_errors
    np.testing.assert_allclose(
        shap_ext.rank_interactions(explanation).p_values,
        2 * scipy.stats.t.sf(np.abs(distances), 2),
        rtol=1e-6,
    )


def test_one_feature_has_an_empty_ranking():
    explain = explainer(lambda x: x[:, 0], background=np.zeros((1, 1)))
    explanation = explain(rows(3, 1), interactions=True, error_bounds=True)
    for ranking in (
        shap_ext.rank_interactions(explanation),
        explain.last_estimate.rank_interactions(),
    ):
        assert ranking.names == []
        assert ranking.n_discoveries == 0
        assert ranking.in_rows.shape == (0, 3)


# What is refused


def must_not_be_called(x):
    raise AssertionError("The model was called.")


@pytest.mark.parametrize("texts", [["not good at all", "good"], ["not good", "so bad"]])
def test_rows_with_features_of_their_own_are_ranked_one_at_a_time(texts):
    explain = explainer(good_but_not, background=shap.maskers.Text(r"\W+"))
    explanation = explain(texts, interactions=True, error_bounds=True)
    with pytest.raises(InvalidArgumentError, match="features of their own; rank one row at a time"):
        shap_ext.rank_interactions(explanation)
    alone = explain(texts[:1], interactions=True, error_bounds=True)
    ranking = shap_ext.rank_interactions(alone)
    assert [name.strip() for name in ranking.names[0]] == ["not", "good"]


def ask(argument, value: Any = True, max_evals=100, **options):
    return explainer(**options)(rows(), max_evals=max_evals, **{argument: value})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        *(
            (lambda a=a: ask("interactions", algorithm=a, max_evals=99), "'oddgp' and 'best'")
            for a in ("shear", "semivalue")
        ),
        (lambda: ask("interactions", algorithm="lshapley", graph="line"), "on a graph"),
        *(
            (
                lambda a=a, b=b: getattr(explainer(must_not_be_called, a), b)(
                    rows(), max_evals=100
                ),
                "(?s)cannot estimate.*'oddgp'.*max_evals=512",
            )
            for a in ("shear", "leastsquares")
            for b in ("semivalues", "set_interactions")
        ),
        (lambda: ask("interactions", "sii"), "interactions must be one of"),
        (lambda: ask("interactions", None), "interactions must be one of"),
        (lambda: explainer().explain_stream(rows(), "a.npz", interactions=True), "explain_stream"),
        (lambda: shap_ext.rank_interactions(ask("interactions")), "error_bounds=True"),
        (lambda: shap_ext.rank_interactions(ask("error_bounds")), "interactions=True"),
        (lambda: shap_ext.rank_interactions(None), r"must be a shap\.Explanation; got None"),
    ],
)
def test_what_has_no_interactions_is_refused(call, words):
    with pytest.raises((InvalidArgumentError, TypeError), match=words):
        call()


# shapiq


@pytest.mark.parametrize("index", ["shapley", "shapley_taylor", "banzhaf"])
def test_objects_of_shapiq_hold_the_same_numbers(index):
    shapiq = pytest.importorskip("shapiq", reason="shapiq is not installed; needs Python 3.12")
    explain = explainer()
    matrix = explain(rows(), interactions=index, max_evals=200).values[1]
    found = explain.last_estimate.to_shapiq(row=1)
    assert isinstance(found, shapiq.InteractionValues)
    assert found[(0, 1)] == pytest.approx(2 * matrix[0, 1])
    if index != "banzhaf":
        assert found[(2,)] == pytest.approx(matrix[2, 2])
        assert found.values.sum() == pytest.approx(model(rows())[1])
        shapiq.network_plot(found, show=False)
        found.plot_force(show=False)


def test_estimates_without_interactions_and_a_missing_shapiq_are_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "shapiq", None)
    explain = explainer()
    explain(rows(), interactions=True, max_evals=100)
    with pytest.raises(MissingPackageError, match="pip install shapiq"):
        explain.last_estimate.to_shapiq()
    explain(rows(), max_evals=100)
    with pytest.raises(InvalidArgumentError, match="has no interactions"):
        explain.last_estimate.to_shapiq()


# --- larger sets, and semivalues ---


@pytest.mark.parametrize("name", ["oddgp", "best", "enumeration", "randomorder"])
def test_sets_have_names_values_and_intervals(name):
    X = pd.DataFrame(rows(2, 5), columns=list("abcde"))
    explain = shap.Explainer(lambda x: model(np.asarray(x)), X * 0, algorithm=name, seed=0)
    found = explain.set_interactions(X, index="faithful_shapley", order=3, max_evals=32)
    value = masked_model_values(model, X.to_numpy()[1], 0 * X.to_numpy())
    truth = set_interactions("FSII", 3, 5, value)
    np.testing.assert_allclose(found.values[1, :, 0], list(truth.values()), atol=1e-10)
    assert found.sets == list(truth) and (found.index, found.order) == ("FSII", 3)
    frame = found.strongest(3, row=1, size=3)
    assert list(frame.columns) == ["features", "value", "standard_error", "lower", "upper"]
    best = max((s for s in truth if len(s) == 3), key=lambda s: abs(truth[s]))
    assert frame["features"][0] == tuple("abcde"[j] for j in best)
    np.testing.assert_array_equal(frame["lower"], frame["upper"])  # which are exact


@pytest.mark.parametrize("name", ["oddgp", "best", "enumeration", "randomorder", "semivalue"])
def test_semivalues_are_explanations(name):
    X = rows(2, 5)
    explain = explainer(two_outputs_of_five, name, BACKGROUND[:, :5])
    explanation = explain.semivalues(X, index="banzhaf", error_bounds=True, max_evals=32)
    shares = scipy.stats.binom(4, 0.5).pmf(np.arange(5))
    for row, values in zip(X, explanation.values, strict=True):
        value = masked_model_values(two_outputs_of_five, row, BACKGROUND[:, :5])
        np.testing.assert_allclose(values, semivalues_by_sizes(shares, 5, value), atol=1e-10)
    assert explanation.error_std.shape == explanation.values.shape
    shap.plots.bar(explanation[..., 0], show=False)
    # The call after it has Shapley values again.
    explain(X, max_evals=32, check_additivity=True)


def two_outputs_of_five(x):
    return two_outputs(np.concatenate([x, x[:, :4]], axis=1))

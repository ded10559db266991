"""Traces of Explanations, and the plot of convergence."""

import copy
import pickle

import matplotlib.pyplot as plt
import numpy as np
import pytest
import shap

import shap_ext
from shap_ext.results.traces import trace_of
from shapley_adapters.errors import InvalidArgumentError
from tests.shap_host.games import ROUNDING, curved, curved_columns, oracle, rows

BACKGROUND, X = rows(3, 9, 1), rows(3, 9)
NAMES = ["$a$ and $b", *"bcdefghi"]


@pytest.fixture(autouse=True)
def closed_figures():
    plt.close("all")
    yield
    plt.close("all")


def explained(model=curved, x=X, kind=shap_ext.OddGPExplainer, **options):
    explainer = kind(model, BACKGROUND, seed=0, feature_names=NAMES)
    return explainer(x, **{"max_evals": 200, "trace": True, "silent": True, **options})


def drawn(*arguments, **options):
    axes = shap_ext.plots.convergence(*arguments, show=False, **options)
    axes.figure.canvas.draw()
    return axes


def test_a_trace_costs_nothing_and_changes_nothing():
    calls = []

    def counted(x):
        calls.append(len(x))
        return curved(x)

    plain = explained(counted, trace=False, error_bounds=True)
    n_plain = sum(calls)
    traced = explained(counted)
    assert sum(calls) == 2 * n_plain
    for field in ("values", "error_std", "lower_bounds", "upper_bounds"):
        np.testing.assert_array_equal(getattr(traced, field), getattr(plain, field))


def test_the_plot_has_a_line_and_a_band_for_each_of_the_first_features():
    e = explained()[1]
    axes = drawn(e, max_display=4)
    order = np.argsort(-np.abs(e.values))[:4]
    assert [line.get_label() for line in axes.lines] == [
        NAMES[feature].replace("$", r"\$") for feature in order
    ]
    for line, band, feature in zip(axes.lines, axes.collections, order, strict=True):
        evaluations, values = line.get_data()
        assert evaluations[-1] == 200
        assert (np.diff(np.log2(evaluations)) < 0.8).all()
        assert values[-1] == e.values[feature]
        at_end = [y for x, y in band.get_paths()[0].vertices if x == 200]
        np.testing.assert_allclose(min(at_end), e.lower_bounds[feature])
        np.testing.assert_allclose(max(at_end), e.upper_bounds[feature])
    assert axes.get_xscale() == "log"


@pytest.mark.parametrize("kind", [list, shap.Explanation])
def test_exact_values_are_dashed_lines(kind):
    truth = oracle(curved, X[:1], BACKGROUND)[0]
    e = explained(max_evals=256)[0]
    axes = drawn(e, exact=kind(truth), max_display=9)
    dashed = [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose(np.sort(dashed), np.sort(truth), **ROUNDING)


def test_bands_hold_the_exact_values():
    """Bands of 9 features and 5 rows at all points from 2 evaluations a feature on."""
    x = rows(5, 9, 7)
    truth, inside = oracle(curved, x, BACKGROUND), []
    e = explained(x=x)
    for row in range(5):
        trace = trace_of(e[row])
        is_late = trace.evaluations >= 18
        within = (trace.lower <= truth[row][:, None]) & (truth[row][:, None] <= trace.upper)
        inside.append(within[:, is_late])
    assert np.mean(inside) > 0.9


def test_traces_are_sliced_and_copied_with_their_explanation():
    e = explained(curved_columns)
    for one, row, output in [
        (e[1, :, 2], 1, 2),
        (e[..., 0][2], 2, 0),
        (e[[2, 1]][1][..., 1], 1, 1),
        (copy.copy(e)[0, :, 1], 0, 1),
        (pickle.loads(pickle.dumps(e))[0, :, 1], 0, 1),
        (e.sample(3, random_state=0)[0][..., 2], None, 2),
    ]:
        trace = trace_of(one)
        np.testing.assert_array_equal(trace.values[:, -1], one.values)
        np.testing.assert_array_equal(trace.lower[:, -1], one.lower_bounds)
        if row is not None:
            np.testing.assert_array_equal(one.values, e.values[row, :, output])
    few = e[0, 2:5, 1]
    assert trace_of(few).values.shape[0] == 3
    drawn(few)


@pytest.mark.parametrize("change", [lambda e: e * 2, lambda e: e - e, lambda e: e.abs])
def test_other_operations_remove_the_trace(change):
    with pytest.raises(InvalidArgumentError, match="no trace"):
        shap_ext.plots.convergence(change(explained())[0])


def test_texts_have_traces():
    def length(texts):
        return np.array([len(t.split()) + ("good" in t) * ("not" in t) for t in texts])

    explainer = shap.Explainer(length, shap.maskers.Text(r"\W+"), algorithm="randomorder", seed=0)
    e = explainer(["not good", "a b c not d good e f g h"], max_evals=90, trace=True, silent=True)
    np.testing.assert_array_equal(trace_of(e[1]).values[:, -1], e[1].values)
    drawn(e[1])
    with pytest.raises(InvalidArgumentError, match="one point"):
        drawn(e[0])  # enumerated


def test_groups_have_traces():
    explainer = shap_ext.LeastSquaresExplainer(curved, BACKGROUND, seed=0, groups={"g": [0, 4]})
    e = explainer(X, max_evals=100, trace=True, silent=True)
    drawn(e[0])


def test_what_has_no_trace_is_refused():
    e = explained()
    for argument, words in [
        (e, "one row and one output"),
        (explained(trace=False)[0], "no trace"),
        (explained(max_evals=512)[0], "one point"),
    ]:
        with pytest.raises(InvalidArgumentError, match=words):
            shap_ext.plots.convergence(argument)
    with pytest.raises(InvalidArgumentError, match="9 features"):
        shap_ext.plots.convergence(e[0], exact=[1.0])
    with pytest.raises(InvalidArgumentError, match="exact must hold finite numbers"):
        shap_ext.plots.convergence(e[0], exact=[np.nan] * 9)
    with pytest.raises(TypeError, match=r"explanation must be a shap\.Explanation; got None"):
        shap_ext.rank_interactions(None)
    with pytest.raises(InvalidArgumentError, match="trace=True"):
        explained(interactions=True)

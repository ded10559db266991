"""Causal orders and graphs through shap: interventions, asymmetric values, parts of effects."""

import pickle

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shap_ext.maskers import Causal, Gaussian
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers.brute_force import masked_model_values, shapley_values
from tests.helpers.conditional_games import (
    Quadratic,
    correlated_rows,
    interventional_game,
    normal_game,
)
from tests.helpers.partial_orders import asymmetric_values, edges_of_layers, split_values

N_FEATURES = 6
DATA = correlated_rows(500, N_FEATURES, seed=0)
ROWS = DATA[:3]
MODEL = Quadratic(N_FEATURES, seed=0)
MEAN, COVARIANCE = DATA.mean(axis=0), np.cov(DATA.T)
FRAME, GAUSSIAN = pd.DataFrame(DATA, columns=list("abcdef")), Gaussian(DATA)
EDGES = [("a", "c"), (("b", "d"), "c"), ("c", "e"), ("a", "e")]


def explained(masker, algorithm="enumeration", model=MODEL, rows=ROWS, budget="auto", **options):
    explainer = shap.Explainer(model, masker, algorithm=algorithm, seed=0, **options)
    return explainer(
        rows, silent=True, max_evals=budget, error_bounds=True
    ), explainer.last_estimate


@pytest.mark.parametrize(
    ("order", "confounded"),
    [
        ([3, 1, 0, 2, 5, 4], False),
        ([[3, 1], [0, 2, 5], 4], [True, False, False]),
        ([[3, 1, 0], [2, 5, 4]], [False, True]),
    ],
)
def test_interventions_change_effects_and_not_causes(order, confounded):
    masker = Causal(DATA, order, confounded, draws=1024)
    found, _ = explained(masker, rows=ROWS[:1])
    components = [entry if isinstance(entry, list) else [entry] for entry in order]
    flags = np.broadcast_to(confounded, len(order))
    game = interventional_game(ROWS[0], MEAN, COVARIANCE, components, flags, MODEL.expected)
    exact = shapley_values(N_FEATURES, game)
    np.testing.assert_allclose(found.values[0], exact, atol=0.01 * np.abs(exact).max())


def test_orders_of_names():
    by_name = Causal(FRAME, ["d", ["b", "a"], "c", "e", "f"], draws=4)
    by_index = Causal(DATA, [3, [1, 0], 2, 4, 5], draws=4)
    mask = np.arange(N_FEATURES) % 2 == 0
    np.testing.assert_allclose(by_name(mask, DATA[0]), by_index(mask, DATA[0]), rtol=1e-9)


@pytest.mark.parametrize("confounded", [False, True, [("d", "b")]])
def test_graphs_depend_on_direct_causes_only(confounded):
    found, _ = explained(
        Causal(DATA, graph=by_index(EDGES), confounded=by_index(confounded), draws=1024)
    )
    components, causes = [[0], [1, 3], [2], [4], [5]], [[], [], [0, 1, 3], [0, 2], []]
    flags = [bool(confounded)] * 5
    for row, values in zip(ROWS, found.values, strict=True):
        game = interventional_game(row, MEAN, COVARIANCE, components, flags, MODEL.expected, causes)
        exact = shapley_values(N_FEATURES, game)
        np.testing.assert_allclose(values, exact, atol=0.01 * np.abs(exact).max())


def by_index(edges):
    """Return edges or nodes by index in place of names."""
    if isinstance(edges, str):
        return list("abcdef").index(edges)
    return type(edges)(map(by_index, edges)) if isinstance(edges, (list, tuple)) else edges


def test_graphs_of_names_and_of_networkx():
    networkx = pytest.importorskip("networkx")
    mask = np.arange(N_FEATURES) % 2 == 0
    wanted = Causal(DATA, graph=by_index(EDGES), draws=4)(mask, DATA[0])
    for graph in (EDGES, networkx.DiGraph(EDGES)):
        drawn = Causal(FRAME, graph=graph, draws=4)(mask, DATA[0])
        np.testing.assert_allclose(drawn, wanted, rtol=1e-9)


def asymmetric(masker=GAUSSIAN, **options):
    return shap_ext.AsymmetricExplainer(MODEL, masker, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Causal(FRAME, graph=EDGES, confounded=[("a", "b")]),
            r"holds \('a', 'b'\), which is no node",
        ),
        (lambda: Causal(FRAME, ["g", "a"]), "order holds 'g', which is no feature"),
        (lambda: Causal(DATA, [0, 1, 2, 3, 4, 5], [True]), "confounded must be True or False"),
        (
            lambda: asymmetric(DATA[:5], split_effects=True),
            "a masker that draws absent features",
        ),
        (
            lambda: asymmetric(split_effects=True, groups={"g": [0, 1]}),
            "neither groups nor feature_names",
        ),
    ],
)
def test_orders_and_graphs_that_cannot_be_used(call, message):
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=message):
        call()


# --- asymmetric values ---


def test_asymmetric_values_of_a_background_are_exact():
    layers = [[3, 1], [0, 2, 5], [4]]
    found, estimate = explained(DATA[:5], "asymmetric", order=layers)
    edges = edges_of_layers(layers)
    for row, values in zip(ROWS, found.values, strict=True):
        game = masked_model_values(MODEL, row, DATA[:5])
        np.testing.assert_allclose(values, asymmetric_values(N_FEATURES, edges, game), atol=1e-10)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, MODEL(ROWS))
    assert (estimate.standard_errors == 0).all()


def test_asymmetric_values_by_names_groups_and_draws():
    """Two groups and two columns; the draws leave the standard errors."""
    groups = {"first": ["a", "b"], "second": ["d", "e"]}
    found, estimate = explained(
        Gaussian(FRAME, draws=256),
        "asymmetric",
        lambda frame: MODEL(frame.to_numpy()),
        FRAME[:3],
        groups=groups,
        graph=[("second", "first"), ("second", "f")],
    )
    names, columns = ["first", "c", "second", "f"], [[0, 1], [2], [3, 4], [5]]
    assert found.feature_names == names
    for row, values, errors in zip(
        ROWS, found.values, estimate.standard_errors[..., 0], strict=True
    ):
        game = normal_game(row, MEAN, COVARIANCE, MODEL.expected)
        wanted = asymmetric_values(
            4, [(2, 0), (2, 3)], lambda s, game=game: game({c for p in s for c in columns[p]})
        )
        assert (errors > 0).all()
        assert np.abs(values - wanted).max() < 5 * errors.max()


@pytest.mark.parametrize("budget", [26, 200], ids=["drawn", "all coalitions"])
def test_intervals_hold_orders_and_draws(budget):
    """30 rows of games of their own: the share inside has a standard error of at most .03.

    Errors of the fit are known from 4 draws on.
    """
    inside, tree = [], [(2, 0), (2, 1), (0, 3), (0, 4)]
    for seed in range(15):
        data, model = correlated_rows(200, N_FEATURES, seed), Quadratic(N_FEATURES, seed)
        explainer = shap_ext.AsymmetricExplainer(
            model, Gaussian(data, draws=3, seed=seed), seed=seed, graph=tree
        )
        explainer(data[:2], max_evals=budget, silent=True, error_bounds=True)
        low, high = explainer.last_estimate.interval()
        for row, lower, upper in zip(data[:2], low[..., 0], high[..., 0], strict=True):
            game = normal_game(row, data.mean(axis=0), np.cov(data.T), model.expected)
            exact = asymmetric_values(N_FEATURES, tree, game)
            inside.append((lower <= exact) & (exact <= upper))
    assert 0.95 - 3 * 0.03 < np.mean(inside) < 0.999


@pytest.mark.parametrize(("budget", "few"), [(32, 4), (40, 8)])
def test_what_is_left_after_all_coalitions_is_drawn_again(budget, few):
    """22 coalitions of this tree; intervals know how few tell the noise."""
    tree = [(2, 0), (2, 1), (0, 3), (0, 4)]
    explainer = shap_ext.AsymmetricExplainer(MODEL, Gaussian(DATA, draws=3), seed=0, graph=tree)
    explainer(ROWS, max_evals=budget, silent=True, error_bounds=True)
    estimate = explainer.last_estimate
    assert (estimate.evaluations == 22).all() and not estimate.fit_errors.any()
    assert (estimate.model_rows == 3 * (budget - 1) + 1).all()
    assert (estimate.degrees_of_freedom > 0).all() and (estimate.degrees_of_freedom <= few).all()


# --- direct and indirect parts ---


@pytest.mark.parametrize("restricted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_both_parts_sum_to_the_value(restricted):
    order = [[3, 1], [0, 2, 5], [4]]
    masker, orders = Causal(DATA, order, draws=256), {"order": order} if restricted else {}
    found, estimate = explained(masker, "asymmetric", budget=2000, split_effects=True, **orders)
    flags, edges = [False] * 3, edges_of_layers(order) if restricted else []
    for place, row in enumerate(ROWS):
        game = interventional_game(row, MEAN, COVARIANCE, order, flags, MODEL.expected)
        wanted = split_values(N_FEATURES, edges, lambda shown, given, game=game: game(given, shown))
        off = found.values[place] - wanted.ravel()
        assert np.abs(off).max() < 5 * estimate.standard_errors[place].max()
    last = found.values[:, N_FEATURES + 4]
    assert (
        np.abs(last).max() < 5 * estimate.standard_errors.max()
    )  # setting it changes nothing else
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, MODEL(ROWS))


def test_parts_have_names_data_and_plots():
    masker = Causal(FRAME, list("abcdef"), draws=4)
    explainer = shap_ext.AsymmetricExplainer(
        lambda frame: MODEL(frame.to_numpy()), masker, seed=0, split_effects=True
    )
    found = explainer(FRAME[:3], max_evals=200, silent=True, error_bounds=True)
    assert found.feature_names[:2] == ["a, direct", "b, direct"]
    assert found.feature_names[N_FEATURES] == "a, indirect"
    np.testing.assert_array_equal(found.data, np.tile(DATA[:3], 2))
    for plot, shown in ((shap.plots.waterfall, found[0]), (shap.plots.bar, found)):
        plot(shown, show=False)
    shap.plots.beeswarm(found, show=False)
    assert not masker.is_split  # the user's own
    again = pickle.loads(pickle.dumps(explainer.masker))
    assert again.is_split

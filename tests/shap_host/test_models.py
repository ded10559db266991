"""Models in the forms in which users pass them, their outputs and their links."""

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap

from shapley_adapters.errors import ShapleyExtWarning
from tests.helpers.optional import nn, torch
from tests.shap_host.games import (
    ROUNDING,
    Seen,
    curved,
    network,
    of_module,
    oracle,
    probability,
    rows,
)

# No warnings in ordinary use.
pytestmark = pytest.mark.filterwarnings("error")

NAMES = ["randomorder", "shear"]
every_name = pytest.mark.parametrize("name", NAMES)

X, BACKGROUND = rows(3, 5), rows(4, 5, seed=1)


def explain(model, background=BACKGROUND, explained=X, name="shear", **options):
    return shap.Explainer(model, background, algorithm=name, seed=0, **options)(explained)


# Torch modules


def test_training_mode_is_announced_and_kept():
    net = nn.Sequential(nn.Dropout(0.5), *network(4)).train()
    explainer = shap.Explainer(net, np.zeros((1, 4)), algorithm="shear", seed=0)
    with pytest.warns(ShapleyExtWarning, match="training mode"):
        explainer(rows(1, 4))
    assert all(module.training for module in net.modules())
    net.eval()
    explainer(rows(1, 4))  # in silence


@every_name
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_modules_keep_their_precision(name, dtype):
    seen = []
    net = network(5, dtype=dtype)
    net.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].dtype))
    for x_type in (np.float64, np.float32):
        sv = explain(net, BACKGROUND.astype(x_type), X.astype(x_type), name)
        assert sv.values.dtype == np.float64
    assert set(seen) == {dtype}
    if dtype == torch.float64:
        wanted = oracle(lambda x: of_module(net)(x)[:, 0], X, BACKGROUND)
        np.testing.assert_allclose(explain(net, name=name).values, wanted, **ROUNDING)
    else:
        double = network(5)
        wanted = oracle(lambda x: of_module(double)(x)[:, 0], X, BACKGROUND)
        # Outputs of order 10 in a precision of 3 or 7 digits.
        tolerance = 1e-5 if dtype == torch.float32 else 0.1
        np.testing.assert_allclose(explain(net, name=name).values, wanted, rtol=0, atol=tolerance)


def test_modules_without_parameters_keep_the_precision_of_the_rows():
    class Product(nn.Module):
        def forward(self, x):
            return (x[:, 1:] * x[:, :-1]).sum(dim=1)

    def model(x):
        return (x[:, 1:] * x[:, :-1]).sum(axis=1)

    wanted = oracle(model, X, BACKGROUND)
    np.testing.assert_allclose(explain(Product()).values, wanted, **ROUNDING)
    for kind in (np.float32, np.float64):  # gradients are of that type, too
        masker, x = BACKGROUND[:1].astype(kind), X.astype(kind)
        options: Any = {"algorithm": "oddgp", "seed": 0, "gradients": True}
        found = shap.Explainer(Product(), masker, **options)(x, max_evals=30)
        np.testing.assert_allclose(found.values, oracle(model, x, masker), atol=1e-4)


@every_name
def test_whole_numbers_for_networks_of_floats(name):
    # A table of counts is whole numbers to NumPy, but not to nn.Linear.
    net = network(4)
    x, background = np.array([[1, 2, 3, 4], [9, 8, 7, 0]]), np.zeros((1, 4), dtype=int)
    wanted = oracle(lambda x: of_module(net)(x)[:, 0], x, background)
    for kind in (np.asarray, pd.DataFrame):
        sv = explain(net, kind(background), kind(x), name)
        np.testing.assert_allclose(sv.values, wanted, **ROUNDING)


def test_a_module_wrapped_by_shap_and_a_subclassed_module():
    net = network(5)
    wanted = explain(net).values
    np.testing.assert_array_equal(explain(shap.models.Model(net)).values, wanted)

    class Own(type(net)):  # type: ignore[misc] # of any class
        pass

    own = Own(*net).eval()
    np.testing.assert_array_equal(explain(own).values, wanted)


# Outputs


def test_outputs_in_single_precision_are_added_up_in_double_precision():
    def model(x):
        return curved(x).astype(np.float32)

    sv = explain(model)
    np.testing.assert_allclose(sv.values, oracle(model, X, BACKGROUND), **ROUNDING)
    assert sv.values.dtype == sv.base_values.dtype == np.float64


# Links


def logit(p):
    return np.log(p / (1 - p))


@every_name
@pytest.mark.parametrize("linearize", [True, False])
@pytest.mark.parametrize("n_background", [1, 5])
def test_logit_equals_shaps_exact_explainer(name, linearize, n_background):
    background = rows(n_background, 5, seed=1)
    masker = shap.maskers.Independent(background)
    # Of one row there is nothing to weigh; shap divides 0 by 0 there and returns NaN.
    theirs_linearizes = linearize and n_background > 1
    theirs = shap.ExactExplainer(
        probability, masker, link=shap.links.logit, linearize_link=theirs_linearizes
    )(X)
    options = {"name": name, "link": shap.links.logit, "linearize_link": linearize}
    for ours in (background, lambda mask, x: np.where(mask, x, background)):
        sv = explain(probability, ours, **options)
        # shap differentiates the link numerically as we do, by the same step.
        np.testing.assert_allclose(sv.values, theirs.values, rtol=0, atol=1e-6)
        np.testing.assert_allclose(sv.base_values, theirs.base_values, rtol=0, atol=1e-6)


@pytest.mark.parametrize("linearize", [True, False])
def test_any_function_is_a_link(linearize):
    # shap wants links that numba compiles.
    table: dict[str, Any] = {"exp": np.exp, "shifted": lambda y: y + 3}
    table["without a name"] = functools.partial(np.power, 2.0)
    for link in table.values():
        sv = explain(curved, link=link, linearize_link=linearize)
        full = link(curved(X))
        np.testing.assert_allclose(sv.values.sum(axis=1) + sv.base_values, full, **ROUNDING)
    shifted = explain(curved, link=table["shifted"], linearize_link=linearize)
    np.testing.assert_allclose(shifted.values, explain(curved).values, rtol=0, atol=1e-8)


def test_the_link_costs_no_evaluations_of_the_budget():
    model = Seen(probability)
    explainer = shap.Explainer(
        model, rows(3, 12, 1), algorithm="leastsquares", link=shap.links.logit, seed=0
    )
    explainer(rows(2, 12), max_evals=100)
    estimate = explainer.last_estimate
    spent = estimate.evaluations.sum() + estimate.check_evaluations
    # The background itself is run once, for the weights.
    assert sum(len(call) for call in model.calls) == 3 * (spent + 1)

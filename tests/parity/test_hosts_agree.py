"""The same network through both hosts: the same numbers from the same seed."""

import numpy as np
import pytest
import torch
from torch import nn

import captum_ext
import shap_ext
from tests.captum_host.networks import examples, network
from tests.helpers.estimator_table import OF_CLASSES
from tests.helpers.tolerances import Tolerances

pytestmark = pytest.mark.filterwarnings("error")

N_FEATURES, N_OUTPUTS, N_ROWS = 12, 2, 3
BUDGET = 200  # of 4096 coalitions, so that all but exact enumeration draw at random
# Both hosts mask in float64 and call the same network; only their batches differ in size, and so
# the order in which a matrix product adds up.
SAME: Tolerances = {"rtol": 0, "atol": 1e-9}

SHEAR = [
    ({"cooperators": way, **more}, activation)
    for way, activation in (
        ("hessian", nn.Tanh),
        ("gradient", nn.ReLU),
        ("gradient", nn.Tanh),
        ("auto", nn.Tanh),
        ("auto", nn.ReLU),
        ("difference", nn.Tanh),
    )
    for more in ({}, {"complement": "uniform", "efficient": False})
]

ids = torch.tensor([0, 1, 1, 2, 3, 0, 4, 5, 5, 6, 7, 8])  # in the order of first appearance
GROUPS = {"first": [0, 5], "second": [1, 2], "third": [7, 8]}


def both(explainer, attribution, options, net, rows, background, **settings):
    """Return values, errors and the estimates of the two hosts, in shap's layout."""
    groups = settings.pop("groups", None)
    feature_mask = settings.pop("feature_mask", None)
    budget = settings.pop("budget", BUDGET)
    with_errors = options.get("complement") != "none"
    through_shap = explainer(net, background.numpy(), seed=7, groups=groups, **options)
    explanation = through_shap(
        rows.numpy(), max_evals=budget, error_bounds=with_errors, silent=True
    )
    through_captum = attribution(net, seed=7, **options)
    made = through_captum.attribute(
        rows,
        baselines=background,
        feature_mask=feature_mask,
        n_samples=budget,
        return_standard_error=with_errors,
    )
    values, errors = made if with_errors else (made, None)
    last = through_shap.last_estimate, through_captum.last_estimate
    return explanation, values, errors, last


def check(explanation, values, errors, last, *, places=None, atol=1e-9):
    """Compare what both hosts gave, number by number."""
    same: Tolerances = {"rtol": 0, "atol": atol}
    per_player = values.movedim(1, 2)  # (R, K, D) to (R, D, K)
    columns = slice(None) if places is None else places
    np.testing.assert_allclose(explanation.values, per_player[:, columns].numpy(), **same)
    if errors is not None:
        of_players = errors.movedim(1, 2)[:, columns].numpy()
        np.testing.assert_allclose(explanation.error_std, of_players, **same)
    of_shap, of_captum = last
    np.testing.assert_array_equal(of_shap.evaluations, of_captum.evaluations)
    np.testing.assert_array_equal(of_shap.backward_passes, of_captum.backward_passes)
    np.testing.assert_array_equal(of_shap.cooperators, of_captum.cooperators)
    np.testing.assert_allclose(of_shap.empty_values, of_captum.empty_values, **SAME)
    np.testing.assert_allclose(of_shap.grand_values, of_captum.grand_values, **SAME)
    np.testing.assert_allclose(explanation.base_values, of_captum.empty_values, **SAME)
    assert np.abs(explanation.values).max() > 1e-2  # not nothing against nothing


def budget_of(row):
    return row.budget(N_FEATURES, BUDGET)


@pytest.mark.parametrize(
    ("options", "activation"),
    SHEAR,
    ids=[f"{o['cooperators']}, {a.__name__}, {o.get('complement')}" for o, a in SHEAR],
)
@pytest.mark.parametrize("grouped", [False, True])
def test_shear_by_its_cooperators(options, activation, grouped):
    net = network(N_FEATURES, N_OUTPUTS, activation=activation)
    rows, background = examples(N_ROWS, N_FEATURES), examples(1, N_FEATURES, seed=5)
    settings = {"groups": GROUPS, "feature_mask": ids, "budget": 150} if grouped else {}
    got = both(
        shap_ext.ShearExplainer,
        captum_ext.Shear,
        options,
        net,
        rows,
        background,
        **settings,
    )
    first = [int((ids == player).nonzero()[0]) for player in range(9)] if grouped else None
    check(*got, places=first)
    wanted = options["cooperators"]
    if wanted == "auto":
        wanted = "hessian" if activation is nn.Tanh else "gradient"
    assert got[3][0].cooperators.tolist() == [wanted] * N_ROWS


@pytest.mark.parametrize("row", OF_CLASSES, ids=[row.id for row in OF_CLASSES])
def test_every_estimator(row):
    # One row has columns that equal the background. They are set aside, so that the rows have
    # different numbers of players.
    net = network(N_FEATURES, N_OUTPUTS)
    rows, background = examples(N_ROWS, N_FEATURES), examples(1, N_FEATURES, seed=5)
    rows[1, 3:6] = background[0, 3:6]
    got = both(
        row.explainer, row.attribution, row.options, net, rows, background, budget=budget_of(row)
    )
    check(*got, atol=row.learned_rounding)
    assert (got[1][1, :, 3:6] == 0).all()

"""Our explainers beside shap's own, version 0.51, on the same masker, model and row."""

import lightgbm
import numpy as np
import pytest
import shap
import sklearn.ensemble
import sklearn.neural_network

import shap_ext
from tests.helpers.optional import nn
from tests.shap_host.games import network, of_module, rows

pytestmark = pytest.mark.versions

N_FEATURES = 9  # 2^9 = 512 coalitions
N_ROWS = 4


def target(x):
    return (
        x[:, 0] * x[:, 1] - np.sin(2 * x[:, 2]) * x[:, 3] + np.maximum(x[:, 4], x[:, 5]) * x[:, 6]
    )


TRAIN, X = rows(300, N_FEATURES, seed=2), rows(N_ROWS, N_FEATURES)


def forest():
    return (
        sklearn.ensemble.RandomForestRegressor(8, random_state=0).fit(TRAIN, target(TRAIN)).predict
    )


def boosted():
    model = lightgbm.LGBMRegressor(n_estimators=30, num_leaves=8, verbose=-1, n_jobs=1)
    return model.fit(TRAIN, target(TRAIN)).booster_.predict


BUILDERS = {
    "scikit-learn forest": forest,
    "LightGBM booster": boosted,
    "torch ELU": lambda: network(N_FEATURES, 2),
}


@pytest.fixture(scope="module", params=BUILDERS)
def model(request):
    return BUILDERS[request.param]()


@pytest.fixture(scope="module", params=[1, 5], ids=["one background row", "several"])
def masker(request):
    return shap.maskers.Independent(rows(request.param, N_FEATURES, seed=1))


def as_function(model):
    """Return the model as shap takes it."""
    return of_module(model) if isinstance(model, nn.Module) else model


def test_enumeration_equals_shaps_exact_explainer(model, masker):
    theirs = shap.ExactExplainer(as_function(model), masker)(X, max_evals=2**N_FEATURES)
    sv = shap_ext.EnumerationExplainer(model, masker)(X)
    exact = theirs.values.reshape(N_ROWS, N_FEATURES, -1)
    ours = sv.values.reshape(exact.shape)
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-11 * max(1, np.abs(exact).max()))
    np.testing.assert_allclose(sv.base_values, theirs.base_values, rtol=0, atol=1e-9)

"""Baselines that are drawn given the present features: the same numbers as in shap, bad input."""

from typing import Any

import numpy as np
import pytest
import torch

import captum_ext
from captum_ext.conditional import Gaussian
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers.conditional_games import Quadratic, correlated_rows

DATA = correlated_rows(500, 6, seed=0)
TENSOR, X = torch.as_tensor(DATA), torch.as_tensor(DATA[:3])
MODEL = Quadratic(6, seed=0)
DISTRIBUTIONS = [
    "Gaussian", "Causal", "Copula", "Empirical", "Categorical", "Forest", "Sampled",
]  # fmt: skip


def forward(x):
    return torch.as_tensor(MODEL(x.reshape(len(x), -1).numpy()))


@pytest.mark.parametrize(
    ("name", "method", "algorithm", "budget"),
    [
        ("Gaussian", "LeastSquares", "leastsquares", 50),
        *((name, "Exact", "enumeration", None) for name in DISTRIBUTIONS),
    ],
)
def test_both_hosts_give_the_same_numbers(name, method, algorithm, budget):
    shap = pytest.importorskip("shap")
    shap_ext = pytest.importorskip("shap_ext")
    first = (lambda mask, row, n, rng: rng.normal(size=(n, 6)),) if name == "Sampled" else ()
    more = {"order": [3, [1, 0], 2, [4, 5]]} if name == "Causal" else {}
    data = {"Categorical": DATA.round(), "Forest": DATA[:60]}.get(name, DATA)
    baselines = getattr(captum_ext.conditional, name)(
        *first, torch.as_tensor(data), draws=8, **more
    )
    masker = getattr(shap_ext.maskers, name)(*first, data, draws=8, **more)
    made = getattr(captum_ext, method)(forward, seed=0)
    found = made.attribute(torch.as_tensor(data[:2]), baselines=baselines, n_samples=budget)
    explainer = shap.Explainer(MODEL, masker, algorithm=algorithm, seed=0)
    other = explainer(data[:2], max_evals=budget or "auto", silent=True)
    np.testing.assert_allclose(found.numpy(), other.values, rtol=1e-9, atol=1e-12)


def test_graphs_and_asymmetric_values_of_both_hosts():
    shap = pytest.importorskip("shap")
    shap_ext = pytest.importorskip("shap_ext")
    edges, tree = [(3, (0, 1)), ((0, 1), 4)], [(3, 0), (3, 1)]
    options: dict[str, Any] = {"graph": edges, "confounded": [(0, 1)], "draws": 8}
    baselines = captum_ext.conditional.Causal(TENSOR, **options)
    method = captum_ext.Asymmetric(forward, seed=0, graph=tree)
    found = method.attribute(X, baselines=baselines, n_samples=30)
    masker = shap_ext.maskers.Causal(DATA, **options)
    explainer = shap.Explainer(MODEL, masker, algorithm="asymmetric", graph=tree, seed=0)
    other = explainer(DATA[:3], max_evals=30, silent=True)
    np.testing.assert_allclose(found.numpy(), other.values, rtol=1e-9, atol=1e-12)


def test_shapes_masks_targets_and_value_functions():
    """Examples (3, 2) in three groups, two outputs, of which one is chosen or compared."""

    def two_outputs(x):
        value = forward(x)
        return torch.stack([value, -value], dim=1)

    pairs, groups = TENSOR.reshape(-1, 3, 2), torch.tensor([[[0, 0], [1, 1], [2, 2]]])
    baselines = Gaussian(pairs, draws=256)
    plain = captum_ext.Exact(lambda x: 2 * forward(x), seed=0)
    margin = captum_ext.Exact(
        two_outputs, seed=0, value_function=captum_ext.ValueFunction("margin", classes=(0, 1))
    )
    chosen = captum_ext.Exact(two_outputs, seed=0)
    arguments = {"baselines": baselines, "feature_mask": groups}
    found = plain.attribute(X.reshape(3, 3, 2), **arguments)
    assert found.shape == (3, 3, 2)
    np.testing.assert_allclose(margin.attribute(X.reshape(3, 3, 2), **arguments), found, rtol=1e-9)
    np.testing.assert_allclose(
        chosen.attribute(X.reshape(3, 3, 2), target=0, **arguments), found / 2, rtol=1e-9
    )
    single = chosen.attribute(X.reshape(3, 3, 2).float(), target=0, **arguments)
    assert single.dtype == torch.float64  # of the output
    np.testing.assert_allclose(single, found / 2, atol=0.01 * found.abs().max())  # other shifts


def test_bad_input():
    method = captum_ext.Exact(forward, seed=0)
    baselines = Gaussian(TENSOR)
    with pytest.raises(InvalidArgumentTypeError, match="data must be a tensor of examples"):
        Gaussian(DATA)
    with pytest.raises(InvalidArgumentError, match="data has 5 rows and 6 columns"):
        Gaussian(TENSOR[:5])
    with pytest.raises(InvalidArgumentError, match=r"draws examples of the shape \(6,\)"):
        method.attribute(X[:, :5], baselines=baselines)
    with pytest.raises(InvalidArgumentTypeError, match=r"Pass inputs\.float\(\)"):
        method.attribute(X.long(), baselines=baselines)
    with pytest.raises(InvalidArgumentError, match="one value for the whole batch"):
        captum_ext.Exact(lambda x: forward(x).sum(), seed=0).attribute(X, baselines=baselines)


def test_criteria_of_both_hosts():
    shap_ext = pytest.importorskip("shap_ext")
    baselines, masker = Gaussian(TENSOR, draws=8), shap_ext.maskers.Gaussian(DATA, draws=8)
    found = captum_ext.criteria.mse_v(forward, X, baselines=baselines)
    other = shap_ext.criteria.mse_v(MODEL, masker, DATA[:3])
    np.testing.assert_allclose(found.of_rows, other.of_rows, rtol=1e-9)
    found = captum_ext.criteria.energy_score(X, baselines)
    other = shap_ext.criteria.energy_score(masker, X.numpy())
    np.testing.assert_allclose(found.of_rows, other.of_rows, rtol=1e-9)
    with pytest.raises(InvalidArgumentTypeError, match="baselines must be a distribution"):
        captum_ext.criteria.energy_score(X, TENSOR)  # type: ignore[arg-type]


def test_errors_of_the_fit_take_tensors():
    found = captum_ext.criteria.fit_errors(lambda rows: rows.mean(dim=0), TENSOR, n_fits=50)
    expected = TENSOR.std(dim=0).numpy() / np.sqrt(len(TENSOR))
    np.testing.assert_allclose(found, expected, rtol=0.4)  # four standard errors of 10 %

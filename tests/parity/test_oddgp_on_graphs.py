"""Graphs of players for `oddgp`: through both hosts the same numbers, and better ones."""

import numpy as np
import shap

import shap_ext
from tests.helpers.optional import captum_ext, torch

M, BUDGET = 14, 112
WEIGHTS = torch.from_numpy(np.random.default_rng(0).normal(size=(M, 3)) * 2)


def model(x):
    """Saturate over arcs of three neighbours on a ring."""
    arcs = torch.stack([torch.roll(x, -step, 1) for step in range(3)], 2)
    return torch.tanh((arcs * WEIGHTS).sum(2)).sum(1)


def predict(x):
    return model(torch.as_tensor(x)).numpy()


def test_both_hosts_give_the_same_attributions():
    x = torch.ones(2, M, dtype=torch.float64)
    x[1] *= 0.5
    explainer = shap.Explainer(predict, np.zeros((1, M)), algorithm="oddgp", graph="ring", seed=0)
    found = explainer(x.numpy(), max_evals=BUDGET)
    attributions, errors = captum_ext.OddGP(model, graph="ring", seed=0).attribute(
        x, n_samples=BUDGET, return_standard_error=True
    )
    np.testing.assert_allclose(attributions, found.values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(errors, explainer.last_estimate.standard_errors[:, :, 0], atol=1e-10)
    exact = shap_ext.EnumerationExplainer(predict, np.zeros((1, M)))(x.numpy()).values
    errors_of = [
        [
            np.abs(
                shap_ext.OddGPExplainer(predict, np.zeros((1, M)), graph=graph, seed=seed)(
                    x.numpy(), max_evals=BUDGET
                ).values
                - exact
            ).mean()
            for seed in range(5)
        ]
        for graph in ("ring", None)
    ]
    assert np.mean(errors_of[0]) < 0.75 * np.mean(errors_of[1])

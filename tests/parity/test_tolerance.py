"""`tolerance=` through both hosts, as their users pass it."""

from typing import Any

import numpy as np
import pytest
import torch

import captum_ext
import shap_ext
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtWarning
from tests.captum_host.networks import examples, network
from tests.helpers.estimator_table import SEVERAL, over
from tests.shap_host.games import curved

M, R = 12, 4
STOPS = [row for row in SEVERAL if not row.is_exact]


@over(STOPS)
def test_both_hosts_stop_at_the_same_evaluations(row):
    net = network(M, 2)
    rows, background = examples(R, M), examples(1, M, seed=5)
    explainer = row.explainer(net, background.numpy(), seed=3, **row.options)
    explanation = explainer(rows.numpy(), tolerance="15%", max_evals=4096, silent=True)
    method = row.attribution(net, seed=3, **row.options)
    made = method.attribute(rows, baselines=background, tolerance="15%", n_samples=4096)
    np.testing.assert_allclose(explanation.values, made.movedim(1, 2).numpy(), atol=1e-10)
    spent = explainer.last_estimate.evaluations
    np.testing.assert_array_equal(spent, method.last_estimate.evaluations)
    errors = explainer.last_estimate.standard_errors
    assert (errors.max(axis=1) <= 0.15 * np.ptp(explanation.values, axis=1)).all()


def test_errors_warnings_and_refusals_of_both_hosts():
    x = np.random.default_rng(0).normal(size=(R, M))
    explainer = shap_ext.RandomOrderExplainer(curved, np.zeros((1, M)), seed=0)
    method = captum_ext.RandomOrder(lambda x: torch.as_tensor(curved(x.numpy())), seed=0)
    explanation = explainer(x, tolerance=0.05, error_bounds=True, silent=True)
    assert 0 < explanation.error_std.max() <= 0.05
    tensors = torch.as_tensor(x)
    made, errors = method.attribute(tensors, tolerance=0.05, return_standard_error=True)
    np.testing.assert_allclose(made, explanation.values, atol=1e-10)
    np.testing.assert_allclose(errors, explanation.error_std, atol=1e-10)
    calls: Any = ((explainer, "max_evals"), (method.attribute, "n_samples"))
    for call, budget in calls:
        rows = x if call is explainer else tensors
        with pytest.warns(ShapleyExtWarning, match=f"4 of 4 rows .* {budget}=300"):
            call(rows, tolerance=1e-6, **{budget: 300})
        with pytest.raises(InvalidArgumentError, match="tolerance must be a positive number"):
            call(rows, tolerance="5")

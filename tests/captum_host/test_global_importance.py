"""Global importance through captum: the numbers of shap's host, and captum's arguments."""

from typing import Any

import numpy as np
import pytest
import torch

import captum_ext
import shap_ext
from shapley_adapters.errors import InvalidArgumentError

torch.manual_seed(0)
NET = torch.nn.Sequential(
    torch.nn.Linear(5, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3), torch.nn.Softmax(dim=1)
).double()
INPUTS = torch.randn(60, 5, dtype=torch.double)
LABELS = torch.multinomial(NET(INPUTS).detach(), 1)[:, 0]
BACKGROUND = INPUTS[:4]
BASELINES = captum_ext.BaselineDistribution(BACKGROUND)


def of_shap(explained_by: Any = shap_ext.RandomOrderExplainer, **options: Any) -> Any:
    explainer = explained_by(NET, BACKGROUND.numpy(), seed=0)
    return explainer.global_importance(INPUTS.numpy(), silent=True, **options)


@pytest.mark.parametrize("kind", ["mean", "mean_absolute", "loss"])
def test_both_hosts_agree(kind):
    options: dict[str, Any] = {"kind": kind}
    options |= {"loss": "cross_entropy", "labels": LABELS} if kind == "loss" else {}
    method = captum_ext.RandomOrder(NET, seed=0)
    found = method.global_importance(INPUTS, BASELINES, n_samples=20, **options)
    exact = captum_ext.Exact(NET).global_importance(INPUTS, BASELINES, population=True, **options)
    if kind == "loss":
        options["y"] = options.pop("labels").numpy()
    wanted = of_shap(max_evals=20, **options)
    assert found.values.shape == ((5,) if kind == "loss" else (5, 3))
    # The draws of a row come from its content, which captum's hosts know together with baselines.
    np.testing.assert_allclose(
        found.values, wanted.values, atol=4.5 * np.max(wanted.standard_errors)
    )
    of_enumeration = of_shap(shap_ext.EnumerationExplainer, population=True, **options)
    np.testing.assert_allclose(exact.values, of_enumeration.values, atol=1e-10)


def test_targets_masks_and_parts():
    mask = torch.tensor([[0, 0, 1, 2, 2]])
    method = captum_ext.RandomOrder(NET, seed=0)
    found = method.global_importance(
        INPUTS, target=1, feature_mask=mask, population=True, n_samples=8
    )
    attributions = captum_ext.Exact(NET).attribute(
        INPUTS, target=1, feature_mask=mask, return_input_shape=False
    )
    np.testing.assert_allclose(found.values, attributions.abs().mean(dim=0), atol=1e-10)
    part = method.global_importance(INPUTS, target=1, n_examples=20, n_samples=20)
    assert part.n_rows == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "loss", "loss": "cross_entropy", "target": 1, "labels": LABELS}, "target=1"),
        ({"kind": "loss", "loss": "cross_entropy"}, "labels= is missing"),
        ({"labels": LABELS}, "labels is used with kind='loss' only"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        captum_ext.RandomOrder(NET, seed=0).global_importance(INPUTS, **arguments)


def test_one_value_for_the_batch_is_refused():
    with pytest.raises(InvalidArgumentError, match="an output for each example"):
        captum_ext.RandomOrder(lambda x: x.sum(), seed=0).global_importance(INPUTS)

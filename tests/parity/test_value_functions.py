"""Value functions through both hosts: the same numbers, with SHEAR's derivatives, and plots."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from torch import nn

import captum_ext
import shap_ext
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.games.value_functions import KINDS
from tests.captum_host.networks import examples, network
from tests.helpers.brute_force import masked_model_values, shapley_values
from tests.helpers.estimator_table import SEVERAL, over
from tests.helpers.tolerances import EXACT

M, K, R = 9, 3, 3


class Softmax(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return torch.softmax(self.net(x), dim=1)


@pytest.fixture(params=["logits", "probabilities"])
def net(request):
    net = network(M, K)
    return net if request.param == "logits" else Softmax(net).eval()


def definition(kind, net, row, background):
    """Return the game of one row straight from the definition."""

    def outputs(x):
        found = net(torch.as_tensor(x)).detach().numpy()
        return np.log(found) if isinstance(net, Softmax) else log_softmax(found, axis=1)

    def raw(x):
        return net(torch.as_tensor(x)).detach().numpy()

    own = outputs(row[None])[0]
    first, second = own.argsort()[::-1][:2]
    if kind == "margin":
        return masked_model_values(lambda x: raw(x)[:, first] - raw(x)[:, second], row, background)
    probability = masked_model_values(lambda x: np.exp(outputs(x)), row, background)
    if kind == "log_probability":
        return lambda coalition: np.log(probability(coalition)[first])
    return lambda coalition: np.exp(own) @ np.log(probability(coalition))


@pytest.mark.parametrize(("kind", "n_background"), zip(KINDS[1:], [1, 4, 4], strict=True))
def test_exact_values_are_those_of_the_definition(net, kind, n_background):
    rows, background = examples(R, M).numpy(), examples(n_background, M, seed=5).numpy()
    explainer = shap_ext.EnumerationExplainer(net, background, value_function=kind)
    found = explainer(rows, silent=True)
    assert found.values.shape == (R, M)
    assert found.base_values.shape == (R,)
    expected = [shapley_values(M, definition(kind, net, row, background)) for row in rows]
    np.testing.assert_allclose(found.values, expected, **EXACT)
    if n_background == 1:
        method = captum_ext.Exact(net, value_function=kind)
        made = method.attribute(torch.as_tensor(rows), baselines=torch.as_tensor(background))
        assert made.shape == (R, M)
        np.testing.assert_allclose(made.numpy(), expected, **EXACT)


@over(SEVERAL)
@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.every_combination
def test_both_hosts_agree(row, kind):
    net = network(M, K)
    rows, background = examples(R, M), examples(1, M, seed=5)
    budget = row.budget(M, 150)
    explainer = row.explainer(net, background.numpy(), seed=3, value_function=kind, **row.options)
    explanation = explainer(rows.numpy(), max_evals=budget, silent=True)
    method = row.attribution(net, seed=3, value_function=kind, **row.options)
    made = method.attribute(rows, baselines=background, n_samples=budget)
    np.testing.assert_allclose(explanation.values, made.numpy(), **EXACT)
    np.testing.assert_array_equal(
        explainer.last_estimate.cooperators, method.last_estimate.cooperators
    )


def value_of(kind, net, row):
    """Return the value function of a row as a function with one output."""

    def logs_of(out):
        return torch.log(out) if isinstance(net, Softmax) else torch.log_softmax(out, 1)

    own = net(row[None]).detach()
    first, second = own[0].argsort(descending=True)[:2]
    return {
        "margin": lambda x: net(x)[:, first] - net(x)[:, second],
        "log_probability": lambda x: logs_of(net(x))[:, first],
        "expected_log_probability": lambda x: logs_of(net(x)) @ logs_of(own)[0].exp(),
    }[kind]


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("way", ["hessian", "gradient"])
@pytest.mark.every_combination
def test_scores_are_those_of_the_value(net, kind, way):
    """Derivatives of the value function are those of a function that returns it."""
    rows = examples(R, M)
    options = {"n_samples": 200, "baselines": examples(1, M, seed=5)}
    shear = captum_ext.Shear(net, seed=1, value_function=kind, cooperators=way)
    found = shear.attribute(rows, **options)
    for row, values in zip(rows, found, strict=True):
        alone = captum_ext.Shear(value_of(kind, net, row), seed=1, cooperators=way)
        np.testing.assert_allclose(alone.attribute(row[None], **options)[0], values, **EXACT)


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("n_background", [1, 4])
@pytest.mark.every_combination
def test_passes_have_the_values_of_coalitions(net, kind, n_background):
    """Averages over the background come before logarithms there, too."""
    x, background = examples(R, M), 3 * examples(n_background, M, seed=5)
    options = {"value_function": kind, "seed": 0}
    methods = [captum_ext.OddGP(net, gradients=how, **options) for how in (True, False)]
    baselines = captum_ext.BaselineDistribution(background)
    of_captum = [method.attribute(x, baselines, n_samples=40) for method in methods]
    torch.testing.assert_close(*(found.sum(dim=1) for found in of_captum))
    explainer = shap_ext.OddGPExplainer(net, background.numpy(), gradients=True, **options)
    found = explainer(x.numpy(), max_evals=40, silent=True).values
    np.testing.assert_allclose(found, of_captum[0], atol=1e-6)  # learning adds to rounding
    assert explainer.last_estimate.backward_passes.all()


def test_targets_name_the_class():
    net = network(M, K)
    rows = examples(R, M)
    for target in (1, torch.tensor([0, 2, 1]), [0, 2, 1]):
        method = captum_ext.Exact(net, value_function="log_probability")
        found = method.attribute(rows, target=target)
        logs = captum_ext.Exact(lambda x: torch.log_softmax(net(x), 1))
        np.testing.assert_allclose(found, logs.attribute(rows, target=target), **EXACT)


def test_links_and_value_functions_do_not_mix():
    import shap

    with pytest.raises(InvalidArgumentError, match=r"link=shap.links.identity"):
        shap_ext.ShearExplainer(
            network(M, K), np.zeros((1, M)), link=shap.links.logit, value_function="margin"
        )

"""Interactions through captum: matrices of the features of the mask."""

import numpy as np
import pytest
import scipy.stats
import torch

import shap_ext
from captum_ext import Best, Exact, LeastSquares, OddGP, RandomOrder
from tests.captum_host.networks import examples, game_of, network
from tests.helpers.interaction_oracles import semivalues_by_sizes, set_interactions

pytestmark = pytest.mark.filterwarnings("error")

N_FEATURES = 9


def product(x):
    return x[:, 0] * x[:, 1] * x[:, 2] + torch.tanh(x.sum(dim=1))


@pytest.mark.parametrize("method", [OddGP, Best, LeastSquares])
def test_estimates_sum_to_the_attributions(method):
    x = examples(3, N_FEATURES)
    net = network(N_FEATURES, 2)
    chosen = method(net, seed=0)
    matrices, errors = chosen.interactions(x, n_samples=200, return_standard_error=True)
    assert matrices.shape == errors.shape == (3, 2, N_FEATURES, N_FEATURES)
    estimate = chosen.last_estimate
    sums = matrices.sum(dim=-1).double().transpose(1, 2)
    torch.testing.assert_close(sums, torch.from_numpy(estimate.values), atol=1e-6, rtol=0)
    attributions = chosen.attribute(x, n_samples=200)
    if method is not Best:  # which takes less time for attributions alone
        torch.testing.assert_close(matrices.sum(dim=-1), attributions, atol=1e-6, rtol=0)
    assert (errors >= 0).all()
    assert estimate.interactions.request.name == "SII"
    assert chosen.last_estimate.interactions is None


def test_features_are_those_of_the_mask():
    x = examples(2, N_FEATURES).double()
    mask = torch.tensor([[7, 7, 0, 0, 0, 500_000, 500_000, -3, 7]])
    method = OddGP(product, seed=0)
    matrices = method.interactions(x, feature_mask=mask)
    assert matrices.shape == (2, 4, 4)  # −3, 0, 7, 500000
    attributions = method.attribute(x, feature_mask=mask)
    of_ids = torch.stack([attributions[:, column] for column in (7, 2, 0, 5)], dim=1)
    torch.testing.assert_close(matrices.sum(dim=-1), of_ids)


@pytest.mark.parametrize("index", ["shapley", "shapley_taylor", "banzhaf"])
def test_both_hosts_agree(index):
    x = examples(3, N_FEATURES).double()
    explainer = shap_ext.OddGPExplainer(
        lambda rows: product(torch.as_tensor(rows)).numpy(), np.zeros((1, N_FEATURES)), seed=0
    )
    expected = explainer(x.numpy(), max_evals=150, interactions=index, error_bounds=True)
    found, errors = OddGP(product, seed=0).interactions(
        x, n_samples=150, index=index, return_standard_error=True
    )
    np.testing.assert_allclose(found.numpy(), expected.values, atol=1e-9)
    np.testing.assert_allclose(errors.numpy(), expected.error_std, atol=1e-9)


def test_images_and_a_value_for_the_whole_batch():
    x = examples(2, 12).double().reshape(2, 1, 3, 4)

    def total(images):
        return images.reshape(len(images), -1).sum(dim=1).tanh()

    found = OddGP(total, seed=0).interactions(x, n_samples=200)
    assert found.shape == (2, 12, 12)
    of_batch = OddGP(lambda images: total(images).sum(), seed=0)
    summed = of_batch.interactions(x, n_samples=200, perturbations_per_eval=1)
    attributions = of_batch.attribute(x, n_samples=200, perturbations_per_eval=1)
    assert summed.shape == (1, 12, 12)
    torch.testing.assert_close(summed.sum(dim=-1), attributions.reshape(1, 12))


@pytest.mark.parametrize("n_features", [6, 10])
def test_linear_networks_in_single_precision_have_no_discoveries(n_features):
    method = OddGP(torch.nn.Linear(n_features, 1), seed=0)
    method.interactions(examples(5, n_features).float(), return_standard_error=True)
    assert method.last_estimate.rank_interactions().n_discoveries == 0


@pytest.mark.parametrize("method", [OddGP, Best, Exact])
def test_larger_sets_are_those_of_the_definition(method):
    x = examples(2, 5).double()
    n_samples = None if method is Exact else 32
    found = method(product).set_interactions(x, index="k-SII", order=3, n_samples=n_samples)
    truth = set_interactions("k-SII", 3, 5, game_of(product, x[1]))
    np.testing.assert_allclose(found.values[1, :, 0], list(truth.values()), atol=1e-10)
    frame = found.strongest(1, row=1)
    best = max(truth, key=lambda s: abs(truth[s]))
    assert frame["features"][0] == tuple(f"Feature {j}" for j in best)


@pytest.mark.parametrize("method", [OddGP, Best, Exact, RandomOrder])
def test_semivalues_have_the_form_of_attributions(method):
    x = examples(2, 5).double()
    n_samples = None if method is Exact else 32
    explain = method(product)
    values, errors = explain.semivalues(
        x, index=("beta", 4, 1), n_samples=n_samples, return_standard_error=True
    )
    shares = scipy.stats.betabinom(4, 1, 4).pmf(np.arange(5))
    for row, found in zip(x, values, strict=True):
        truth = semivalues_by_sizes(shares, 5, game_of(product, row))
        np.testing.assert_allclose(found.numpy(), truth, atol=1e-10)
    assert not errors.any()
    total = explain.attribute(x, n_samples=n_samples).sum(dim=1)  # Shapley values again
    np.testing.assert_allclose(total.numpy(), product(x).numpy(), atol=1e-10)

"""Errors that networks state, and attributions of networks refined by evaluations, in captum."""

from typing import Any

import pytest
import torch

from captum_ext import Exact, SimShap
from shapley_adapters.errors import InvalidArgumentError
from tests.captum_host.networks import examples, network

pytest.importorskip("safetensors")

# Embeddings are constant beyond the training rows, and say so of rows farther out.
pytestmark = pytest.mark.filterwarnings("ignore:.* unlike the rows that the network was trained on")

N = 6
FEW: dict[str, Any] = {"epochs": 15, "seed": 0, "rows_per_step": 32}


@pytest.fixture(scope="module")
def net():
    return network(N, 3)


@pytest.fixture(scope="module")
def fitted(net):
    return SimShap(net, **FEW).fit(examples(300, N))


@pytest.mark.parametrize("target", [None, 1])
def test_standard_errors_have_the_shape_of_the_inputs_and_hold(net, fitted, target):
    x = examples(60, N, seed=5)
    values, errors = fitted.attribute(x, target=target, return_standard_error=True)
    assert errors.shape == values.shape
    truth = Exact(net).attribute(x, target=target)
    assert ((values - truth).abs() <= 2.5 * errors).double().mean() > 0.88
    doubled = fitted.attribute(1.5 * x, target=target, return_standard_error=True)[1]
    assert doubled.mean() > errors.mean()


def test_all_coalitions_give_the_exact_values(net, fitted):
    x = examples(5, N, seed=6)
    found, errors = fitted.attribute(x, target=0, n_samples=2**N, return_standard_error=True)
    torch.testing.assert_close(found, Exact(net).attribute(x, target=0), atol=1e-5, rtol=1e-5)
    assert (errors == 0).all()


def test_tolerance_and_zero(fitted):
    x = examples(40, N, seed=6)
    _, errors = fitted.attribute(x, return_standard_error=True)
    tolerance = float(errors.amax(dim=(1, 2)).median())
    _, refined = fitted.attribute(x, tolerance=tolerance, return_standard_error=True)
    assert refined.max() <= tolerance * 1.0001
    assert (fitted.last_estimate.evaluations <= 2).sum() >= 20
    torch.testing.assert_close(fitted.attribute(x, n_samples=0), fitted.attribute(x))


def test_refinement_needs_evaluations(net):
    made = SimShap(net, efficient=False, **{**FEW, "epochs": 1}).fit(examples(40, N))
    with pytest.raises(InvalidArgumentError, match="n_samples needs efficient=True"):
        made.attribute(examples(3, N), n_samples=20)


def test_arguments_with_as_many_entries_as_artificial_examples_are_shared():
    """16 artificial examples, of which no number belongs to an example of the user."""
    weights = torch.linspace(0.5, 1.0, 16)

    def forward(x, of_rows):
        return torch.tanh(x.sum(dim=1)) * of_rows.sum()

    made = SimShap(forward, epochs=1, seed=0)
    made.fit(examples(40, N), additional_forward_args=weights)
    assert made.trained.errors.slope != 1.0

"""Surrogates through captum."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from captum_ext import Exact, FastShap, OddGP, SimShap, Surrogate
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers.brute_force import conditional_values, shapley_values

pytest.importorskip("safetensors")

# The second column is a copy of the first.
KINDS = torch.tensor(
    [[a, a, b, c] for a in range(3) for b in range(2) for c in range(2)], dtype=torch.float32
)
X = KINDS.repeat(40, 1)
FEW: dict[str, Any] = {"epochs": 30, "seed": 0, "rows_per_step": 32}


def model(x):
    one = x[:, 0] * (1 + x[:, 2]) + x[:, 2] * x[:, 3]
    return torch.stack([one, x[:, 0]], dim=1)


@pytest.fixture(scope="module")
def surrogate():
    return Surrogate(model, **FEW).fit(X)


@pytest.fixture(scope="module")
def wanted():
    def predict(rows):
        return model(torch.as_tensor(rows)).numpy()

    kinds = KINDS.numpy()
    return np.array([shapley_values(4, conditional_values(predict, row, kinds)) for row in kinds])


@pytest.mark.parametrize("method", [Exact, OddGP])
def test_it_is_a_forward_function_for_any_method(surrogate, wanted, method):
    found = method(surrogate).attribute(KINDS, baselines=surrogate.reference, target=0)
    assert found.dtype == KINDS.dtype
    size = np.abs(wanted[..., 0]).sum(axis=1).mean()
    assert np.abs(found.numpy() - wanted[..., 0]).sum(axis=1).mean() < 0.12 * size


def test_networks_that_explain_are_trained_on_it(surrogate, wanted):
    sim = SimShap(model, surrogate=surrogate, **FEW).fit(X)
    found = sim.attribute(KINDS)
    size = np.abs(wanted).sum(axis=1).mean()
    assert np.abs(found.transpose(1, 2).numpy() - wanted).sum(axis=1).mean() < 0.25 * size
    rise = surrogate(KINDS) - surrogate(surrogate.reference)
    torch.testing.assert_close(found.sum(dim=2), rise, atol=1e-5, rtol=0)
    with pytest.raises(InvalidArgumentError, match="baselines have no meaning"):
        sim.attribute(KINDS, baselines=0.0)


def test_one_is_made_where_it_is_asked_for(tmp_path):
    fast = FastShap(model, surrogate=True, epochs=3, seed=0).fit(X)
    assert fast.surrogate.evaluations == len(X)
    fast.save_trained(tmp_path / "network")
    fast.surrogate.save(tmp_path / "surrogate")
    loaded = Surrogate.load(tmp_path / "surrogate", model=model)
    again = FastShap(model, surrogate=loaded).load_trained(tmp_path / "network")
    torch.testing.assert_close(again.attribute(KINDS), fast.attribute(KINDS), rtol=0, atol=0)
    with pytest.raises(InvalidArgumentError, match="another model"):
        Surrogate.load(tmp_path / "surrogate", model=lambda x: model(x) + 1)


def test_images_with_superpixels():
    images = torch.randn(60, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    mask = ((torch.arange(8)[:, None] // 2) * 4 + torch.arange(8) // 2)[None, None]
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 2), nn.Softmax(dim=1)).eval()
    options: dict[str, Any] = {"network": "unet", "network_options": {"depth": 1, "width": 4}}
    sim = SimShap(net, surrogate=True, student="unet", epochs=2, seed=0)
    made = sim.fit(images, feature_mask=mask).attribute(images[:3], target=1, feature_mask=mask)
    assert made.shape == (3, 3, 8, 8)
    assert sim.surrogate.validation.loss == "kl"
    own = Surrogate(net, epochs=1, seed=0, **options).fit([images], feature_mask=mask)
    assert own(images).shape == (60, 2)


def test_wrong_calls():
    with pytest.raises(InvalidArgumentTypeError, match="whole numbers"):
        Surrogate(model, **FEW).fit(X.long())
    with pytest.raises(InvalidArgumentError, match="takes one"):
        Surrogate(model, **FEW).fit((X, X))
    mask = torch.arange(4).expand(len(X), 4).contiguous()
    with pytest.raises(InvalidArgumentError, match="same for all examples"):
        Surrogate(model, **FEW).fit(X, feature_mask=mask)
    with pytest.raises(TypeError, match="model must be .* got None"):
        Surrogate(None)

"""Models on GPUs. The tests that need a device are skipped where there is none."""

import numpy as np
import pytest
import shap

import shap_ext  # noqa: F401 # it makes shap know the algorithms
from shapley_adapters.memory_bounds import MAX_INPUT_BYTES
from tests.helpers.optional import captum_ext, module, nn, torch

device_memory = module("shapley_adapters.torch_support.array_module")

N_FEATURES = 12


def has(device):
    return {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}[device]()


@pytest.fixture(params=["cuda", "mps"])
def device(request):
    if not has(request.param):
        pytest.skip(f"there is no {request.param} device here: this is untested")
    return request.param


class Network(nn.Sequential):
    """A small network that records the rows of each call."""

    def __init__(self):
        torch.manual_seed(0)
        super().__init__(nn.Linear(N_FEATURES, 16), nn.Tanh(), nn.Linear(16, 2))
        self.eval()
        self.calls = []

    def forward(self, x):
        self.calls.append(x)
        return super().forward(x)


def inputs():
    return torch.randn(3, N_FEATURES, generator=torch.Generator().manual_seed(1))


NAMES = ("randomorder", "shear", "oddgp")


def through_shap(name, net):
    background = np.zeros((1, N_FEATURES), dtype=np.float32)
    return shap.Explainer(net, background, algorithm=name, seed=0)(inputs().numpy(), max_evals=200)


def through_captum(name, net, device="cpu"):
    method = {"randomorder": "RandomOrder", "shear": "Shear", "oddgp": "OddGP"}[name]
    attribution = getattr(captum_ext, method)(net, seed=0)
    return attribution.attribute(inputs().to(device), target=1, n_samples=200)


@pytest.mark.parametrize("name", NAMES)
def test_shap_explains_modules_on_a_device(name, device):
    net = Network().to(device)
    values = through_shap(name, net).values
    assert {call.device.type for call in net.calls} == {device}
    np.testing.assert_allclose(values, through_shap(name, Network()).values, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_captum_explains_modules_on_a_device(name, device):
    net = Network().to(device)
    attributions = through_captum(name, net, device)
    assert attributions.device.type == device
    torch.testing.assert_close(
        attributions.cpu(), through_captum(name, Network()), atol=1e-5, rtol=0
    )


def test_batches_take_a_share_of_the_free_memory(monkeypatch):
    """The sizes are those that torch would report; there is no device in most machines."""
    cuda, mps = torch.device("cuda"), torch.device("mps")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (3 * 2**30, 2**34))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 2**30)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 0)
    assert device_memory.max_input_bytes(cuda) == 2**27
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 2**33)
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: 2**33 - 2**30)
    assert device_memory.max_input_bytes(mps) == 2**25
    assert device_memory.max_input_bytes(torch.device("cpu")) == MAX_INPUT_BYTES


@pytest.mark.parametrize("host", ["shap", "captum"])
def test_little_free_memory_bounds_the_batches(host, monkeypatch):
    net, n_bytes = Network(), 40 * N_FEATURES * 4  # 40 rows
    for name in (
        "shapley_adapters.torch_support.array_module",
        "captum_ext.games.forward_function_game",
    ):
        monkeypatch.setattr(f"{name}.max_input_bytes", lambda _: n_bytes)
    through_shap("randomorder", net) if host == "shap" else through_captum("randomorder", net)
    assert max(map(len, net.calls)) == 40

"""Models on each device of the machine: the CPU always, a GPU where there is one."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import shap

import shap_ext
from shapley_adapters.memory_bounds import MAX_INPUT_BYTES
from tests.helpers.optional import captum_ext, module, nn, torch

captum = module("captum.attr")
language_models = module("tests.helpers.language_models")
device_memory = module("shapley_adapters.torch_support.array_module")
random_state = module("shapley_adapters.torch_support.random_state")

N_FEATURES = 12


def devices():
    is_there = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    return [name for name, is_available in is_there.items() if is_available]


@pytest.fixture(params=devices())
def device(request):
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
def test_modules_on_a_device_are_explained_there(name, device):
    net = Network().to(device)
    values = through_shap(name, net).values
    attributions = through_captum(name, net, device)
    assert {call.device.type for call in net.calls} == {attributions.device.type} == {device}
    np.testing.assert_allclose(values, through_shap(name, Network()).values, atol=1e-5)
    expected = through_captum(name, Network())
    torch.testing.assert_close(attributions.cpu(), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("host", ["shap", "captum"])
def test_answers_on_a_device_are_explained_and_follow_from_the_seed(host, device):
    """Sampled answers draw from the generators of the device, which are restored."""

    def mean_token(answers):
        return [sum(map(len, text.split())) for text in answers.texts]

    gen_args = {"max_new_tokens": 3, "do_sample": True}
    values: dict[Any, list[Any]] = {}
    for score in ("log_prob", mean_token):
        for on in ("cpu", device, device):
            network = language_models.TinyLanguageModel().float().to(on)
            words = language_models.WordTokenizer()
            states = [g.get_state() for g in random_state._generators(torch.device(on))]
            if host == "shap":
                model = shap_ext.models.LanguageModel(
                    network, words, score=score, gen_args=gen_args, seed=0
                )
                masker = shap_ext.maskers.TextSegments("words", mask_token="a")
                explainer = shap.Explainer(model, masker, algorithm="enumeration", seed=0)
                options: Any = {} if score == "log_prob" else {"repeats": 3, "max_evals": 30}
                found = explainer(["the cat sat"], ["on a"], batch_size=8, **options).values[0]
            else:
                explainer = captum_ext.LLMAttribution(
                    captum_ext.Exact(network, seed=0), words, score
                )
                prompt = captum.TextTokenInput("the cat sat", words, skip_tokens=[1])
                options = {} if score == "log_prob" else {"repeats": 3, "gen_args": gen_args}
                result = explainer.attribute(prompt, "on a", **options)
                assert result.seq_attr.device.type == on
                found = result.seq_attr.cpu().numpy()
            values.setdefault((score, on), []).append(found)
            after = [g.get_state() for g in random_state._generators(torch.device(on))]
            assert all(map(torch.equal, states, after))
    np.testing.assert_allclose(
        values["log_prob", device][-1], values["log_prob", "cpu"][0], atol=1e-5
    )
    np.testing.assert_array_equal(*values[mean_token, device][-2:])


def test_a_seed_goes_to_the_given_device_only(monkeypatch):
    """The generators stand for those of two devices; there are none in most machines."""
    others = tuple(torch.Generator().manual_seed(i) for i in (5, 6))
    cuda = SimpleNamespace(init=lambda: None, current_device=lambda: 1, default_generators=others)
    before = [g.get_state() for g in (torch.default_generator, *others)]
    for device, drawn in (("cuda:0", others[0]), ("cuda", others[1])):
        with monkeypatch.context() as patch:
            patch.setattr(torch, "cuda", cuda)
            on, draws = torch.device(device), []
            for seed in (3, 3, 2**64 + 3):
                with random_state.seeded(seed, on):
                    draws.append((torch.rand(2), torch.rand(2, generator=drawn)))
        assert all(map(torch.equal, draws[0], draws[1]))
        assert not any(map(torch.equal, draws[0], draws[2]))
        after = [g.get_state() for g in (torch.default_generator, *others)]
        assert all(map(torch.equal, before, after))
    with pytest.raises(TypeError), random_state.seeded(0):
        torch.rand(1) + "an error"
    assert torch.equal(before[0], torch.get_rng_state())


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

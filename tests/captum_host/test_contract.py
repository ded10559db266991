"""What captum and its tools expect of an attribution method."""

import copy
import inspect
import random
import re
from contextlib import nullcontext
from functools import partial

import captum.attr
import numpy as np
import pytest
import torch
from captum.attr import NoiseTunnel

import captum_ext
from captum_ext import Exact, OddGP, RandomOrder, Shear
from shapley_adapters.errors import InvalidArgumentError
from tests.captum_host.networks import examples, network

# No warnings in ordinary use.
pytestmark = pytest.mark.filterwarnings("error")

METHODS = [Exact, RandomOrder, Shear]
RANDOM = [RandomOrder, Shear]
N_FEATURES = 9  # 2^9 coalitions, so that 100 evaluations leave something to chance

every_method = pytest.mark.parametrize("method", METHODS)
every_random = pytest.mark.parametrize("method", RANDOM)


def plus_one(x):
    """Return something that pickles."""
    return torch.tanh(x).prod(dim=1) + x.sum(dim=1)


def budget(method):
    return {} if method is Exact else {"n_samples": 100}


# The class


@every_method
def test_arguments_are_captums_in_captums_order(method):
    assert issubclass(method, captum.attr.PerturbationAttribution)
    assert method(plus_one).forward_func is plus_one
    names = list(inspect.signature(method.attribute).parameters)
    for theirs in (captum.attr.ShapleyValueSampling, captum.attr.KernelShap):
        their_names = list(inspect.signature(theirs.attribute).parameters)
        assert names[:8] == their_names[:8]
        assert set(their_names) <= set(names)


def test_names_read_well():
    of_several_words = {
        "CShapley": "C-Shapley",
        "LLMAttribution": "LLM Attribution",
        "OddGP": "Odd GP",
        "Shear": "SHEAR",
        "SimShap": "SimSHAP",
    }
    public = {name: getattr(captum_ext, name) for name in captum_ext.__all__}
    methods = {name for name, one in public.items() if hasattr(one, "get_name")}
    names = {name: public[name].get_name() for name in methods - {"DataLoaderAttribution"}}
    assert names.items() >= of_several_words.items()
    assert all(
        name.replace(" ", "").replace("-", "").lower() == key.lower() for key, name in names.items()
    )
    assert captum_ext.OddGP(plus_one).get_name() == "Odd GP"

    class MyShear(captum_ext.Shear):
        pass

    assert MyShear.get_name() == "My Shear"


def test_docstrings_name_every_argument():
    """Those of constructors are read for all classes of both hosts in `tests/parity`."""
    _, *names = inspect.signature(Exact.attribute).parameters
    text = str(inspect.getdoc(Exact.attribute))
    assert [name for name in names if f"{name} :" not in text] == []


def test_shared_parameters_are_filled_in():
    for name in captum_ext.__all__:
        doc = getattr(captum_ext, name).__doc__
        assert not re.search(r"\{\w+\}|\{\{", doc), name


# captum's tools


@every_method
def test_noise_tunnel_refuses_standard_errors(method):
    tunnel = NoiseTunnel(method(network(N_FEATURES, 2, dtype=torch.float32), seed=0))
    x = examples(2, N_FEATURES, dtype=torch.float32)
    given = {"nt_samples": 2, "target": 0, **budget(method)}
    with pytest.raises(InvalidArgumentError, match=r"return_standard_error=True .*NoiseTunnel"):
        tunnel.attribute(x, return_standard_error=True, **given)
    assert tunnel.attribute(x, return_standard_error=False, **given).shape == x.shape


# The caller's state


@pytest.mark.parametrize("method", [*METHODS, partial(OddGP, gradients=True)])
@pytest.mark.parametrize("mode", [nullcontext, torch.no_grad])
@pytest.mark.every_combination
def test_model_inputs_and_generators_are_left_as_found(method, mode):
    net = network(N_FEATURES, activation=torch.nn.ReLU)
    net[0].weight.requires_grad_(False)
    net[2].weight.grad = torch.full_like(net[2].weight, 7.0)
    flags = [parameter.requires_grad for parameter in net.parameters()]
    state = copy.deepcopy(net.state_dict())
    x = examples(2, N_FEATURES).requires_grad_()
    baseline = torch.full((1, N_FEATURES), 0.3, dtype=torch.float64).requires_grad_()
    copies = x.detach().clone(), baseline.detach().clone()
    generators = torch.get_rng_state(), np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002 that is the one
    with mode():
        made = method(net).attribute(x, baselines=baseline, **budget(method))
    assert not made.requires_grad
    assert torch.equal(torch.get_rng_state(), generators[0])
    np.testing.assert_equal(np.random.get_state(legacy=False), generators[1])  # noqa: NPY002
    assert random.getstate() == generators[2]
    assert [parameter.requires_grad for parameter in net.parameters()] == flags
    assert [p.grad is None for p in net.parameters()] == [True, True, False, True]
    assert (net[2].weight.grad == 7).all()
    assert all(torch.equal(state[name], value) for name, value in net.state_dict().items())
    hooks = [(module._forward_hooks, module._backward_hooks) for module in net.modules()]
    assert not any(map(any, hooks)) and not any(module.training for module in net.modules())
    for given, before in zip((x, baseline), copies, strict=True):
        assert given.requires_grad and given.grad is None
        assert torch.equal(given, before)


# What a call reports


@every_random
def test_a_drawn_seed_is_kept(method):
    x, net = examples(2, N_FEATURES), network(N_FEATURES)
    drawn = method(net)
    assert drawn.seed != method(net).seed
    made = drawn.attribute(x, n_samples=100)
    assert drawn.last_estimate.seed == drawn.seed
    assert torch.equal(method(net, seed=drawn.seed).attribute(x, n_samples=100), made)


@every_method
def test_progress_bar_appears_only_when_asked_for(method, capsys):
    attribution = method(plus_one, seed=0)
    attribution.attribute(examples(2, 4))
    assert capsys.readouterr().err == ""
    attribution.attribute(examples(2, 4), show_progress=True)
    shown = capsys.readouterr()
    assert attribution.get_name() in shown.err
    assert "32/32" in shown.err  # two examples of 2^4 coalitions
    assert shown.out == ""

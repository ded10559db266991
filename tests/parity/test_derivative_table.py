"""Which derivatives SHEAR takes of which network, in both hosts."""

import functools
import re
import warnings

import numpy as np
import pytest
import torch

from captum_ext import Shear
from shap_ext import ShearExplainer
from shapley_adapters.errors import DerivativeError, ModelOutputError, ShapleyExtWarning
from tests.helpers.stubborn_networks import CASES, N_FEATURES, NOT_TENSORS, around

BUDGET = 200
built = functools.cache(lambda name: CASES[name].build())


def by_captum(net, x, cooperators, budget=BUDGET):
    attribution = Shear(net, seed=0, cooperators=cooperators)
    made = attribution.attribute(x, n_samples=budget).double().numpy()
    by_output = made.reshape(len(x), -1, N_FEATURES)
    return by_output.transpose(1, 0, 2), attribution.last_estimate


def by_shap(net, x, cooperators, budget=BUDGET):
    X = x.double().numpy() if x.is_floating_point() else x.numpy()
    background = np.zeros((1, N_FEATURES), dtype=X.dtype)
    explainer = ShearExplainer(net, background, seed=0, cooperators=cooperators)
    values = explainer(X, max_evals=budget, silent=True).values
    return np.atleast_3d(values).transpose(2, 0, 1), explainer.last_estimate


HOSTS = {"captum": by_captum, "shap": by_shap}


@pytest.fixture(params=HOSTS)
def explain(request):
    return HOSTS[request.param]


def state_of(net, x):
    """Return all that explaining must leave alone."""
    parameters = [*net.parameters(), *net.buffers()]
    return (
        [tensor.detach().clone() for tensor in parameters],
        [(tensor.requires_grad, tensor.grad) for tensor in parameters],
        [getattr(module, "training", None) for module in net.modules()],
        x.clone(),
        torch.random.get_rng_state(),
        np.random.get_state(legacy=False)["state"]["key"].copy(),  # noqa: NPY002 # the global one is what matters
        torch.is_grad_enabled(),
        torch.backends.cudnn.enabled,
    )


def assert_same(first, second):
    if isinstance(first, (list, tuple)):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            assert_same(one, other)
    elif isinstance(first, (torch.Tensor, np.ndarray)):
        assert (first == second).all()
    else:
        assert first == second


@pytest.mark.parametrize("name", CASES)
def test_auto_takes_what_says_something_and_leaves_all_as_it_was(name, explain):
    case, x = CASES[name], CASES[name].inputs(3)
    net = built(name)
    if name == "lazy":
        net(x)
    before = state_of(net, x)
    values, estimate = explain(net, x, "auto")
    assert estimate.cooperators.tolist() == [case.auto] * 3
    assert np.isfinite(values).all()
    assert (estimate.evaluations <= BUDGET).all()
    assert_same(state_of(net, x), before)


def test_a_lazy_network_is_completed_by_its_first_call(explain):
    _, estimate = explain(CASES["lazy"].build(), CASES["lazy"].inputs(3), "auto")
    assert estimate.cooperators.tolist() == ["hessian"] * 3


@pytest.mark.parametrize("name", CASES)
def test_what_is_asked_for_is_taken_or_refused_with_the_reason(name, explain):
    case, x, net = CASES[name], CASES[name].inputs(3), built(name)
    for way in ("hessian", "gradient"):
        words = getattr(case, way)
        if words and not words.startswith("~"):
            with pytest.raises(DerivativeError, match=f"(?s)cooperators='{way}'.*({words})"):
                explain(net, x, way)
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ShapleyExtWarning)
            _, estimate = explain(net, x, way)
        assert estimate.cooperators.tolist() == [way] * 3
        ours = [str(w.message) for w in caught if issubclass(w.category, ShapleyExtWarning)]
        assert len(ours) == bool(words)
        assert not words or re.search(words[1:], ours[0])


@pytest.mark.parametrize(
    "name",
    ["ReLU", "tanh", "LSTM", "attention", "linear", "no_grad, in part", "embedding", "numpy"],
)
def test_hosts_agree(name):
    """In double precision: else rounding decides between cooperators that are almost as strong."""
    x, net = CASES[name].inputs(3), built(name)
    first, second = (explain(net, x, "auto")[0] for explain in HOSTS.values())
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["no_grad, in part", "looks up a category"])
def test_parts_of_derivatives_are_taken_where_differences_are_too_dear(name, explain):
    # 79 evaluations for differences are more than half of 100.
    with pytest.warns(ShapleyExtWarning, match=r"cooperators='auto'.* 3 rows.*'difference'"):
        _, estimate = explain(built(name), CASES[name].inputs(3), "auto", budget=100)
    assert set(estimate.cooperators) <= {"hessian", "gradient"}
    _, estimate = explain(built(name), CASES[name].inputs(3), "difference", budget=200)
    assert set(estimate.cooperators) == {"difference"}


def test_random_where_nothing_else_fits(explain):
    for name in ("round", "numpy", "embedding"):
        _, estimate = explain(built(name), CASES[name].inputs(3), "auto", budget=100)
        assert estimate.cooperators.tolist() == ["random"] * 3


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", ["tanh", "ReLU", "LSTM", "attention", "numpy", "checkpoint"])
def test_modes_of_the_caller_do_not_matter(name, mode, explain):
    case, net = CASES[name], built(name)
    wanted, _ = explain(net, case.inputs(3), "auto")
    with mode():
        made, estimate = explain(net, case.inputs(3), "auto")
    assert estimate.cooperators.tolist() == [case.auto] * 3
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("name", NOT_TENSORS)
@pytest.mark.parametrize("way", ["auto", "hessian", "random"])
def test_networks_that_return_no_tensor_are_refused_with_what_to_wrap(name, way, explain):
    pick, words = NOT_TENSORS[name]
    net = around(lambda inner, x: pick(inner(x)))()
    with pytest.raises(ModelOutputError, match=words):
        explain(net, CASES["tanh"].inputs(2), way)


@pytest.mark.parametrize("way", ["auto", "gradient", "difference"])
def test_faults_of_the_network_come_up_as_they_are(way, explain):
    net = around(lambda inner, x: inner(x) @ torch.ones(7, 1, dtype=x.dtype))()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
        explain(net, CASES["tanh"].inputs(2), way)
    assert not isinstance(caught.value, DerivativeError)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), MemoryError()])
def test_lack_of_memory_for_derivatives_only(error, explain):
    def forward(inner, x):
        if x.requires_grad:
            raise error
        return inner(x).tanh().sum(dim=1)

    net, x = around(forward)(), CASES["tanh"].inputs(3)
    _, estimate = explain(net, x, "auto")
    assert estimate.cooperators.tolist() == ["difference"] * 3
    with pytest.raises(DerivativeError, match="a single row"):
        explain(net, x, "gradient")


def test_batches_that_do_not_fit_are_halved(explain):
    sizes = []

    def forward(inner, x):
        if x.requires_grad:
            sizes.append(len(x))
            if len(x) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
        return inner(x).tanh().sum(dim=1)

    net, x = around(forward)(), CASES["tanh"].inputs(5)
    made, estimate = explain(net, x, "hessian")
    assert estimate.cooperators.tolist() == ["hessian"] * 5
    assert sizes == [5, 2, 2, 1]
    wanted, _ = explain(around(lambda inner, x: inner(x).tanh().sum(dim=1))(), x, "hessian")
    np.testing.assert_allclose(made, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "message",
    [
        "cudnn RNN backward can only be called in training mode",
        "the derivative for '_cudnn_rnn_backward' is not implemented. Double backwards is not "
        "supported for CuDNN RNNs",
    ],
)
def test_recurrent_layers_that_only_cudnn_refuses(message, explain, monkeypatch):
    class Refusing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.enabled = torch.backends.cudnn.enabled
            return x * 1.0

        @staticmethod
        def backward(ctx, grad):
            if ctx.enabled:
                raise RuntimeError(message)
            return grad

    monkeypatch.setattr(torch.backends.cudnn, "enabled", True)
    net = around(lambda inner, x: Refusing.apply(inner(x)).tanh().sum(dim=1))()
    for way in ("auto", "hessian", "gradient"):
        _, estimate = explain(net, CASES["tanh"].inputs(3), way)
        assert estimate.cooperators.tolist() == [way.replace("auto", "hessian")] * 3
    assert torch.backends.cudnn.enabled

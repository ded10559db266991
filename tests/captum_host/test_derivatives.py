"""SHEAR's cross-contributions from derivatives, through captum's arguments."""

import functools
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from captum_ext import Exact, OddGP, Shear
from captum_ext.games.forward_function_game import ForwardFunctionGame
from captum_ext.inputs.baselines import checked_baselines
from captum_ext.inputs.checks import checked_inputs
from captum_ext.inputs.feature_groups import from_feature_mask
from shapley_adapters.cooperators.derivatives_torch import gradient_scores, hessian_scores
from shapley_adapters.errors import DerivativeError, ShapleyExtWarning
from shapley_adapters.torch_support.array_module import warn_in_training_mode
from tests.captum_host.networks import Recorder, examples, network
from tests.helpers.stubborn_networks import CASES, scripted
from tests.helpers.tolerances import Tolerances

# No warnings in ordinary use.
pytestmark = pytest.mark.filterwarnings("error")

N_FEATURES = 12  # 2^12 coalitions are beyond the default budget of 500
BUDGET = 200
ROUNDING: Tolerances = {"rtol": 1e-10, "atol": 1e-10}


def game_of(forward_func, inputs, baselines=None, feature_mask=None, target=None):
    tensors = checked_inputs(inputs)
    return ForwardFunctionGame(
        forward_func,
        tensors,
        checked_baselines(baselines, tensors),
        from_feature_mask(feature_mask, tensors),
        target,
    )


def run(forward_func, inputs, cooperators="auto", n_samples=BUDGET, **arguments):
    """Return how SHEAR found its cooperators for each example, and its estimate."""
    attribution = Shear(forward_func, seed=0, cooperators=cooperators)
    made = attribution.attribute(inputs, n_samples=n_samples, **arguments)
    parts = made if isinstance(made, tuple) else (made,)
    assert all(part.isfinite().all() for part in parts)
    estimate = attribution.last_estimate
    return estimate.cooperators.tolist(), estimate


# The scores


@pytest.mark.parametrize("take", [hessian_scores, gradient_scores])
@pytest.mark.parametrize("ids", [[[4, 0, 0, 2, 4, 4]], [[4, 0, 0, 2, 4, 4], [2, 2, 0, 4, 0, 2]]])
def test_scores_of_groups_are_those_of_the_shares_that_are_present(ids, take):
    net, x, baseline = network(6), examples(2, 6), examples(2, 6, seed=4)
    found = take(game_of(net, x, baseline, torch.tensor(ids), target=0), np.arange(2))
    for example, own in enumerate(torch.tensor(ids).expand(2, 6)):
        members = torch.stack([own == label for label in (0, 2, 4)]).double()
        moves = members * (x - baseline)[example]  # (M, D)
        shares = game_of(lambda z: net(baseline[[example]] + z @ moves), torch.ones(1, 3).double())  # noqa: B023
        wanted = take(shares, np.arange(1))
        np.testing.assert_allclose(found.values[example], wanted.values[0], **ROUNDING)
        assert found.backward_passes[example] == wanted.backward_passes[0]


@pytest.mark.parametrize("take", [hessian_scores, gradient_scores])
def test_scores_of_chosen_rows_and_small_batches(take, monkeypatch):
    net, x = network(4), examples(5, 4)
    game = game_of(net, x, target=0)
    everything = take(game, np.arange(5)).values
    some = take(game, np.array([4, 1])).values
    np.testing.assert_allclose(some, everything[[4, 1]], **ROUNDING)
    monkeypatch.setattr(game, "evaluations_per_batch", 1)
    one_by_one = take(game, np.arange(5)).values
    np.testing.assert_allclose(one_by_one, everything, **ROUNDING)


def test_scores_decide_whom_shear_enumerates():
    # Pairs multiply, nothing else interacts: with one cooperator each, SHEAR is exact if it finds
    # the partners, and not otherwise.
    x = examples(2, N_FEATURES)

    def pairs(z):
        return (torch.tanh(z[:, ::2]) * z[:, 1::2] ** 3).sum(dim=1)

    wanted = (pairs_of_example(x) / 2).repeat_interleave(2, dim=1)
    for cooperators in ("hessian", "gradient", "difference", "auto"):
        budget = 4 * N_FEATURES + 2 + (78 if cooperators == "difference" else 0)
        made = Shear(pairs, seed=0, cooperators=cooperators, efficient=False).attribute(
            x, n_samples=budget
        )
        torch.testing.assert_close(made, wanted, rtol=0, atol=1e-10)
    wrong = np.roll(np.eye(N_FEATURES), 5, axis=0)
    blind = Shear(pairs, seed=0, cooperators=wrong + wrong.T, efficient=False, antithetic=False)
    made = blind.attribute(x, n_samples=4 * N_FEATURES + 2)
    assert not torch.allclose(made, wanted, atol=1e-3)


def pairs_of_example(x):
    return torch.tanh(x[:, ::2]) * x[:, 1::2] ** 3


# Networks by themselves are in `tests/parity/test_derivative_table.py`; all of them are compared
# with derivatives by hand in `tests/shap_host/test_derivatives.py`.
IMPOSSIBLE = {
    "a bool among several": (
        lambda a, b: a.prod(dim=1) * b.double().sum(dim=1),
        (examples(2, N_FEATURES), torch.ones(2, 1, dtype=torch.bool)),
        r"inputs\[1\].*bool",
    ),
    "NaN": (
        lambda z: torch.nan_to_num(z).prod(dim=1) + torch.tanh(z.nan_to_num()).sum(dim=1),
        examples(2, N_FEATURES).index_fill(1, torch.tensor([3]), float("nan")),
        "not finite",
    ),
    "one value for the batch": (
        lambda z: torch.tanh(z).prod(),
        examples(2, N_FEATURES),
        "one value for the (whole )?batch",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_derivatives_are_refused_with_the_reason(name):
    forward, inputs, reason = IMPOSSIBLE[name]
    for way in ("hessian", "gradient"):
        with pytest.raises(DerivativeError, match=reason) as caught:
            run(forward, inputs, way)
        assert isinstance(caught.value, RuntimeError)


# Cost


def test_no_derivatives_where_all_coalitions_are_evaluated():
    recorder = Recorder(network(4))
    sources, estimate = run(recorder, examples(2, 4))
    assert sources == ["", ""]
    assert (estimate.backward_passes == 0).all()
    assert not any(call[0].requires_grad for call in recorder.calls)


@pytest.mark.parametrize("activation", [nn.Tanh, nn.ReLU], ids=str)
def test_evaluations_take_no_derivatives(activation):
    grad_modes, net = [], network(N_FEATURES, activation=activation)

    def model(z):
        grad_modes.append(torch.is_grad_enabled())
        return net(z)

    recorder = Recorder(model)
    run(recorder, examples(2, N_FEATURES), perturbations_per_eval=1)
    with_gradients = [call[0].requires_grad for call in recorder.calls]
    assert with_gradients == grad_modes
    # One coalition of both examples in each pass: all present, then without each feature in turn.
    assert sum(with_gradients) == (1 if activation is nn.Tanh else 1 + 1 + N_FEATURES)


# The same for networks of all kinds


def test_custom_functions_with_right_second_derivatives_pass_the_check():
    x = examples(50, N_FEATURES)
    net = CASES["custom function"].build()
    found = hessian_scores(game_of(net, x), np.arange(50))
    assert not found.are_partial.any()
    # One backward pass more, to see how the slopes change.
    assert found.backward_passes.tolist() == [1 + N_FEATURES + 1] * 50


def test_hidden_parts_are_found_in_almost_all_examples():
    x = examples(200, N_FEATURES)
    for name, case in CASES.items():
        if "in part" not in name:
            continue
        take = gradient_scores if case.auto == "difference" else hessian_scores
        found = take(game_of(case.build(), x), np.arange(200))
        # Only where what is hidden cancels when all features leave together does it stay hidden.
        assert found.are_partial.mean() > 0.9, name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh])
def test_no_parts_are_missed_in_networks_that_hide_none(dtype, activation):
    net, x = network(N_FEATURES, activation=activation, dtype=dtype), examples(500, N_FEATURES)
    found = gradient_scores(game_of(net, x.to(dtype)), np.arange(500))
    assert found.are_partial.mean() <= 0.01  # kinks within the step look the same


# The caller's state


def in_training(layer):
    return nn.Sequential(nn.Sequential(layer, nn.Linear(N_FEATURES, 1))).double().train()


@pytest.mark.parametrize(
    ("layer", "method"),
    [(nn.Dropout(0.5), Exact), (nn.Dropout1d(0.5), Shear), (nn.BatchNorm1d(N_FEATURES), OddGP)],
    ids=str,
)
def test_train_mode_warns_once_and_stays(layer, method):
    net, words = in_training(layer), f"training mode.*{type(layer).__name__}.*eval"
    with pytest.warns(ShapleyExtWarning, match=words) as caught:
        method(net, seed=0).attribute(
            examples(4, N_FEATURES),
            feature_mask=torch.arange(N_FEATURES) // 3,
            perturbations_per_eval=2,
        )
    assert [warning.filename for warning in caught] == [__file__]  # not a line inside captum
    assert all(module.training for module in net.modules())


def test_train_mode_is_seen_behind_methods_partial_functions_and_scripts():
    net = in_training(nn.Dropout(0.5))
    partial = functools.partial(functools.partial(net), *())
    for forward in (net.forward, partial, scripted(net)):
        with pytest.warns(ShapleyExtWarning, match="training mode.*Dropout"):
            run(forward, examples(4, N_FEATURES), "random")


class DropPath(nn.Module):
    """As in timm."""

    def __init__(self, drop_prob):
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x):
        return x


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        (nn.RReLU(), "RReLU"),
        (nn.AlphaDropout(0.1), "AlphaDropout"),
        (nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), "SpectralNorm"),
        (nn.InstanceNorm1d(4, track_running_stats=True), "InstanceNorm1d"),
        (DropPath(0.1), "DropPath"),
        (nn.LSTM(4, 4, 2, dropout=0.1), "LSTM"),
        (nn.MultiheadAttention(4, 2, dropout=0.5), "MultiheadAttention"),
        (nn.InstanceNorm1d(4), ""),
        (nn.Dropout(0.0), ""),
        (DropPath(0.0), ""),
        (nn.LSTM(4, 4, 2), ""),
        (nn.LayerNorm(4), ""),
        (nn.ReLU(), ""),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_layers_that_change_in_training(layer, name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_in_training_mode(nn.Sequential(layer).train())
    assert len(caught) == bool(name)
    assert all(name in str(warning.message) for warning in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_in_training_mode(nn.Sequential(layer).eval())

"""Attributions by values and gradients of networks: exactness, cost, bars, and what is refused."""

import functools
from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock

import joblib
import numpy as np
import pytest
import torch
from torch import nn

from captum_ext import BaselineDistribution, Best, Exact, OddGP
from shapley_adapters.errors import (
    BudgetError,
    DerivativeError,
    InvalidArgumentError,
    NonFiniteValueError,
)

N = 20


def network(kind=nn.Tanh, n_outputs=1):
    torch.manual_seed(0)
    layers = [nn.Linear(N, 24), kind(), nn.Linear(24, 24), kind(), nn.Linear(24, n_outputs)]
    return nn.Sequential(*layers).double()


def examples(n=2, n_features=N):
    return torch.randn(n, n_features, generator=torch.Generator().manual_seed(1)).double()


def by_pairs(x):
    """Return a game of single features and pairs, whose multilinear extension it is."""
    return (x[:, :-1] * x[:, 1:]).sum(dim=1) + x.sum(dim=1)


def test_groups_of_several_inputs_arguments_and_targets_are_those_of_all_coalitions():
    """Grouped by a mask across two inputs, with an argument and a target of each example."""
    first, second = examples(2, 12), examples(2, 8).reshape(2, 4, 2)
    masks = torch.arange(12)[None] % 7, torch.arange(8).reshape(1, 4, 2) % 3 + 5
    weights = torch.tensor([[1.0, 2.0], [3.0, -1.0]]).double()

    def forward(one, two, of_example):
        pairs = by_pairs(one) + of_example[:, 0] * two.sum(dim=(1, 2)) * one[:, 0]
        return torch.stack([pairs, of_example[:, 1] * pairs], dim=1)

    arguments = {
        "inputs": (first, second),
        "baselines": (first.flip(0), 0.5),
        "target": torch.tensor([0, 1]),
        "additional_forward_args": weights,
        "feature_mask": masks,
    }
    expected = Exact(forward).attribute(**arguments)
    found = OddGP(forward, gradients=True, seed=0).attribute(**arguments, n_samples=10)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("index", ["shapley", "banzhaf", "shapley_taylor"])
def test_pairs_by_gradients_err_less_than_by_values_alone_and_bars_hold(index):
    net, x = network(nn.GELU), examples(3)
    found = {}
    for gradients, n_samples in ((True, 100), (False, 100), (True, 10), (False, 12000)):
        method = OddGP(net, gradients=gradients, seed=0)
        method.interactions(x, target=0, index=index, n_samples=n_samples)
        found[gradients, n_samples] = method.last_estimate
    truth = found.pop((False, 12000)).interactions.values
    of_ends = found.pop((True, 10)).interactions  # without any other values
    assert (np.abs(of_ends.values - truth) <= 4 * of_ends.standard_errors).mean() > 0.8
    by_gradients, by_values = (
        np.abs(one.interactions.values - truth).sum() for one in found.values()
    )
    assert by_gradients < 0.7 * by_values
    assert found[True, 100].backward_passes.tolist() == [27, 27, 27]
    interactions = found[True, 100].interactions
    widths = 2.5 * interactions.standard_errors
    assert (np.abs(interactions.values - truth) <= widths).mean() > 0.85


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_pairs_by_gradients_have_the_scale_of_the_game(scale):
    x = examples(2)
    method = OddGP(lambda rows: scale * by_pairs(rows), gradients=True, seed=0)
    found = method.interactions(x, n_samples=100)
    expected = torch.diag_embed(x[:, :-1] * x[:, 1:] / 2, 1)
    expected = scale * (expected + expected.mT)
    off_diagonal = found - torch.diag_embed(found.diagonal(dim1=1, dim2=2))
    torch.testing.assert_close(off_diagonal, expected, rtol=0.1, atol=0.1 * scale)


def test_bars_of_games_of_pairs_hold_where_few_gradients_tell_them():
    held = []
    for seed in range(5):
        torch.manual_seed(seed)
        x, weights = torch.randn(1, 10).double(), torch.randn(10, 10).double().triu(1)

        def game(rows, weights=weights):
            return ((rows @ weights) * rows).sum(dim=1) + rows.sum(dim=1)

        truth = (weights * x * x.mT)[np.triu_indices(10, 1)].numpy()
        for n_samples in (20, 30, 45):
            method = OddGP(game, gradients=True, seed=seed)
            method.interactions(x, n_samples=n_samples)
            found = method.last_estimate.interactions
            errors = np.abs(found.values - truth[None, :, None])
            held.append((errors <= 4 * found.standard_errors).mean())
    assert np.mean(held) > 0.75


class Counted:
    """Counts the rows of passes with and without gradients."""

    def __init__(self, model):
        self.model, self.with_gradients, self.without = model, 0, 0

    def __call__(self, x):
        if torch.is_grad_enabled():
            self.with_gradients += len(x)
        else:
            self.without += len(x)
        return self.model(x)


def test_gradients_of_several_baselines_are_means():
    """Weighted pairs of features are exact, and each evaluation is one of all baselines."""
    x, baselines = examples(2, 12), BaselineDistribution(examples(5, 12))
    expected = Exact(by_pairs).attribute(x, baselines=baselines)
    counted = Counted(by_pairs)
    method = OddGP(counted, gradients=True, seed=0)
    found = method.attribute(x, baselines=baselines, n_samples=60)
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-7)
    estimate = method.last_estimate
    assert (estimate.model_rows == 5 * (estimate.evaluations - 2 * estimate.backward_passes)).all()
    assert counted.with_gradients == 5 * estimate.backward_passes.sum()


@pytest.mark.parametrize("kind", [nn.Tanh, nn.ReLU, nn.GELU])
def test_networks_err_less_than_by_values_alone_and_bars_hold(kind):
    net, x = network(kind), examples(4)
    truth = OddGP(net, seed=1).attribute(x, target=0, n_samples=3000)
    errors, covered = {}, []
    for gradients in (True, False):
        for n_samples in (20, 60, 160):
            method = OddGP(net, gradients=gradients, seed=0)
            found = method.attribute(x, target=0, n_samples=n_samples)
            error = (found - truth).abs().sum() / truth.abs().sum()
            errors.setdefault(gradients, []).append(error)
            if gradients:
                low, high = method.last_estimate.interval()
                true = truth.numpy()[:, :, None]
                covered.append(((low <= true) & (true <= high)).mean())
            torch.testing.assert_close(found.sum(dim=1), (net(x) - net(0 * x))[:, 0].detach())
    ratios = torch.stack(errors[True]) / torch.stack(errors[False])
    assert ratios[0] < 0.5
    assert ratios.max() < 1.2
    assert np.mean(covered) > 0.85


def test_numbers_repeat_and_depend_neither_on_batches_nor_on_other_rows():
    net, x = network(), examples(4)
    x[1, 3:9] = 0  # fewer players
    x[3, 2:] = 0  # all coalitions

    def found(rows, seed=0, **options):
        method = OddGP(net, gradients=True, seed=seed)
        return method.attribute(rows, n_samples=70, **options)

    first = found(x)
    assert (found(x) == first).all()
    assert (found(x, seed=1) != first).any()
    close = functools.partial(torch.testing.assert_close, rtol=1e-6, atol=1e-7)
    close(found(x, perturbations_per_eval=1), first)
    close(found(x.flip(0)).flip(0), first)
    close(found(x[1:2]), first[1:2])
    close(found(x[3:]), Exact(net).attribute(x[3:]))


NET = network()
GIVEN = OddGP(NET, gradients=True, seed=0)
MODELS = {
    "detached": (lambda x: NET(x.detach())[:, 0], "depend differentiably"),
    "rounded": (lambda x: NET(x.round())[:, 0], "zero everywhere"),
    "steep at zero": (lambda x: x.abs().sqrt().sum(dim=1), "not finite.*infinitely steep"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_without_gradients_are_named_or_explained_by_values(name):
    model, reason = MODELS[name]
    counted, x = Counted(model), examples(2)
    with pytest.raises(DerivativeError, match=reason):
        OddGP(counted, gradients=True, seed=0).attribute(x, n_samples=100)
    assert counted.with_gradients <= 4  # those of the ends
    assert not counted.without
    method, alone = (OddGP(model, gradients=how, seed=0) for how in ("auto", False))
    spent = 4 * (name in ("rounded", "steep at zero"))  # two of six are the values at the ends
    found = method.attribute(x, n_samples=100)
    of_values = alone.attribute(x, n_samples=100 - spent)
    torch.testing.assert_close(found, of_values, rtol=1e-9, atol=1e-9)
    assert "values alone" in method.last_estimate.choice
    assert (method.last_estimate.backward_passes == spent / 2).all()  # those of the ends
    assert (method.last_estimate.evaluations <= 100).all()


METHODS: dict[str, Any] = {
    "unbiased": {"unbiased": True},
    "weights": {"weights": "equal"},
    "cooperators": {"cooperators": "difference"},
    "graph": {"graph": "line"},
}


@pytest.mark.parametrize("argument", [*METHODS, "repeats"])
def test_calls_that_need_values_alone_are_named(argument):
    options, counted = METHODS.get(argument, {}), Counted(NET)
    method = OddGP(counted, gradients=True, seed=0, **options)
    of_call: Any = {"n_samples": 300, "repeats": 1 + (argument == "repeats")}
    with pytest.raises(InvalidArgumentError, match=argument):
        method.attribute(examples(2), **of_call)
    assert not counted.with_gradients + counted.without
    auto, alone = (OddGP(NET, gradients=how, seed=0, **options) for how in ("auto", False))
    found, expected = (one.attribute(examples(2), **of_call) for one in (auto, alone))
    assert torch.equal(found, expected)


def several(x):
    """Return three games of pairs."""
    return torch.stack([by_pairs(x), 2 * by_pairs(x.flip(1)), by_pairs(3 - x)], dim=1)


def test_several_outputs_are_those_of_all_coalitions_and_cost_a_backward_pass_each(monkeypatch):
    x, counted = examples(3, 12), Counted(several)
    expected = Exact(several).attribute(x)
    method = OddGP(counted, gradients=True, seed=0)
    torch.testing.assert_close(method.attribute(x, n_samples=22), expected, rtol=1e-7, atol=1e-7)
    estimate = method.last_estimate
    assert counted.with_gradients == 9
    assert (estimate.backward_passes == 9).all()
    assert (estimate.evaluations == 21).all()
    with pytest.raises(BudgetError, match="at least 22 evaluations for gradients"):
        method.attribute(x, n_samples=21)
    grad = Mock(wraps=torch.autograd.grad)
    monkeypatch.setattr(torch.autograd, "grad", grad)
    auto = OddGP(several, gradients="auto", seed=0)
    auto.attribute(x, n_samples=60)
    assert "each of 3 outputs needs a backward pass" in auto.last_estimate.choice
    grad.assert_not_called()


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_tolerance_ends_rows_with_gradients_and_all_coalitions_are_exact(n_outputs):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, n_outputs)).double()
    x = examples(4, 12)
    x[3, 2:] = 0  # all coalitions from the start
    counted, expected = Counted(net), Exact(net).attribute(x)
    method = OddGP(counted, gradients=True, seed=0)
    found = method.attribute(x, tolerance=0.02)
    estimate = method.last_estimate
    assert (estimate.standard_errors <= 0.02).all()
    assert (found - expected).abs().max() < 0.06
    assert (estimate.evaluations[:3] < 400).all()
    assert estimate.backward_passes.astype(bool).tolist() == [True, True, True, False]
    assert counted.with_gradients == estimate.backward_passes.sum() / n_outputs
    cost = (1 + 2 * n_outputs) * counted.with_gradients + counted.without
    assert cost == estimate.evaluations.sum() + estimate.check_evaluations
    found = method.attribute(x, tolerance=1e-12, n_samples=5000)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    estimate = method.last_estimate
    assert estimate.enumerated.all()
    assert (estimate.evaluations[:3] > 4096).all()
    assert (estimate.evaluations <= 5000).all()


@pytest.mark.parametrize("n_samples", [None, 300, 270, 260, 200, 40])
def test_the_budget_of_a_call_with_a_tolerance_holds_passes_beside_all_coalitions(n_samples):
    x, budget = examples(2, 8), {"tolerance": 1e-9, "n_samples": n_samples}
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2)).double()
    method = OddGP(net, gradients=True, seed=0)
    most = method.budget_of(x, **budget)
    with nullcontext() if n_samples in (None, 300, 270) else pytest.warns(match="the tolerance"):
        method.attribute(x, **budget)
    found = method.last_estimate
    assert (found.evaluations <= most.evaluations).all()
    assert (found.model_rows <= most.model_rows).all()
    assert (most.evaluations <= (n_samples or 384)).all()
    if n_samples == 260:  # which does not pay for all coalitions beside passes
        assert (found.evaluations > 250).all()


def test_time_is_kept_and_its_budget_repeats_the_numbers():
    method = OddGP(NET, gradients=True, seed=0)
    found = method.attribute(examples(2), max_seconds=0.5)
    estimate = method.last_estimate
    assert estimate.backward_passes.all()
    assert "fit into max_seconds" in estimate.choice
    again = method.attribute(examples(2), n_samples=estimate.budget)
    torch.testing.assert_close(again, found, rtol=1e-6, atol=1e-8)


def test_the_least_budget_and_the_time_of_a_call_are_those_of_all_outputs():
    x, counted = examples(2, 12), Counted(several)
    method = OddGP(counted, gradients=True, seed=0)
    with pytest.raises(BudgetError, match="n_samples=15 is too small: .* 22 evaluations"):
        method.attribute(x, n_samples=15, max_seconds=20)
    counted.with_gradients = counted.without = 0
    method.attribute(x, n_samples=30, max_seconds=20)
    found = method.last_estimate
    assert (found.evaluations <= 30).all()
    spent = found.evaluations.sum() + found.timing_evaluations + found.check_evaluations
    assert spent == 7 * counted.with_gradients + counted.without


def test_rows_with_draws_of_their_own_and_workers_give_the_same_numbers():
    x = examples(4)
    x[1, 3:9] = 0
    options: Any = {"gradients": True, "seed": 0, "independent_rows": True}
    method = OddGP(NET, **options)
    found = method.attribute(x, n_samples=60)
    torch.testing.assert_close(method.attribute(x[2:], n_samples=60), found[2:])
    of_all = OddGP(NET, gradients=True, seed=0).attribute(x, n_samples=60)
    assert (of_all != found)[:, 10:].all()
    torch.testing.assert_close(of_all, found, rtol=0.2, atol=0.05)
    with joblib.parallel_config(backend="threading"):
        shared = OddGP(NET, n_jobs=2, **options).attribute(x, n_samples=60)
    torch.testing.assert_close(shared, found)


EMBEDDING = nn.Embedding(20, 1)


def otherwise(x):
    """Return what it does not where gradients are on."""
    return NET(x)[:, 0] * (1 + torch.is_grad_enabled())


def shares(x):
    return (x[:, :9] / x.sum(dim=1, keepdim=True)).sum(dim=1)


def of_two(model, how):
    """Return a call of a method for two rows."""
    return lambda: OddGP(model, gradients=how, seed=0).attribute(examples(2), n_samples=60)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        *(
            (lambda how=how: OddGP(NET, gradients=how), InvalidArgumentError, "gradients must be")
            for how in ("yes", None, 2)
        ),
        (lambda: GIVEN.attribute(examples(2), n_samples=9), BudgetError, "at least 10"),
        (lambda: GIVEN.semivalues(examples(2), n_samples=99), InvalidArgumentError, "semivalues"),
        (lambda: GIVEN.set_interactions(examples(2)), InvalidArgumentError, "interactions of sets"),
        (
            lambda: OddGP(EMBEDDING, gradients=True).attribute(torch.arange(20)[None]),
            DerivativeError,
            "whole numbers.*EmbeddingAttribution",
        ),
        (of_two(otherwise, True), DerivativeError, "otherwise with gradients"),
        (of_two(shares, True), DerivativeError, "values of row 0 are not finite"),
        (of_two(shares, "auto"), NonFiniteValueError, r"row 0.*players \[\]"),
    ],
)
def test_what_has_no_gradients_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_gradients_are_taken_by_default_and_by_best_where_their_fit_takes_little_time(monkeypatch):
    x = examples(2)
    asked = OddGP(NET, gradients=True, seed=0).attribute(x, n_samples=60)
    assert torch.equal(OddGP(NET, seed=0).attribute(x, n_samples=60), asked)
    best, alone = Best(NET, seed=0), OddGP(NET, gradients=False, seed=0)
    with monkeypatch.context() as patient:  # as of a model that takes longer
        patient.setattr("shapley_adapters.pipeline.estimate._OWN_SECONDS", 0.1)
        assert torch.equal(best.attribute(x, n_samples=60), asked)
    for n_samples in (7 * N, 9):  # too many, and too few
        with nullcontext() if n_samples > N else pytest.warns(match="is little"):
            found, expected = (
                one.attribute(x, n_samples=n_samples) for one in (OddGP(NET, seed=0), alone)
            )
        assert torch.equal(found, expected)


def test_rows_whose_further_gradients_are_not_finite_leave_the_others_as_they_are():
    x = examples(2)
    point = x[1] / 2  # where the slope of the distance is none
    counted = Counted(lambda z: NET(z)[:, 0] + ((z - point) ** 2).sum(dim=1).sqrt() / 10)
    method = OddGP(counted, seed=0)
    found, estimate = method.attribute(x, n_samples=60), method.last_estimate
    assert estimate.backward_passes.tolist() == [3, 3]
    spent = estimate.evaluations.sum() + estimate.check_evaluations
    assert 3 * counted.with_gradients + counted.without == spent
    torch.testing.assert_close(found[:1], method.attribute(x[:1], n_samples=60))
    assert "not finite (rows: 1)" in estimate.choice


@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("where", ["inputs", "baselines"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_values_are_those_of_missing_or_infinite_inputs(number, where, n_outputs):
    """Nothing lies between these and others, but both ends have values."""
    net, x, baselines = network(n_outputs=n_outputs), examples(2), torch.zeros(2, N).double()
    (x if where == "inputs" else baselines)[1, 3] = number

    def filled(rows):
        return net(rows.nan_to_num(3, 4, -4))

    method = OddGP(filled, seed=0)
    found = method.attribute(x, baselines, n_samples=60)
    changes = (filled(x) - filled(baselines)).detach()
    torch.testing.assert_close(found.sum(dim=-1).reshape(changes.shape), changes)
    if n_outputs == 1:
        assert method.last_estimate.backward_passes.tolist() == [3, 2]


class Categories(nn.Module):
    """Reads the first column as the number of a category."""

    def __init__(self):
        super().__init__()
        self.embedding, self.rest = nn.Embedding(5, 2), nn.Linear(13, 1)

    def forward(self, x):
        of_category = self.embedding(x[:, 0].long()).prod(dim=1) * 3
        return torch.tanh(self.rest(x[:, 1:].float())[:, 0] + of_category)


def test_default_gradients_are_not_taken_where_they_do_not_say_all():
    torch.manual_seed(1)
    x = examples(3, 14)
    x[:, 0] = torch.tensor([1, 2, 3])
    net = Categories()
    alone = OddGP(net, gradients=False, seed=0).attribute(x, n_samples=56)
    method = OddGP(net, seed=0)
    torch.testing.assert_close(method.attribute(x, n_samples=60), alone)
    assert "zero for some feature" in method.last_estimate.choice
    with pytest.raises(DerivativeError, match=r"features of row 0 \(1\) have no gradients"):
        OddGP(net, gradients=True).attribute(x, n_samples=60)
    arguments: Any = {"baselines": BaselineDistribution(examples(4, 14).abs()), "n_samples": 60}
    method.attribute(x, max_model_rows=100, **arguments)
    assert not method.last_estimate.backward_passes.any()
    method = OddGP(nn.Sequential(NET, nn.Dropout(0.1)), seed=0)
    with pytest.warns(match="training mode"):
        method.attribute(examples(2), n_samples=60)
    assert not method.last_estimate.backward_passes.any()


def test_features_that_a_network_leaves_out_keep_gradients_but_for_two_evaluations():
    def within(x):
        return NET(x[:, 1:-1])[:, 0]

    method, x = OddGP(within, seed=0), examples(3, N + 2)
    found = method.attribute(x, n_samples=80)
    assert (method.last_estimate.backward_passes > 2).all()
    assert (method.last_estimate.evaluations <= 80).all()
    torch.testing.assert_close(found[:, [0, -1]], 0 * found[:, :2], atol=2e-3, rtol=0)
    with pytest.warns(match="is little"):
        method.attribute(x, n_samples=11)  # pays for passes, but not for looking
    assert "zero for some feature" in method.last_estimate.choice


def test_compiled_functions_have_gradients():
    """Their memory is given to the backward pass, after which there must not be another."""

    def function(x):
        return torch.tanh(x).sum(dim=1) ** 2

    compiled = torch.compile(function, backend="aot_eager", dynamic=True)
    methods = OddGP(compiled, seed=0), OddGP(function, seed=0)
    found, expected = (one.attribute(examples(2, 6), n_samples=24) for one in methods)
    torch.testing.assert_close(found, expected)
    assert methods[0].last_estimate.backward_passes.tolist() == [3, 3]


@pytest.mark.parametrize("kind", [OddGP, Best])
def test_what_keeps_gradients_away_is_said_where_they_might_have_been(kind):
    def choice(model, x, **options):
        method = kind(model, seed=0)
        method.attribute(x, **options)
        return method.last_estimate.choice

    tokens = torch.arange(1, 11)[None]
    assert "values alone: inputs[0] holds whole numbers" in choice(EMBEDDING, tokens, n_samples=40)
    dropped = nn.Sequential(NET, nn.Dropout(0.1))
    with pytest.warns(match="training mode"):
        assert "values alone: the model is in training" in choice(dropped, examples(), n_samples=60)
    assert "values alone" not in choice(EMBEDDING, tokens, n_samples=80)  # enough for values
    assert "values alone" not in choice(EMBEDDING, tokens)  # all coalitions

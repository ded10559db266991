"""Aggregates as attributions of captum: metrics, visualisers, tuples, types, wrong calls."""

from functools import partial
from typing import Any

import captum.attr
import numpy as np
import pytest
import torch

import captum_ext
from captum_ext import AVA, Centroid, Convex, Exact, LowComplexity, OddGP, Shear
from shapley_adapters import aggregation as core
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError
from tests.captum_host.networks import examples, network
from tests.helpers.tolerances import Tolerances

NET, THREE = network(4), network(4, 3)
X, DATA = examples(3, 4), examples(20, 4, seed=2)
EXACT: Tolerances = {"rtol": 0, "atol": 1e-11}


def one(inputs):
    """Return the one output without an axis of its own."""
    return NET(inputs)[:, 0]


def doubled(inputs):
    return 2 * inputs


def close(found, expected):
    torch.testing.assert_close(found, torch.as_tensor(expected), **EXACT)


# --- AVA ---


def test_ava_averages_the_values_of_neighbours():
    """Each example's target is that of its neighbours, too."""
    target = [2, 0, 2]
    found = AVA(Exact(THREE), DATA, n_neighbors=3).attribute(X, target=target)
    for row in range(3):
        away = np.linalg.norm(DATA - X[row], axis=1)
        nearest = np.argsort(away)[:3]
        weights = torch.as_tensor(1 / away[nearest] / (1 / away[nearest]).sum())
        close(found[row], weights @ Exact(THREE).attribute(DATA[nearest], target=target[row]))


@pytest.mark.parametrize("target", [1, (1,), torch.tensor([1]), [1, 1, 1], torch.tensor([1] * 3)])
def test_targets_in_all_forms(target):
    ava = AVA(Exact(THREE), DATA, n_neighbors=4)
    torch.testing.assert_close(
        ava.attribute(X, target=target), ava.attribute(X, target=[1] * 3), **EXACT
    )


def test_neighbours_are_attributed_once_for_each_target_and_model():
    net, asked = network(4, 3), []

    def attribute(inputs, target=None, baselines=None, show_progress=False):
        asked.append((len(inputs), target))
        return Exact(net).attribute(inputs, baselines=baselines, target=target)

    ava = AVA(attribute, DATA, n_neighbors=20)
    ava.attribute(X, target=[0, 1, 0])
    ava.attribute(X, target=1)
    assert asked == [(20, 0), (20, 1)]
    ava.attribute(X, target=1, baselines=torch.ones(1, 4, dtype=torch.float64))
    ava.attribute(X, target=1, baselines=torch.ones(1, 4, dtype=torch.float64))
    assert len(asked) == 3
    ava.attribute(X, target=1, baselines=torch.zeros(1, 4, dtype=torch.float64))
    assert len(asked) == 4
    ava.attribute(X, target=1, baselines=torch.zeros(1, 4, dtype=torch.float64), show_progress=True)
    assert len(asked) == 4
    direct = AVA(Exact(net), DATA, n_neighbors=20)
    before = direct.attribute(X, target=1)
    with torch.no_grad():
        for parameter in net[2].parameters():
            parameter.mul_(3)
    torch.testing.assert_close(direct.attribute(X, target=1), 3 * before, **EXACT)


def test_embeddings_choose_the_neighbours():
    found = AVA(doubled, DATA, n_neighbors=1, embed=lambda t: t[:, :1]).attribute(X)
    nearest = (X[:, :1] - DATA[:, 0]).abs().argmin(dim=1)
    torch.testing.assert_close(found, 2 * DATA[nearest], **EXACT)


# --- aggregates of methods ---


def members():
    return [
        Exact(THREE),
        captum.attr.IntegratedGradients(THREE),
        captum.attr.NoiseTunnel(captum.attr.Saliency(THREE)),
        captum.attr.ShapleyValues(THREE),
    ]


KINDS = {Centroid: core.Centroid, Convex: core.Convex, LowComplexity: core.LowComplexity}


@pytest.mark.parametrize("kind", KINDS)
def test_methods_of_captum_and_ours_are_combined(kind):
    method = kind(members())
    torch.manual_seed(0)
    found = method.attribute(X, target=1, baselines=0, n_samples=None, abs=False)
    torch.manual_seed(0)
    options: list[dict[str, Any]] = [{}, {}, {"abs": False}, {}]
    candidates = [
        member.attribute(X, target=1, **of_member).detach().double().numpy()
        for member, of_member in zip(members(), options, strict=True)
    ]
    close(found, KINDS[kind]()(candidates).values)
    assert isinstance(method, captum.attr.Attribution)


def test_weights_are_learned():
    method = Convex([doubled, lambda x: -x])
    learned = method.learn(X, lambda g: ((g - 0.5 * X.numpy()) ** 2).sum(1))
    np.testing.assert_allclose(learned.weights, [0.5, 0.5], atol=1e-4)
    close(method.attribute(X), core.Convex(learned.weights)([2 * X, -X]).values)


def test_weights_are_learned_for_sensitivity():
    classes = THREE(DATA).argmax(1)
    by_class = Convex([Exact(THREE), captum.attr.InputXGradient(THREE)])
    near = Neighbourhood(0.3)
    learned = by_class.learn(DATA, "sensitivity", neighbourhood=near, target=classes, seed=3)
    found = captum_ext.criteria.sensitivity(
        by_class.attribute, DATA, near, forward_func=THREE, target=classes, seed=3
    )
    np.testing.assert_allclose(found.average, learned.loss, atol=1e-6)
    assert (learned.loss.mean() <= learned.candidate_losses.mean(1) + 1e-12).all()


def test_several_outputs_are_combined_one_by_one():
    lowered = LowComplexity([Exact(THREE), lambda x: torch.stack([x, -x, 2 * x], 1)])
    found = lowered.attribute(X)
    assert found.shape == (3, 3, 4)
    for output in range(3):
        methods = [
            lambda x, o=output: Exact(THREE).attribute(x, target=o),
            lambda x, o=output: torch.stack([x, -x, 2 * x], 1)[:, o],
        ]
        torch.testing.assert_close(found[:, output], LowComplexity(methods).attribute(X), **EXACT)


@pytest.mark.parametrize("kind", [int, np.int64])
def test_the_budget_is_shared(kind):
    calls = []

    def counted(x):
        calls.append(len(x))
        return (x.sum(1) ** 2).sin()

    x = examples(1, 12)
    method = Centroid([OddGP(counted, seed=0), Shear(counted, seed=0, cooperators="random")])
    method.attribute(x, n_samples=kind(200))
    assert 150 < sum(calls) <= 1.05 * 200  # the rest looks for random answers
    with pytest.raises(BudgetError, match="which 2 share"):
        Centroid(method.attribution_methods[::-1]).attribute(x, n_samples=20)
    with pytest.raises(BudgetError, match="at least 2"):
        method.attribute(x, n_samples=kind(1))


def test_orders_are_no_share_of_a_budget_of_evaluations():
    sampling = captum.attr.ShapleyValueSampling(lambda x: x.sum(1))
    method = Centroid([OddGP(lambda x: x.sum(1), seed=0), sampling])
    with pytest.raises(InvalidArgumentError, match="n_samples=40 is a number of evaluations"):
        method.attribute(examples(1, 12), n_samples=40)


# --- combining what is there ---


class Explained:
    """What matters of an Explanation, without shap."""

    def __init__(self, values):
        self.values = values


def test_tensors_and_explanations_of_the_same_rows_combine():
    found = captum_ext.combine(
        [X.float(), Explained(3 * X.numpy()), 5 * X.numpy()], core.Centroid("l1")
    )
    torch.testing.assert_close(found, 3 * X.float())
    pair = (X[:, :1], X[:, 1:])
    summed = captum_ext.combine([pair, (3 * pair[0], 3 * pair[1])], core.Convex())
    torch.testing.assert_close(summed[1], 2 * X[:, 1:])


# --- wrong calls ---


VALUE, TYPE = InvalidArgumentError, InvalidArgumentTypeError
SUMS = partial(torch.sum, dim=0, keepdim=True)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Centroid([]), VALUE, "at least one"),
        (lambda: Centroid(Exact(NET)), TYPE, "a list"),
        (lambda: Centroid([Exact]), TYPE, "a ready attribution method"),
        (lambda: Centroid([Exact(NET)]).attribute(X, baseline=0), TYPE, "baseline: none of Exact"),
        (lambda: Centroid([doubled]).attribute(X, target=0), VALUE, "doubled has no argument tar"),
        (lambda: Centroid([doubled, SUMS]).attribute(X), VALUE, r"\(1, 4\).*\(3, 4\)"),
        (lambda: AVA(3, DATA), TYPE, "attribution_method"),  # type: ignore[arg-type]
        (lambda: AVA(doubled, DATA.numpy()), TYPE, "torch.as_tensor"),
        (lambda: AVA(Exact(NET), DATA).attribute(X, baselines=X), VALUE, "baselines has a row for"),
        (lambda: AVA(doubled, DATA).attribute(X[:, :2]), VALUE, "2 numbers each"),
        (lambda: AVA(SUMS, DATA).attribute(X), VALUE, "one for each"),
        (lambda: captum_ext.combine([X.numpy()], core.Centroid()), VALUE, "hold a tensor"),
        (lambda: captum_ext.combine([X, X[:2]], core.Centroid()), VALUE, r"attributions\[1\]"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


# --- costs ---


def test_an_aggregate_says_what_each_method_spent():
    gradients = captum.attr.IntegratedGradients(one)
    members = [Shear(one, seed=0), partial(OddGP(one, seed=0).attribute), gradients, doubled]
    method = Centroid(members)
    method.attribute(X, n_samples=60)  # each has 30, and evaluates all 2⁴ coalitions of 3 rows
    assert str(method.last_evaluations) == (
        "Shear: 48; OddGP: 48; not counted: IntegratedGradients, doubled"
    )

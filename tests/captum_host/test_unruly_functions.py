"""Forward functions that reuse memory, write into what they get, or switch gradients on.

None of this may change a result or a tensor of the user.
"""

import itertools
from typing import Any

import pytest
import torch

from captum_ext import (
    AVA,
    Centroid,
    Convex,
    DataLoaderAttribution,
    Exact,
    SimShap,
    Surrogate,
    criteria,
)
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import InvalidArgumentTypeError, ModelOutputError
from shapley_adapters.torch_support.array_module import attributions_of_rows
from tests.captum_host.networks import examples, network, oracle
from tests.helpers.estimator_table import every_row
from tests.helpers.tolerances import EXACT

pytestmark = pytest.mark.filterwarnings("error")

NET = network(4, 2)
X, REFERENCE, SCALES = examples(3, 4), examples(1, 4, seed=5), examples(3, seed=6)
SHARED = examples(4, seed=7)


def plain(x, scales, shared):
    """Return two outputs, as all functions here do."""
    with torch.no_grad():
        return NET(x * shared) * scales[:, None]


def reusing_memory():
    memory = torch.empty(10_000, 2, dtype=torch.float64)

    def forward(*given):
        output = memory[: len(given[0])]
        return output.copy_(plain(*given))

    return forward


def writing_into_inputs():
    def forward(*given):
        output = plain(*given)
        for tensor in given:
            tensor.fill_(9.0)
        return output

    return forward


def with_gradients():
    def forward(x, scales, shared):
        with torch.enable_grad():
            x.requires_grad_()
            output = NET(x * shared) * scales[:, None]
            (slopes,) = torch.autograd.grad(output.sum(), x, create_graph=True)
            return output + 0 * slopes.sum()

    return forward


def as_negative_view():
    return lambda *given: torch._neg_view(-plain(*given))


each_way = pytest.mark.parametrize(
    "way", [reusing_memory, writing_into_inputs, with_gradients, as_negative_view]
)


def wanted(baselines=REFERENCE):
    """Return the Shapley values, the further argument that all examples share held fixed."""
    (values,) = oracle(
        lambda x, scales: plain(x, scales, SHARED),
        (X,),
        (baselines.expand(3, 4),),
        additional=(SCALES,),
    )
    return values


@pytest.fixture(autouse=True)
def nothing_is_changed():
    tensors = X, REFERENCE, SCALES, SHARED
    before = [tensor.clone() for tensor in tensors]
    yield
    assert all(map(torch.equal, tensors, before))
    assert not any(tensor.requires_grad for tensor in tensors)


@each_way
def test_criteria(way):
    exact = wanted()[:, 1]
    arguments = {"baselines": REFERENCE, "target": 1, "additional_forward_args": (SCALES, SHARED)}
    for criterion in (criteria.faithfulness, criteria.monotonicity):
        found, right = (criterion(exact, f, X, **arguments) for f in (way(), plain))
        torch.testing.assert_close(found, right, **EXACT)
    curves = [criteria.insertion_curve(exact, f, X, **arguments) for f in (way(), plain)]
    torch.testing.assert_close(*(torch.as_tensor(curve.values) for curve in curves))


@each_way
def test_sensitivity(way):
    scales = torch.ones(1, dtype=torch.float64)

    def measured(forward):
        def classes(x):
            return forward(x, scales.expand(len(x)).clone(), SHARED.clone())

        method = Exact(lambda x: classes(x)[:, 0])
        around = Neighbourhood(0.3)
        return criteria.sensitivity(method.attribute, X, around, forward_func=classes)

    found, right = measured(way()), measured(plain)
    torch.testing.assert_close(torch.as_tensor(found.average), torch.as_tensor(right.average))


@each_way
def test_metrics_of_a_data_loader(way):
    """captum hands over the batches themselves, and keeps the output of the first one."""
    batches = [[X[:2], SCALES[:2, None]], [X[2:], SCALES[2:, None]]]

    def explained(forward):
        explainer = DataLoaderAttribution(Exact(lambda x, s: forward(x, s[:, 0], SHARED.clone())))
        return explainer.attribute(
            batches, to_metric=lambda outputs: outputs.mean(), perturbations_per_pass=4
        )

    for found, right in zip(explained(way()), explained(plain), strict=True):
        torch.testing.assert_close(found, right, rtol=0, atol=1e-6)


def test_methods_of_an_aggregate_get_copies():
    def doubled_in_place(x):
        return x.mul_(2)

    found = Centroid([doubled_in_place, doubled_in_place]).attribute(X)
    torch.testing.assert_close(found, 2 * X)
    convex = Convex([doubled_in_place, lambda x: x**2])
    convex.learn(X, "sensitivity", neighbourhood=Neighbourhood(0.1, keep="all"))


def test_embeddings_of_neighbours():
    def embed(x):
        with torch.enable_grad():
            embedded = x.clone().requires_grad_() * 1
        x.zero_()
        return embedded

    data = examples(9, 4, seed=9)
    method = Exact(lambda x: NET(x)[:, 0])
    found = AVA(method, data, n_neighbors=2, embed=embed).attribute(X)
    torch.testing.assert_close(found, AVA(method, data, n_neighbors=2).attribute(X), **EXACT)


def test_functions_that_make_baselines():
    found = Exact(plain).attribute(
        X, baselines=lambda x: x.zero_(), additional_forward_args=(SCALES, SHARED)
    )
    torch.testing.assert_close(found, wanted(0 * REFERENCE), **EXACT)


def test_attributions_for_shap_of_arrays_are_copied():
    class InPlace:
        forward_func = None

        def __init__(self):
            self.memory = torch.empty(2, 4, dtype=torch.float64)

        def attribute(self, inputs):
            return self.memory.copy_(inputs.mul_(2))

    rows, method = X[:2].numpy().copy(), InPlace()
    first = attributions_of_rows(method, rows, {})
    attributions_of_rows(method, rows + 1, {})
    torch.testing.assert_close(torch.as_tensor(first), 2 * X[:2])
    torch.testing.assert_close(torch.as_tensor(rows), X[:2])


# Outputs that cannot be explained


@pytest.mark.parametrize("baselines", [None, examples(5, 4)])
def test_numbers_of_outputs_that_vary(baselines):
    numbers = itertools.count(1)
    with pytest.raises(ModelOutputError, match=r"same shape.*\(1,\) first and \(2,\)"):
        Exact(lambda x: x[:, : next(numbers)]).attribute(X, baselines=baselines)


def test_one_value_for_the_batch_that_becomes_several():
    values = itertools.chain([torch.tensor(1.0)] * 3, itertools.repeat(torch.ones(3)))
    with pytest.raises(ModelOutputError, match=r"one value for the whole batch first.*\(3,\)"):
        Exact(lambda _: next(values)).attribute(X)


# Types and layouts of numbers


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e5m2], ids=str)
@every_row
def test_outputs_of_low_precision_are_added_up_in_double_precision(row, dtype):
    def forward(x):
        return NET(x).to(dtype)

    found = row.attribution(forward, seed=0, **row.options).attribute(X, baselines=REFERENCE)
    (right,) = oracle(lambda x: forward(x).double(), (X,), (REFERENCE.expand(3, 4),))
    torch.testing.assert_close(found, right, **EXACT)


def test_low_precision_among_the_methods_of_an_aggregate():
    half = X.bfloat16()
    found = Centroid([lambda x: x, lambda x: 3 * x]).attribute(half)
    torch.testing.assert_close(found, 2 * half)
    with pytest.raises(InvalidArgumentTypeError, match="complex"):
        criteria.complexity(torch.complex(X, X))


@every_row
def test_double_precision_by_default(row):
    (right,) = oracle(NET, (X,), (REFERENCE.expand(3, 4),))
    torch.set_default_dtype(torch.float64)
    try:
        found = row.attribution(NET, seed=0, **row.options).attribute(X, baselines=REFERENCE)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(found, right, **EXACT)


# Networks trained on such functions


@pytest.fixture
def quick():
    """Return a way to train a network in a moment."""
    pytest.importorskip("safetensors")
    options: dict[str, Any] = {"seed": 0, "epochs": 1, "evaluations": 16, "labels": "leastsquares"}
    return lambda forward, **others: SimShap(forward, **options, **others)


ROWS = examples(30, 4, seed=10)


@each_way
def test_labels_of_networks(quick, way):
    def bound(forward):
        return lambda x: forward(x, torch.ones(len(x), dtype=x.dtype), SHARED.clone())

    found, right = (quick(bound(f)).fit(ROWS).attribute(X) for f in (way(), plain))
    torch.testing.assert_close(found, right, **EXACT)
    assert torch.equal(ROWS, examples(30, 4, seed=10))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn], ids=str)
@pytest.mark.parametrize("n_mixed_rows", [0, 5])
def test_networks_of_inputs_of_low_precision(quick, dtype, n_mixed_rows):
    def forward(x):
        return NET(x.double())

    low, high = (quick(forward, n_mixed_rows=n_mixed_rows) for _ in range(2))
    low.fit(ROWS.to(dtype)).attribute(X.to(dtype))
    high.fit(ROWS.to(dtype).float()).attribute(X.to(dtype).float())
    torch.testing.assert_close(
        torch.as_tensor(low.last_estimate.values), torch.as_tensor(high.last_estimate.values)
    )


@pytest.mark.parametrize("change", [torch.Tensor.bfloat16, lambda x: torch._neg_view(-x)])
def test_surrogates_of_other_numbers(change):
    pytest.importorskip("safetensors")

    def fitted(change):
        return Surrogate(lambda x: NET(x.double()), seed=0, epochs=1).fit(change(ROWS))(change(X))

    right = fitted(lambda x: change(x).double().resolve_neg())
    torch.testing.assert_close(fitted(change).double(), right.double(), rtol=1e-2, atol=1e-2)

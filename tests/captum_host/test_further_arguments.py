"""Further arguments of the forward function: shared by all examples, or one entry for each."""

import copy
from typing import Any

import captum.attr
import pytest
import torch
from captum.metrics import sensitivity_max
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from captum_ext import (
    AVA,
    Centroid,
    Exact,
    OddGP,
    PerExample,
    RandomOrder,
    Shared,
    Shear,
    SimShap,
    criteria,
)
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.captum_host.networks import examples, oracle
from tests.helpers.estimator_table import every_row
from tests.helpers.tolerances import EXACT

pytestmark = pytest.mark.filterwarnings("error")

EDGES = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
EDGE_WEIGHTS = torch.tensor([0.5, 1.0, -1.0, 2.0], dtype=torch.float64)
X = examples(5, 4)


class MessagePassing(nn.Module):
    """Adds up what neighbours send each other."""

    def forward(self, x, edge_index, weights=EDGE_WEIGHTS):
        sources, targets = edge_index
        messages = torch.tanh(x[:, sources] * weights)
        return torch.tanh(x.index_add(1, targets, messages)).prod(dim=1, keepdim=True)


def forward(x, edge_index, weights=EDGE_WEIGHTS):
    return MessagePassing()(x, edge_index, weights)[:, 0]


def wanted(x, weights=EDGE_WEIGHTS):
    return oracle(lambda x: forward(x, EDGES, weights), (x,), (0 * x,))[0]


# An argument that all examples share


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
@every_row
def test_what_may_be_edges_or_rows_of_two_examples_is_refused(row, dtype):
    method = row.attribution(forward, seed=0, **row.options)
    for kind in (EDGES.to(dtype), (EDGES.to(dtype),)):
        with pytest.raises(InvalidArgumentError, match=r"\[0\].*2 examples.*Shared.*PerExample"):
            method.attribute(X[:2], additional_forward_args=kind)
    found = method.attribute(X[:3], additional_forward_args=EDGES)
    torch.testing.assert_close(found, wanted(X[:3]), **EXACT)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
@every_row
def test_attention_masks_need_no_mark_in_batches_of_any_size(row, dtype):
    """The last batch of a data loader may have two examples."""
    x, keep = examples(10, 4), torch.ones(10, 4, dtype=dtype)
    keep[::2, 3:] = 0
    keep[9, 2:] = 0
    positions = torch.arange(4).expand(10, 4)
    loader = DataLoader(TensorDataset(x, keep, positions), batch_size=4)

    def masked(x, keep, positions):
        return (torch.tanh(x + positions) * keep).sum(1).exp()

    sizes = []
    for part, *additional in loader:
        sizes.append(len(part))
        found = row.attribution(masked, seed=0, **row.options).attribute(
            part, additional_forward_args=tuple(additional)
        )
        (right,) = oracle(masked, (part,), (0 * part,), additional=tuple(additional))
        torch.testing.assert_close(found, right, **EXACT)
    assert sizes == [4, 4, 2]


@pytest.mark.parametrize(
    "ids", [[[7, 1, 9, 2], [2, 8, 1, 0]], [[0, 2, 2, 3], [1, 3, 3, 0]], [[0, -1], [1, 2]]]
)
def test_whole_numbers_that_are_no_edges_need_no_mark(ids):
    """They exceed the number of nodes, repeat a column, or are negative."""
    ids = torch.tensor(ids)
    found = Exact(lambda x, ids: x[:, : ids.shape[1]].mul(ids).sum(1)).attribute(
        X[:2], additional_forward_args=ids
    )
    n = ids.shape[1]
    torch.testing.assert_close(found[:, :n], X[:2, :n] * ids, **EXACT)


def test_derivatives_take_marks():
    x = torch.cat([X[:2], X[2:4], X[:2]], dim=1)
    edges = torch.tensor([list(range(12)), [*range(1, 12), 0]])
    weights = torch.ones(12, dtype=torch.float64)
    for kind in (Shear, OddGP):
        marked = kind(forward, seed=0, cooperators="hessian")
        found = marked.attribute(
            x, additional_forward_args=(Shared(edges), Shared(weights)), n_samples=150
        )
        bound = kind(lambda x: forward(x, edges, weights), seed=0, cooperators="hessian")
        torch.testing.assert_close(found, bound.attribute(x, n_samples=150), **EXACT)
        assert marked.last_estimate.cooperators.tolist() == ["hessian"] * 2


def test_captums_tools():
    method = Exact(forward)
    torch.manual_seed(0)
    found = captum.attr.NoiseTunnel(method).attribute(
        X[:2], nt_samples=2, stdevs=0.1, additional_forward_args=Shared(EDGES)
    )
    torch.manual_seed(0)
    bound = captum.attr.NoiseTunnel(Exact(lambda x: forward(x, EDGES)))
    torch.testing.assert_close(found, bound.attribute(X[:2], nt_samples=2, stdevs=0.1), **EXACT)
    quiet = sensitivity_max(
        method.attribute,
        X[:2],
        perturb_func=lambda x: x,
        additional_forward_args=Shared(EDGES),
        n_perturb_samples=3,
    )
    assert quiet.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n_examples", [1, 2, 3])
def test_edges_that_captums_tools_have_repeated_are_refused(n_examples):
    """captum repeats the rows of every tensor, so that two halves of equal rows arrive."""

    def by_row(x, edge_index):  # does not notice that there are more than two rows
        return forward(x, (edge_index[0], edge_index[1]))

    tunnel = captum.attr.NoiseTunnel(Exact(by_row))
    with pytest.raises(InvalidArgumentError, match="NoiseTunnel.*repeat.*Shared"):
        tunnel.attribute(X[:n_examples], nt_samples=3, additional_forward_args=EDGES)
    perturbed = {"n_perturb_samples": 3, "additional_forward_args": EDGES}
    with pytest.raises(InvalidArgumentError, match="there are [2369] examples.*metrics.*Shared"):
        sensitivity_max(Exact(by_row).attribute, X[:n_examples], **perturbed)


def test_criteria():
    x, exact = X[:2], wanted(X[:2])
    for criterion in (criteria.faithfulness, criteria.monotonicity):
        share = criterion(exact, forward, x, additional_forward_args=Shared(EDGES))
        torch.testing.assert_close(share, criterion(exact, lambda x: forward(x, EDGES), x))
    around = Neighbourhood(0.1, keep="all")
    bound = Exact(lambda x: forward(x, EDGES))
    for weights in (EDGE_WEIGHTS, Shared(EDGE_WEIGHTS)):
        # As many weights as there are neighbours in a call.
        found = criteria.sensitivity(
            Exact(forward).attribute,
            x,
            around,
            rows_per_call=4,
            additional_forward_args=(Shared(EDGES), weights),
        )
        right = criteria.sensitivity(bound.attribute, x, around, rows_per_call=4)
        assert found.average.tolist() == right.average.tolist()
    for of_examples in (torch.ones(2, 3), EDGES, PerExample(EDGES)):
        with pytest.raises(InvalidArgumentError, match=r"a row for each of the 2.*Shared"):
            criteria.sensitivity(
                Exact(forward).attribute, x, around, additional_forward_args=of_examples
            )


# Aggregates and networks explain other rows than the examples


@pytest.mark.parametrize("n_neighbors", [2, 4])
def test_ava_repeats_nothing_for_its_neighbours(n_neighbors):
    """As many neighbours as the edge index has rows, or as there are weights."""
    data = examples(9, 4, seed=4)
    found = AVA(Exact(forward), data, n_neighbors=n_neighbors).attribute(
        X[:1], additional_forward_args=(EDGES, EDGE_WEIGHTS)
    )
    bound = AVA(Exact(lambda x: forward(x, EDGES)), data, n_neighbors=n_neighbors)
    torch.testing.assert_close(found, bound.attribute(X[:1]), **EXACT)


def test_ava_knows_shared_arguments_again():
    calls = []

    def counted(x, edge_index):
        calls.append(len(x))
        return forward(x, edge_index)

    ava = AVA(Exact(counted), examples(9, 4, seed=4), n_neighbors=3)
    first = ava.attribute(X[:2], additional_forward_args=Shared(EDGES))
    n_calls = len(calls)
    assert torch.equal(ava.attribute(X[:2], additional_forward_args=Shared(EDGES.clone())), first)
    assert len(calls) == n_calls
    ava.attribute(X[:2], additional_forward_args=Shared(EDGES.flip(1)[[1, 0]]))
    assert len(calls) > n_calls


def test_centroids():
    methods = [Exact(forward), RandomOrder(forward, seed=0)]
    found = Centroid(methods).attribute(X[:2], additional_forward_args=Shared(EDGES))
    torch.testing.assert_close(found, wanted(X[:2]), **EXACT)
    theirs = captum.attr.ShapleyValues(forward)
    for method in (theirs, captum.attr.NoiseTunnel(theirs)):
        with pytest.raises(InvalidArgumentError, match=r"does not know.*part of forward_func"):
            Centroid([Exact(forward), method]).attribute(
                X[:2], additional_forward_args=Shared(EDGES)
            )


def test_trained_networks_take_what_all_examples_share():
    pytest.importorskip("safetensors")
    rows = examples(40, 4, seed=3)
    options: dict[str, Any] = {"seed": 0, "epochs": 1, "labels": "leastsquares", "evaluations": 16}
    marked = SimShap(forward, **options).fit(rows, additional_forward_args=(EDGES, EDGE_WEIGHTS))
    bound = SimShap(lambda x: forward(x, EDGES), **options).fit(rows)
    for n_examples in (1, 3):
        found = marked.attribute(
            rows[:n_examples], additional_forward_args=(EDGES, Shared(EDGE_WEIGHTS))
        )
        torch.testing.assert_close(found, bound.attribute(rows[:n_examples]), **EXACT)
    with pytest.raises(InvalidArgumentError, match=r"\[0\] has a row for each of the 40"):
        marked.fit(rows, additional_forward_args=torch.ones(40))


# An argument with one entry for each example


def test_containers_without_marks_go_in_as_they_are():
    given: dict[str, Any] = {
        "edges": EDGES,
        "more": [EDGE_WEIGHTS, EDGES.numpy()],
        "pair": (1, None),
    }

    def check(x, options, text):
        assert text == "as it is"
        assert torch.equal(options["edges"], EDGES)
        assert torch.equal(options["more"][0], EDGE_WEIGHTS)
        assert (options["more"][1] == EDGES.numpy()).all()
        assert options["pair"] == (1, None)
        options["edges"].zero_()
        options["more"][1][:] = 0
        options.clear()
        return x.prod(dim=1)

    Exact(check).attribute(
        X[:4], additional_forward_args=(given, "as it is"), perturbations_per_eval=1
    )
    assert given["edges"].max() == 3


def test_wrong_marks():
    with pytest.raises(InvalidArgumentError, match=r"\[1\] is marked PerExample.*3 entries.*2 ex"):
        Exact(forward).attribute(
            X[:2], additional_forward_args=(Shared(EDGES), PerExample(EDGE_WEIGHTS[:3]))
        )
    with pytest.raises(InvalidArgumentTypeError, match="values must be a tensor; got list"):
        PerExample([1, 2])  # type: ignore[arg-type] # wrong on purpose
    with pytest.raises(InvalidArgumentError, match="no dimensions"):
        PerExample(torch.tensor(1))
    with pytest.raises(InvalidArgumentError, match=r"rows other than these.*Shared"):
        AVA(Exact(forward), X).attribute(X[:2], additional_forward_args=PerExample(EDGES))


def test_marks_can_be_copied():
    marked = copy.deepcopy(PerExample(EDGES))
    assert type(marked) is PerExample
    assert torch.equal(marked.as_subclass(torch.Tensor), EDGES)
    assert torch.equal(copy.deepcopy(Shared(EDGES)).value, EDGES)

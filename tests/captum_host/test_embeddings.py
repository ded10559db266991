"""Tokens as players through an embedding layer, against enumeration of masked ids."""

import re
import threading

import numpy as np
import pytest
import torch
from torch import nn

from captum_ext import (
    BaselineDistribution,
    Best,
    EmbeddingAttribution,
    Exact,
    OddGP,
    Shear,
    SimShap,
)
from shapley_adapters.errors import InvalidArgumentError, ModelOutputError, ShapleyExtWarning
from tests.captum_host.networks import game_of
from tests.helpers.brute_force import shapley_values

N_TOKENS, PAD = 6, 0


class Reader(nn.Module):
    """Two scores of sentences, of products of neighbouring words and of their lengths."""

    def __init__(self, n_tokens=N_TOKENS):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.places = nn.Embedding(20, 4), nn.Embedding(n_tokens, 4)
        self.head = nn.Linear(4, 2)
        self.double().eval()

    def forward(self, ids, scale=1.0, lengths=None):
        states = torch.tanh(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        scores = self.head((states[:, 1:] * states[:, :-1]).sum(dim=1))
        return scores * scale if lengths is None else scores * lengths[:, None]


def sentences(n=2, n_tokens=N_TOKENS):
    return torch.randint(1, 20, (n, n_tokens), generator=torch.Generator().manual_seed(3))


def exact(net, ids, absent, groups, *arguments):
    """Return the values of groups of tokens of one sentence, (M, 2), by masked ids."""
    game = game_of(lambda masked: net(masked, *arguments), ids, absent, groups)
    return shapley_values(int(groups.max()) + 1, game)


@pytest.mark.parametrize("method", [Exact, OddGP, Best, Shear])
def test_values_are_those_of_masked_ids(method):
    net, ids = Reader(), sentences()
    found = EmbeddingAttribution(method(net), net.words).attribute(ids, PAD, n_samples=64)
    for row in (0, 1):
        expected = exact(net, ids[row], torch.tensor(PAD), torch.arange(N_TOKENS))
        np.testing.assert_allclose(found[row].T, expected, atol=1e-12)


def test_groups_baselines_and_arguments_belong_to_examples():
    net, ids, absent = Reader(), sentences(), sentences(4)[2:]
    groups = torch.tensor([[0, 0, 1, 2, 2, 2], [1, 0, 0, 0, 2, 2]])
    lengths = torch.tensor([1.0, 3.0], dtype=torch.float64)
    given = Exact(net)
    method = EmbeddingAttribution(given, net.words)
    called = ids, absent, None, (1.0, lengths), 5 + 2 * groups
    found, errors = method.attribute(*called, return_standard_error=True)
    assert found.shape == errors.shape == (2, 2, N_TOKENS)
    for row in (0, 1):
        arguments = ids[row], absent[row], groups[row], 1.0, lengths[row : row + 1]
        np.testing.assert_allclose(found[row], exact(net, *arguments)[groups[row]].T, atol=1e-12)
    per_player = method.attribute(*called, return_input_shape=False)
    np.testing.assert_array_equal(found[0], per_player[0][:, groups[0]])
    assert given.forward_func is net


def test_calls_of_other_threads_are_their_own():
    net, ids = Reader(), sentences()

    def busy(ids):
        other = threading.Thread(target=net, args=(1 + ids,))
        other.start()
        other.join()
        return net(ids)

    plain, beside = (EmbeddingAttribution(Exact(one), net.words) for one in (net, busy))
    np.testing.assert_array_equal(beside.attribute(ids, PAD), plain.attribute(ids, PAD))


def test_gradients_reach_tokens():
    net, ids = Reader(12), sentences(1, 12)
    method = EmbeddingAttribution(OddGP(net, gradients=True, seed=0), net.words)
    found = method.attribute(ids, PAD, target=1, n_samples=18)
    estimate = method.last_estimate
    assert estimate.backward_passes[0] >= 3
    expected = Exact(net).attribute(ids, PAD, target=1)
    alone = OddGP(net, seed=0).attribute(ids, PAD, target=1, n_samples=18)
    errors = [float((part - expected).abs().sum()) for part in (found, alone)]
    assert errors[0] < errors[1]
    assert all(parameter.grad is None for parameter in net.parameters())
    assert not net.words._forward_hooks


def test_what_else_reads_the_ids_sees_those_of_the_example():
    net, ids = Reader(), sentences()
    counted = Exact(lambda ids: net(ids)[:, 0] * (ids != PAD).sum(dim=1))
    found = EmbeddingAttribution(counted, net.words).attribute(ids, PAD)
    plain = EmbeddingAttribution(Exact(net), net.words).attribute(ids, PAD, target=0)
    np.testing.assert_allclose(found, N_TOKENS * plain, atol=1e-12)


def test_layers_in_training_mode_are_named():
    net = Reader()
    method = EmbeddingAttribution(Exact(nn.Sequential(net, nn.Dropout(0.5).train())), net.words)
    with pytest.warns(ShapleyExtWarning, match="Dropout"):
        method.attribute(sentences(1), PAD, target=0)


def first(net, ids):
    return net(ids)[:, 0]


def of(net, ids=None, *given, forward=None, layer=None, **options):
    method = EmbeddingAttribution(Exact(forward or net), layer or net.words)
    return method.attribute(sentences() if ids is None else ids, *given, **options)


def twice(net):
    return of(net, forward=lambda ids: first(net, ids) + first(net, ids))


def by_name(net):
    return of(net, forward=lambda ids: net.words(input=ids.flip(1))[..., 0].prod(dim=1))


REFUSED = {
    "no method": (lambda net: EmbeddingAttribution(net, net.words), "method of this package"),
    "trained": (lambda net: EmbeddingAttribution(SimShap(net), net.words), "cannot explain embed"),
    "no layer": (lambda net: EmbeddingAttribution(Exact(net), net.words.weight), "torch.nn.Module"),
    "twice": (twice, "2 times in one call"),
    "never": (lambda net: of(net, layer=nn.Embedding(3, 2)), "0 times in one call"),
    "places": (lambda net: of(net, layer=net.places), "an embedding for each of the ids, (2, 6)"),
    "floats": (lambda net: of(net, sentences().float()), "inputs must be a tensor of whole number"),
    "one sentence": (lambda net: of(net, sentences()[0]), "ids[None]"),
    "other order": (
        lambda net: of(net, forward=lambda ids: net(ids.flip(1))),
        "must read the ids of the inputs",
    ),
    "other order by name": (by_name, "must read the ids of the inputs"),
    "fraction": (lambda net: of(net, None, 1.5), "whole numbers or one of them; got float"),
    "distribution": (
        lambda net: of(net, None, BaselineDistribution(sentences())),
        "got BaselineDistribution",
    ),
    "mask": (
        lambda net: of(net, feature_mask=torch.arange(4)[None]),
        "feature_mask must have the shape of inputs, (2, 6)",
    ),
    "baselines": (
        lambda net: of(net, None, sentences(3)),
        "baselines must have the shape of inputs, (2, 6)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, message = REFUSED[case]
    errors = InvalidArgumentError, TypeError, ModelOutputError
    with pytest.raises(errors, match=re.escape(message)):
        call(Reader())


def test_embeddings_that_the_model_changes_in_place():
    embedding, ids = Reader().words, sentences()

    def net(ids):
        states = embedding(ids)
        states += 1
        return states.prod(dim=1)[:, 0]

    found = EmbeddingAttribution(Exact(net), embedding).attribute(ids, PAD)
    np.testing.assert_allclose(found, Exact(net).attribute(ids, PAD), atol=1e-12)

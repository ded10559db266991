"""Every form of input that captum's own methods take.

Few features, so that the default budget pays for all coalitions and the oracle tells the result;
what is drawn at random with less is tested with the estimators themselves.
"""

import pytest
import torch
from captum.attr._core.layer.layer_activation import LayerActivation
from torch import nn

from captum_ext import Exact, PerExample
from tests.captum_host.networks import oracle
from tests.helpers.estimator_table import every_row
from tests.helpers.tolerances import EXACT

pytestmark = [pytest.mark.versions, pytest.mark.filterwarnings("error")]

IDS = torch.tensor([[3, 1, 4, 1], [5, 9, 2, 6]])
REFERENCE = torch.tensor([[0, 0, 7, 0]])


def built(row, forward_func):
    return row.attribution(forward_func, seed=0, **row.options)


class TextClassifier(nn.Module):
    """Embeds tokens, and mixes neighbours, so that they work together."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.embedding = nn.Embedding(12, 3)
        self.mix = nn.Conv1d(3, 5, 2)
        self.head = nn.Linear(5, 2)
        self.double().eval()
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))

    def forward(self, tokens, scale=1.0):
        states = torch.tanh(self.mix(self.embedding(tokens).transpose(1, 2)))
        return self.head(states.sum(dim=2)) * scale


@pytest.fixture
def classifier():
    return TextClassifier()


@pytest.fixture
def wanted(classifier):
    """Return what each token gets, (B, outputs, T)."""
    return oracle(classifier, (IDS,), (REFERENCE.expand(2, 4),))[0]


# Tokens and embeddings


@every_row
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
def test_token_ids_with_token_ids_as_baselines(row, dtype, classifier, wanted):
    for baselines in (REFERENCE.to(dtype), REFERENCE.expand(2, 4), REFERENCE.to(torch.uint8)):
        made = built(row, classifier).attribute(IDS.to(dtype), baselines=baselines)
        torch.testing.assert_close(made, wanted, **EXACT)
        assert made.dtype == torch.float64  # of the output


# Layers, as captum's layer methods take them


def replacing(net, layer):
    """Return the forward function of what follows a layer; the inputs come second."""

    def forward(activation, *inputs):
        handle = layer.register_forward_hook(lambda *_: activation)
        try:
            return net(*inputs)
        finally:
            handle.remove()

    return forward


@every_row
def test_activations_of_a_layer(row, classifier, wanted):
    layer = LayerActivation(classifier, classifier.embedding)
    made = built(row, replacing(classifier, classifier.embedding)).attribute(
        layer.attribute(IDS),
        baselines=layer.attribute(REFERENCE),
        additional_forward_args=PerExample(IDS),
        feature_mask=torch.arange(4)[None, :, None],
    )
    torch.testing.assert_close(made, wanted[..., None].expand(made.shape), **EXACT)
    # The layer is left as it was.
    torch.testing.assert_close(layer.attribute(IDS), classifier.embedding(IDS).detach())


# Tuples


# Precision


def test_half_precision_may_round_otherwise_in_other_batches():
    def forward(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ torch.full((4, 1), 0.3) * (1 + len(x) % 2 / 64)  # two units

    made = Exact(forward).attribute(torch.ones(2, 4))
    torch.testing.assert_close(made, torch.full((2, 1, 4), 0.3), rtol=0, atol=0.03)

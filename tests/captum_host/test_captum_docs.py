"""The examples of the pages about captum, run one after the other as a reader would."""

import re
from pathlib import Path

import captum.attr
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from captum_ext import Exact, OddGP
from tests.captum_host.networks import Recorder, examples
from tests.captum_host.test_language_models import TOKENIZER, TinyLanguageModel

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "using_with_captum.md"
COMING_FROM_CAPTUM = DOCS / "coming_from_captum.md"


class Net(nn.Module):
    """A classifier with a named layer."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(5, 4)
        self.head = nn.Linear(4, 3)
        self.double().eval()

    def forward(self, x):
        return self.head(torch.tanh(self.hidden(x)))


class TextNet(nn.Module):
    """A classifier of tokens."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 3)
        self.head = nn.Linear(3, 2)
        self.double().eval()

    def forward(self, tokens):
        return self.head(torch.tanh(self.embedding(tokens).prod(dim=1)))


class MaskedTextNet(TextNet):
    """A classifier of tokens, some of which are padding."""

    def forward(self, tokens, attention_mask):  # type: ignore[override] # as Hugging Face has it
        return self.head((self.embedding(tokens) * attention_mask[..., None]).sum(dim=1))


def along_edges(nodes, edge_index):
    """Return the sum of the products over the edges."""
    sources, targets = edge_index
    return (nodes[:, sources] * nodes[:, targets]).sum(dim=1)


class CachingModel(TinyLanguageModel):
    """With the methods by which captum reuses what earlier tokens took."""

    def prepare_inputs_for_generation(self, input_ids, **_):
        return {"input_ids": input_ids}

    def _update_model_kwargs_for_generation(self, _outputs, arguments):
        return arguments


@pytest.fixture
def names():
    """Return what the page takes for granted."""
    data, ids = examples(30, 5), torch.tensor([[1, 4, 2, 8]])
    return {
        "net": Net(),
        "x": data[:3],
        "reference": data[3:4],
        "training_data": data,
        "text_net": TextNet(),
        "token_ids": ids,
        "attention_mask": torch.tensor([[1, 1, 1, 0]]),
        "masked_text_net": MaskedTextNet(),
        "nodes": examples(2, 4),
        "edge_index": torch.tensor([[0, 1, 2], [1, 2, 3]]),
        "graph_net": along_edges,
        "padding_id": 0,
        "padding_ids": 0 * ids,
        "language_model": CachingModel(),
        "tokenizer": TOKENIZER,
        "data_loader": DataLoader(TensorDataset(data), batch_size=8),
    }


@pytest.mark.filterwarnings("ignore:In order to make embedding layers")
def test_the_examples_run(names):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 7
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
        made = names["attributions"]
        assert all(part.isfinite().all() for part in (made if isinstance(made, tuple) else (made,)))
    assert names["per_token"].shape == (1, 4)
    # of "a mat", by "the cat sat on"; captum 0.8 counts its mark at the start of a text, too
    assert names["result"].token_attr.shape[1] == 5


def test_the_examples_for_users_of_captum_run(names):
    text = COMING_FROM_CAPTUM.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 6
    theirs = None
    for block in blocks:
        exec(compile(block, str(COMING_FROM_CAPTUM), "exec"), names)
        if theirs is None:
            theirs = names["attributions"]
        assert names["attributions"].shape == names["x"].shape
    assert theirs.dtype == torch.float32
    assert names["attributions"].dtype == torch.float64
    assert names["groups"].shape == (3, 3)
    assert names["errors"].shape == (3, 5)
    assert (names["method"].last_estimate.evaluations <= 20).all()
    assert names["per_metric"].shape == (3, 5)
    names["servers"].shutdown()


def rows_of(method, x, **arguments):
    """Return how many rows of the model each example costs."""
    recorder = method.forward_func
    method.attribute(x, **arguments)
    return sum(recorder.sizes) / len(x)


def test_what_n_samples_counts_is_as_the_page_says():
    x, net = examples(1, 5), Net()
    sampling, kernel = captum.attr.ShapleyValueSampling, captum.attr.KernelShap
    assert rows_of(sampling(Recorder(net)), x, target=1, n_samples=7) == 7 * 5 + 1
    assert rows_of(kernel(Recorder(net)), x, target=1, n_samples=20) == 20
    assert rows_of(OddGP(Recorder(net), seed=0), x, target=1, n_samples=20) == 20
    assert rows_of(Exact(Recorder(net)), x, target=1, n_samples=2**5) == 2**5
    assert rows_of(Exact(Recorder(net)), x, target=1) == 2**5 + 2
    small = captum.attr.ShapleyValues(Recorder(lambda z: torch.tanh(z).prod(dim=1)))
    assert rows_of(small, x[:, :4]) == 24 * 4 + 1

"""What the pages about captum say: what calls cost, and the examples with language models."""

import re
import runpy
from pathlib import Path
from typing import Any

import captum.attr
import pytest
import torch

from captum_ext import Exact, OddGP
from tests.captum_host.networks import Recorder, examples, network
from tests.captum_host.test_graphs import smooth
from tests.helpers.language_models import TinyLanguageModel, WordTokenizer

DOCS = Path(__file__).parents[2] / "docs"
read_blocks = runpy.run_path(str(DOCS / "run_pages.py"))["read_blocks"]


@pytest.mark.parametrize("method", ["Exact", "CShapley"])
def test_the_example_of_language_models_runs(method):
    """Also by a method of the page about neighbours, which says that they are taken."""
    blocks = read_blocks(DOCS / "coming_from_captum.md")
    (code,) = [block.code for block in blocks if block.reason == "needs a language model"]
    names: dict[str, Any] = {"language_model": TinyLanguageModel(), "tokenizer": WordTokenizer()}
    exec(compile(code.replace("Exact", method), "page", "exec"), names)
    # "a mat" or three new tokens by "the cat sat on", with the mark at the start or without
    n_tokens, n_words = names["result"].token_attr.shape
    assert n_tokens in {2, 3} and n_words in {4, 5}


def rows_of(method, x, **arguments):
    """Return how many rows of the model each example costs."""
    recorder = method.forward_func
    method.attribute(x, **arguments)
    return sum(recorder.sizes) / len(x)


def test_what_n_samples_counts_is_as_the_page_says():
    x, net = examples(1, 5), network(5, 3)
    sampling, kernel = captum.attr.ShapleyValueSampling, captum.attr.KernelShap
    assert rows_of(sampling(Recorder(net)), x, target=1, n_samples=7) == 7 * 5 + 1
    assert rows_of(kernel(Recorder(net)), x, target=1, n_samples=20) == 20
    assert rows_of(OddGP(Recorder(net), gradients=False), x, target=1, n_samples=20) == 20 + 4
    assert rows_of(Exact(Recorder(net)), x, target=1, n_samples=2**5) == 2**5 + 4
    assert rows_of(Exact(Recorder(net)), x, target=1) == 2**5 + 4
    small = captum.attr.ShapleyValues(Recorder(lambda z: torch.tanh(z).prod(dim=1)))
    assert rows_of(small, x[:, :4]) == 24 * 4 + 1


# The table of docs/neighbouring_features.md


PAGE = Path(__file__).parents[2] / "docs" / "neighbouring_features.md"


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_table_of_costs(order):
    """A few less than said at the ends: no more than the square of the order times the factor."""
    from captum_ext import CShapley, LShapley

    d = 40
    x = examples(1, d)
    methods = {
        "L-Shapley": LShapley(smooth, order=order, graph="line"),
        "C-Shapley": CShapley(smooth, order=order, graph="line"),
        'C-Shapley, `marginals="components"`': CShapley(
            smooth, order=order, graph="line", marginals="components"
        ),
        "regression on runs of up to `order` words": CShapley(
            smooth, order=order, graph="line", variant="regression"
        ),
    }
    page = PAGE.read_text(encoding="utf-8")
    for name, method in methods.items():
        (line,) = re.findall(rf"^\| {re.escape(name)} \| (\$.*\$) \|$", page, re.MULTILINE)
        said = int(line.split(" | ")[order - 1].strip("$d") or 1)
        method.attribute(x)
        found = int(method.last_estimate.evaluations[0])
        assert said * (d - 2 * order - 2) <= found <= said * d + 2, name

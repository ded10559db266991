"""The examples of docs/neighbouring_features.md, run one after the other as a reader would."""

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest
import torch

from tests.captum_host.networks import examples
from tests.captum_host.test_graph_networks import PooledMessages, molecules, seeded
from tests.captum_host.test_graphs import MessagePassing, TextNetwork, molecule, smooth
from tests.captum_host.test_language_models import MODEL, TOKENIZER
from tests.shap_host.test_text import by_spaces, model

PAGE = Path(__file__).parents[2] / "docs" / "neighbouring_features.md"


def test_the_page_runs():
    tokens = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]])
    atoms, edge_index = molecule()
    nodes, edges = molecules()
    names = {
        "text_model": model,
        "tokenizer": by_spaces,
        "lengths": [4, 2],
        "token_model": TextNetwork(),
        "tokens": tokens,
        "torch": torch,
        "image_model": lambda x: smooth(x)[:, None],
        "images": examples(2, 3, 6, 6),
        "n_atoms": 8,
        "molecule_model": MessagePassing(),
        "molecule": atoms,
        "edge_index": edge_index,
        "symbols": list("CCCCCCNO"),
        "language_model": MODEL,
        "llm_tokenizer": TOKENIZER,
        "graph_network": seeded(PooledMessages()),
        "data": SimpleNamespace(x=nodes[0], edge_index=edges, num_nodes=8),
    }
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 8
    is_installed = importlib.util.find_spec("torch_geometric") is not None
    for block in blocks:
        if is_installed or "torch_geometric" not in block:
            exec(block, names)
    if is_installed:
        torch.testing.assert_close(names["of_atoms"], names["by_atom"][0, :, 0])
    assert [len(values) for values in names["explanation"].values] == [6, 1]
    assert names["patches"].last_estimate.evaluations.tolist() == [36 + 25 + 16 + 9 + 2] * 2
    assert names["attributions"].shape == (1, 8, 3)
    assert names["by_atom"].shape == (1, 8, 4)
    assert names["result"].token_attr.shape == (3, 4)
    assert names["backbone"].edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    plt.close("all")


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

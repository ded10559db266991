"""Six models with rows to explain, for benchmarks of time; they need no data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from neighbour_models import TextCNN
from torch import Tensor, nn

N_WORDS = 500


@dataclass(frozen=True)
class Workload:
    """A model with rows to explain.

    Attributes
    ----------
    module : nn.Module
        The model, of tensors.
    rows : Tensor, (R, …)
        What to explain.
    background : Tensor, (B, …)
        Values of absent features.
    budget : int
        Evaluations for each row.
    mask : Tensor, optional
        Which feature each number belongs to.
    uses_masker : bool
        Whether shap masks the rows by a function, as texts, instead of by background rows.
    """

    module: nn.Module
    rows: Tensor
    background: Tensor
    budget: int
    mask: Tensor | None = None
    uses_masker: bool = False

    @property
    def table(self) -> npt.NDArray[Any]:
        """The rows as shap takes them, (R, D)."""
        return self.rows.flatten(1).numpy()

    @property
    def masker(self) -> Any:
        """What shap's explainers take as masker."""
        if self.uses_masker:
            return lambda mask, words: (mask * words)[None]
        return self.background.flatten(1).numpy()

    @property
    def options(self) -> dict[str, Any]:
        """The groups of columns that are players, for our explainers of shap."""
        if self.mask is None:
            return {}
        columns = pd.Series(self.mask.flatten().numpy())
        return {"groups": {str(k): list(of) for k, of in columns.groupby(columns).groups.items()}}

    def predict(self, table: Any) -> npt.NDArray[Any]:
        """Return the model's outputs for a table, as a user of shap would write it."""
        shape = self.rows.shape[1:]
        with torch.no_grad():
            outputs: npt.NDArray[Any] = self.module(
                torch.as_tensor(np.asarray(table), dtype=self.rows.dtype).reshape(-1, *shape)
            ).numpy()
        return outputs


class BoostedTrees(nn.Module):
    """LightGBM's prediction as a function of tensors."""

    def __init__(self, booster: Any) -> None:
        super().__init__()
        self.booster = booster

    def forward(self, x: Tensor) -> Tensor:
        """Return the raw scores, (n,)."""
        return torch.from_numpy(self.booster.predict(x.numpy(), raw_score=True))


class SmallTransformer(nn.Module):
    """Words under two layers of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_WORDS, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.last = nn.Linear(64, 1)

    def forward(self, words: Tensor) -> Tensor:
        """Return scores, (n, 1)."""
        hidden = self.layers(self.embedding(words.long())).mean(dim=1)
        return self.last(hidden)


def _tabular_network() -> Workload:
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
    )
    return Workload(module, torch.randn(20, 30), torch.zeros(1, 30), 500)


def _boosted_trees(n_background: int, budget: int) -> Workload:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2000, 30))
    y = x[:, 0] * x[:, 1] + np.abs(x[:, 2]) + 0.1 * rng.standard_normal(2000)
    data = lightgbm.Dataset(x, y)
    booster = lightgbm.train({"verbosity": -1, "num_threads": 1}, data, num_boost_round=100)
    tensors = torch.from_numpy(x)
    return Workload(BoostedTrees(booster), tensors[:8], tensors[100 : 100 + n_background], budget)


def _image_network() -> Workload:
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 1),
    )  # fmt: skip
    squares = torch.arange(49).reshape(7, 7).repeat_interleave(4, 0).repeat_interleave(4, 1)
    zero = torch.zeros(1, 1, 28, 28)
    return Workload(module, torch.rand(8, 1, 28, 28), zero, 500, squares[None])


def _words(make: Callable[[], nn.Module], n_words: int) -> Workload:
    torch.manual_seed(0)
    module, words = make(), torch.randint(1, N_WORDS, (4, n_words))
    return Workload(module, words, torch.zeros_like(words[:1]), 500, uses_masker=True)


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "network of a table, 200 rows": _tabular_network,
    "text of 100 words": lambda: _words(lambda: TextCNN(N_WORDS, 1, 64, 64, (3, 4, 5)), 100),
    "small transformer": lambda: _words(SmallTransformer, 32),
    "boosted trees, 200 rows": lambda: _boosted_trees(1, 500),
    "the same, 100 background rows": lambda: _boosted_trees(100, 100),
    "CNN, 49 superpixels": _image_network,
}

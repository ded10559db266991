"""Whether the batch size that is found by timing is as fast as the best fixed one.

    python tests/benchmarks/batch_sizes.py [--quick] [--cpu] [--workloads NAME …] [--hosts NAME …]

Six models through both hosts. Fixed sizes and the default take turns, so that a busy machine slows
all of them alike. The median of the rounds counts: the fastest of several sizes and rounds would be
faster by chance than the fastest round of the default. About two minutes.

With --cpu, torch has one thread, and the time of the processor counts in place of the clock's, also
for the rule that finds the size. Other programs change that little.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import shap
import torch
from torch import Tensor, nn

import captum_ext
import shap_ext  # noqa: F401 # it makes shap know the algorithms
from shapley_adapters.games import evaluation as batched_evaluation

SIZES = (16, 32, 64, 128, 256, 1024, 4096)
"""Fixed numbers of evaluations of one call."""

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


class BoostedTrees(nn.Module):
    """LightGBM's prediction as a function of tensors."""

    def __init__(self, booster: Any) -> None:
        super().__init__()
        self.booster = booster

    def forward(self, x: Tensor) -> Tensor:
        """Return the raw scores, (n,)."""
        return torch.from_numpy(self.booster.predict(x.numpy(), raw_score=True))


class TextCNN(nn.Module):
    """Words, embedded, under convolutions of three widths."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_WORDS, 64)
        self.convolutions = nn.ModuleList(nn.Conv1d(64, 64, width) for width in (3, 4, 5))
        self.last = nn.Linear(192, 1)

    def forward(self, words: Tensor) -> Tensor:
        """Return scores, (n, 1)."""
        embedded = self.embedding(words.long()).transpose(1, 2)
        pooled = [torch.relu(layer(embedded)).amax(dim=2) for layer in self.convolutions]
        scores: Tensor = self.last(torch.cat(pooled, dim=1))
        return scores


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
        scores: Tensor = self.last(hidden)
        return scores


def main() -> None:
    """Print a line for each workload and host."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--hosts", nargs="+", choices=HOSTS, default=list(HOSTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--cpu", action="store_true", help="time of the processor, one thread")
    arguments = parser.parse_args()
    n_rounds = 2 if arguments.quick else arguments.rounds
    clock = time.perf_counter
    if arguments.cpu:
        torch.set_num_threads(1)
        clock = time.process_time
        vars(batched_evaluation)["perf_counter"] = clock
    print(
        f"torch {torch.__version__}, Python {platform.python_version()}, "
        f"{torch.get_num_threads()} threads. ms for each row with fixed sizes, with the default, "
        f"and the default over the best; median of {n_rounds} rounds."
    )
    head = "".join(f"{size:>8}" for size in SIZES)
    print(f"{'workload':26}{'host':8}{head}{'default':>9}{'ratio':>7}")
    for name in arguments.workloads:
        workload = WORKLOADS[name]()
        for host in arguments.hosts:
            seconds = _seconds(HOSTS[host](workload), n_rounds, clock)
            per_row = [1e3 * second / len(workload.rows) for second in seconds]
            cells = "".join(f"{ms:>8.2f}" for ms in per_row[:-1])
            ratio = per_row[-1] / min(per_row[:-1])
            print(f"{name:26}{host:8}{cells}{per_row[-1]:>9.2f}{ratio:>7.2f}", flush=True)


def _seconds(
    run: Callable[[int | None], object], n_rounds: int, clock: Callable[[], float]
) -> list[float]:
    """Return the time with each fixed size, then with the default."""
    sizes = [*SIZES, None]
    run(64)  # warm up
    seconds = np.empty((n_rounds, len(sizes)))
    for of_round in seconds:
        for place, size in enumerate(sizes):
            started = clock()
            run(size)
            of_round[place] = clock() - started
    medians: list[float] = np.median(seconds, axis=0).tolist()
    return medians


def _through_shap(workload: Workload) -> Callable[[int | None], object]:
    rows, shape = workload.rows.flatten(1).numpy(), workload.rows.shape[1:]
    module = workload.module.eval()

    def predict(x: Any) -> Any:
        with torch.no_grad():
            return module(torch.as_tensor(np.asarray(x)).reshape(-1, *shape)).numpy()

    groups = None
    if workload.mask is not None:
        places = workload.mask.flatten().numpy()
        groups = {str(k): np.flatnonzero(places == k).tolist() for k in range(places.max() + 1)}
    masker: Any = workload.background.flatten(1).numpy()
    if workload.uses_masker:
        masker = _without_words
    explainer = shap.Explainer(
        predict, masker, algorithm="leastsquares", seed=0, **({"groups": groups} if groups else {})
    )
    return lambda size: explainer(
        rows, max_evals=workload.budget, batch_size=size or "auto", silent=True
    )


def _without_words(mask: Any, words: Any) -> Any:
    return (mask * words)[None]


def _through_captum(workload: Workload) -> Callable[[int | None], object]:
    method = captum_ext.LeastSquares(workload.module.eval(), seed=0)
    n_rows, n_background = len(workload.rows), len(workload.background)
    baselines: Any = workload.background
    if n_background > 1:
        baselines = captum_ext.BaselineDistribution(workload.background)

    def run(size: int | None) -> object:
        # captum counts copies of all examples, with each of their baselines.
        each = None if size is None else max(1, size * n_background // n_rows)
        return method.attribute(
            workload.rows,
            baselines=baselines,
            n_samples=workload.budget,
            feature_mask=workload.mask,
            perturbations_per_eval=each,
        )

    return run


HOSTS = {"shap": _through_shap, "captum": _through_captum}


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


def _words(module: nn.Module, n_words: int, n_rows: int, budget: int) -> Workload:
    words = torch.randint(1, N_WORDS, (n_rows, n_words))
    return Workload(module, words, torch.zeros_like(words[:1]), budget, uses_masker=True)


def _text_network() -> Workload:
    torch.manual_seed(0)
    return _words(TextCNN(), 100, 4, 500)


def _transformer() -> Workload:
    torch.manual_seed(0)
    return _words(SmallTransformer(), 32, 4, 500)


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "tabular-network": _tabular_network,
    "trees-1-background": lambda: _boosted_trees(1, 500),
    "trees-100-background": lambda: _boosted_trees(100, 100),
    "image-49-superpixels": _image_network,
    "text-100-words": _text_network,
    "transformer": _transformer,
}


if __name__ == "__main__":
    main()

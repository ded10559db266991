"""What explanations take beside the model.

    python benchmarks/own_time.py [--quick] [--docs]

On four kinds of models: the time of a call for an evaluation over that of the plainest loop that
masks and evaluates the same rows, in batches of the best of four sizes; contenders and the loop
take turns, and medians count. Needs no data.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import captum.attr
import lightgbm
import numpy as np
import numpy.typing as npt
import pages
import pandas as pd
import shap
import torch
from neighbour_models import TextCNN
from torch import Tensor, nn

import shap_ext  # noqa: F401 # it makes shap know the algorithms

Run = Callable[[], object]

_ROUNDS = 3
FLOOR_SIZES = (64, 128, 256, 1024)
"""Evaluations of one call of the loop; the best size counts."""

# --- models ---


@dataclass(frozen=True)
class Workload:
    """A model with rows to explain.

    Attributes
    ----------
    module : nn.Module
        The model, of tensors.
    rows : Tensor, (R, M)
        What to explain.
    background : Tensor, (B, M)
        Values of absent features.
    budget : int
        Evaluations for each row.
    uses_masker : bool
        Whether shap masks the rows by a function, as texts, instead of by background rows.
    """

    module: nn.Module
    rows: Tensor
    background: Tensor
    budget: int
    uses_masker: bool = False

    @property
    def masker(self) -> Any:
        """What shap's explainers take as masker."""
        if self.uses_masker:
            return lambda mask, words: (mask * words)[None]
        return self.background.numpy()

    def predict(self, table: Any) -> npt.NDArray[Any]:
        """Return the model's outputs for a table, as a user of shap would write it."""
        with torch.no_grad():
            return self.module(torch.as_tensor(np.asarray(table), dtype=self.rows.dtype)).numpy()


class BoostedTrees(nn.Module):
    """LightGBM's prediction as a function of tensors."""

    def __init__(self, booster: Any) -> None:
        super().__init__()
        self.booster = booster

    def forward(self, x: Tensor) -> Tensor:
        """Return the raw scores, (n,)."""
        return torch.from_numpy(self.booster.predict(x.numpy(), raw_score=True))


def _network() -> Workload:
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
    )
    return Workload(module, torch.randn(200, 30), torch.zeros(1, 30), 500)


def _boosted_trees(n_rows: int, n_background: int, budget: int) -> Workload:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2000, 30))
    y = x[:, 0] * x[:, 1] + np.abs(x[:, 2]) + 0.1 * rng.standard_normal(2000)
    data = lightgbm.Dataset(x, y)
    booster = lightgbm.train({"verbosity": -1, "num_threads": 1}, data, num_boost_round=100)
    tensors = torch.from_numpy(x)
    return Workload(BoostedTrees(booster), tensors[:n_rows], tensors[-n_background:], budget)


def _text() -> Workload:
    torch.manual_seed(0)
    module, words = TextCNN(500, 1, 64, 64, (3, 4, 5)), torch.randint(1, 500, (4, 100))
    return Workload(module, words, torch.zeros_like(words[:1]), 500, uses_masker=True)


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "network of a table, 200 rows": _network,
    "text of 100 words": _text,
    "boosted trees, 200 rows": lambda: _boosted_trees(200, 1, 500),
    "the same, 100 background rows": lambda: _boosted_trees(8, 100, 100),
}


# --- overhead ---


# --- overhead ---


class CountingModel(nn.Module):
    """A model that counts the rows it is run on."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.n_rows_run = model, 0

    def forward(self, x: Tensor) -> Tensor:
        """Run the model."""
        self.n_rows_run += len(x)
        return self.model(x)


def by_shap(algorithm: str, workload: Workload, **options: str) -> Run:
    """Return a call of an algorithm of ours."""
    explainer = shap.Explainer(
        workload.predict, workload.masker, algorithm=algorithm, seed=0, **options
    )
    return partial(explainer, workload.rows.numpy(), max_evals=workload.budget, silent=True)


def by_permutation(workload: Workload) -> Run:
    """Return a call of shap's own."""
    explainer = shap.PermutationExplainer(workload.predict, workload.masker, seed=0)
    return partial(explainer, workload.rows.numpy(), max_evals=workload.budget, silent=True)


def by_sampling(workload: Workload) -> Run | None:
    """captum's sampling of permutations; it takes a single baseline for each row."""
    if len(workload.background) > 1:
        return None
    return partial(
        captum.attr.ShapleyValueSampling(workload.module).attribute, workload.rows,
        baselines=workload.background,
        n_samples=max(1, workload.budget // workload.rows.shape[1]),
        perturbations_per_eval=max(1, 256 // len(workload.rows)),
    )  # fmt: skip


CONTENDERS: dict[str, Callable[[Workload], Run | None]] = {
    "shap_ext `oddgp`": partial(by_shap, "oddgp"),
    "shap_ext `oddgp`, equal weights": partial(by_shap, "oddgp", weights="equal"),
    "shap_ext `randomorder`": partial(by_shap, "randomorder"),
    "shap_ext `leastsquares`": partial(by_shap, "leastsquares"),
    "shap permutation": by_permutation,
    "captum `ShapleyValueSampling`": by_sampling,
}
LOOP = "the loop, µs per evaluation"


def floor(workload: Workload, size: int) -> Run:
    """Return the plainest loop that masks and runs `budget` evaluations of each row."""
    n_background, n_players = workload.background.shape
    generator = torch.Generator().manual_seed(0)
    present = torch.rand(workload.budget, n_players, generator=generator) < 0.5

    def run() -> None:
        with torch.no_grad():
            for row in workload.rows:
                for some in torch.split(present, size):
                    masked = torch.where(some[:, None], row, workload.background)
                    outputs = workload.module(masked.flatten(0, 1))
                    outputs.reshape(len(some), n_background, -1).mean(1)

    return run


def overhead_of(workload: Workload, options: argparse.Namespace) -> dict[str, float]:
    """Return the time of each contender over that of the loop, and of the loop in microseconds."""
    workload.module.eval()
    if options.quick:
        workload = replace(workload, rows=workload.rows[:20])
    runs: dict[str, tuple[Run, float]] = {}
    for contender, prepare in CONTENDERS.items():
        counting = CountingModel(workload.module)
        counted, run = prepare(replace(workload, module=counting)), prepare(workload)
        if counted and run:
            counted()
            runs[contender] = run, counting.n_rows_run / len(workload.background)
    floors = [floor(workload, size) for size in FLOOR_SIZES]
    seconds = np.empty((1 if options.quick else _ROUNDS, len(floors) + len(runs)))
    for of_round in seconds:
        for index, run in enumerate([*floors, *(run for run, _ in runs.values())]):
            started = time.perf_counter()
            run()
            of_round[index] = time.perf_counter() - started
    medians = np.median(seconds, axis=0)
    each = medians[: len(floors)].min() / workload.budget / len(workload.rows)
    pairs = zip(runs.items(), medians[len(floors) :], strict=True)
    ratios = {name: spent / n_evaluations / each for (name, (_, n_evaluations)), spent in pairs}
    return {LOOP: 1e6 * each, **ratios}


def main() -> None:
    """Report the overhead of each contender on each model, the slowest first."""
    options = pages.read_options(__doc__)
    warnings.simplefilter("ignore")  # of contenders that are not ours
    workloads = list(WORKLOADS.items())[: 1 if options.quick else None]
    table = pd.DataFrame({title: overhead_of(make(), options) for title, make in workloads})
    # The loop, which nothing is slower than, is the row before the others.
    order = table.drop(index=LOOP).max(axis=1).sort_values(ascending=False).index
    texts = table.loc[[LOOP, *order]].map(pages.short)
    pages.report(options, "overhead", pages.table(["", *table], texts.itertuples()))


if __name__ == "__main__":
    main()

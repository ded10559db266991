"""Figures 2c and 2f of the SHEAR paper: a DeepFM on Criteo, 39 players."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from data_files import parts
from games import BoolArray, CoreGame, FloatArray, IntArray
from network_training import InputArray, LabelArray
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

import shapley_adapters as core
from shapley_adapters.criteria import absolute_error, ranking_accuracy

from .items import Comparison, Item, Outcome, Setting, difference
from .pictures import draw_budgets
from .shear import LEAST_ERROR

_FILE = "criteo_ctr/criteo_ctr.csv.gz"
_PER_PLAYER = (8, 16, 32)
_SHEAR, _PLAIN = "SHEAR", "PS"
_AS_RELEASED, _ANTITHETIC = "APS, authors' indices", "APS, all pairs"
_PAPER = "SHEAR"
_CODES = 500
"""Codes of the categories, by hashing; code 0 stands for an absent category."""


class DeepFM(nn.Module):
    """Linear terms, products of pairs of embedded features, and a hidden network of them.

    Numbers have one embedding each, times the number. Softplus as in the authors' networks.
    """

    def __init__(self, n_numbers: int, n_categories: int, width: int = 6) -> None:
        super().__init__()
        self.n_numbers = n_numbers
        n_codes = n_numbers + n_categories * (_CODES + 1)
        self.linear = nn.Embedding(n_codes, 1)
        self.embedding = nn.Embedding(n_codes, width)
        nn.init.normal_(self.embedding.weight, std=0.05)
        nn.init.zeros_(self.linear.weight)
        starts = n_numbers + torch.arange(n_categories) * (_CODES + 1)
        self.register_buffer("starts", torch.cat([torch.arange(n_numbers), starts]))
        self.hidden = nn.Sequential(
            nn.Linear((n_numbers + n_categories) * width, 32), nn.Softplus(), nn.Linear(32, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the logit of a click, (B,), of numbers and codes, (B, M)."""
        values = torch.cat([x[:, : self.n_numbers], torch.ones_like(x[:, self.n_numbers :])], 1)
        codes = torch.cat([torch.zeros_like(x[:, : self.n_numbers]), x[:, self.n_numbers :]], 1)
        places = codes.long() + self.starts  # type: ignore[operator] # a buffer
        embedded = self.embedding(places) * values[:, :, None]
        total = embedded.sum(1)
        pairs = 0.5 * (total**2 - (embedded**2).sum(1)).sum(1)
        first = (self.linear(places)[:, :, 0] * values).sum(1)
        return first + pairs + self.hidden(embedded.flatten(1))[:, 0]


@dataclass(frozen=True)
class _Clicks:
    """The network, rows to explain, the values of absent features, and the area under the curve."""

    network: DeepFM
    rows: InputArray
    reference: InputArray
    area: float

    def game(self) -> CoreGame:
        """Return the games of the logit."""

        def values_of(rows: IntArray, coalitions: BoolArray) -> FloatArray:
            inputs = np.where(coalitions, self.rows[rows], self.reference)
            with torch.no_grad():
                logits = self.network(torch.as_tensor(inputs, dtype=torch.float32))
            return logits.double().numpy()

        return CoreGame(values_of, self.rows.shape[1], len(self.rows), 4096)


def _clicks(setting: Setting, n_rows: int) -> _Clicks:
    frame = pd.read_csv(setting.data / _FILE, dtype={f"C{i}": str for i in range(1, 27)})
    labels: LabelArray = frame["label"].to_numpy(np.int64)
    numbers = frame[[f"I{i}" for i in range(1, 14)]].to_numpy(np.float64)
    logs = np.log1p(np.maximum(np.nan_to_num(numbers), 0))
    scaled = (logs - logs.mean(axis=0)) / logs.std(axis=0)
    codes = np.stack(
        [frame[f"C{i}"].fillna("missing").map(_code).to_numpy(float) for i in range(1, 27)], axis=1
    )
    inputs = np.concatenate([scaled, codes], axis=1).astype(np.float32)
    places = parts(len(inputs), setting.seed)
    network = _trained(inputs[places["training"]], labels[places["training"]], setting.seed)
    test = places["test"]
    with torch.no_grad():
        logits = network(torch.as_tensor(inputs[test])).numpy()
    area = float(roc_auc_score(labels[test], logits))
    return _Clicks(network, inputs[test[:n_rows]], np.zeros((1, 39), np.float32), area)


def _code(category: str) -> int:
    """Return a code of 1 or more; the same in every run."""
    return 1 + int(hashlib.md5(category.encode()).hexdigest(), 16) % _CODES


def _trained(inputs: InputArray, labels: LabelArray, seed: int) -> DeepFM:
    """Train on rows in which some features are absent, so that the network expects it."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = DeepFM(13, 26)
        optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=0.05)
        x, y = torch.as_tensor(inputs), torch.as_tensor(labels).float()
        for _ in range(15):
            for batch in torch.randperm(len(x)).split(64):
                present = torch.rand(len(batch), x.shape[1]) > 0.15
                loss = nn.functional.binary_cross_entropy_with_logits(
                    network(x[batch] * present), y[batch]
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return network.eval()


_Scores = dict[str, FloatArray]
"""Estimator to scores, (budgets, seeds, rows)."""


@cache
def _run(setting: Setting) -> tuple[_Scores, _Scores, dict[str, str]]:
    """Return absolute errors, accuracies of rankings, and settings."""
    n_rows, n_seeds, budget = (3, 1, 4_000) if setting.is_quick else (10, 2, 30_000)
    clicks = _clicks(setting, n_rows)
    game = clicks.game()
    converged = core.estimate(game, core.RandomOrder(), core.Settings(seed=99, budget=budget))
    exact = converged.values[:, :, 0]
    estimators: dict[str, Callable[[], Any]] = {
        _SHEAR: core.Shear,
        "KS": lambda: core.least_squares(False, "kernel", True, False),
        "KS-Pair": lambda: core.least_squares(True, "kernel", True, False),
        _PLAIN: lambda: core.RandomOrder(antithetic=False),
        _ANTITHETIC: core.RandomOrder,
    }

    def values(name: str, n: int, seed: int) -> FloatArray:
        settings = core.Settings(seed=seed, budget=n * 39 + 2)
        return core.estimate(game, estimators[name](), settings).values[:, :, 0]

    errors: _Scores = {}
    rankings: _Scores = {}
    for name in (*estimators, _AS_RELEASED):
        explain = partial(_as_released, values) if name == _AS_RELEASED else partial(values, name)
        found = [[explain(n, seed) for seed in range(n_seeds)] for n in _PER_PLAYER]
        errors[name] = np.array([[absolute_error(one, exact) for one in seeds] for seeds in found])
        rankings[name] = np.array(
            [[ranking_accuracy(one, exact) for one in seeds] for seeds in found]
        )
    off = np.sqrt(2 / np.pi) * converged.standard_errors[:, :, 0].sum(axis=1).mean()
    settings = {
        "data": "Criteo, 1,644 of its 45 million rows",
        "network": f"DeepFM, area under the curve {clicks.area:.2f}, logit of a click",
        "rows": str(n_rows),
        "draws": str(n_seeds),
        "values": f"permutations, {budget:,} evaluations a row, known to a Σ of {off:.2g}",
    }
    return errors, rankings, settings


def _as_released(values: Callable[[str, int, int], FloatArray], n: int, seed: int) -> FloatArray:
    """Return the mean of N orders of which two, as in the authors' code, have no reverse."""
    paired, single = values(_ANTITHETIC, n - 2, seed), values(_PLAIN, 2, seed + 1000)
    return ((n - 2) * paired + 2 * single) / n


def _figure(is_ranking: bool, setting: Setting) -> Outcome:
    """Compare SHEAR with the others; the paper has a picture without numbers."""
    errors, rankings, settings = _run(setting)
    scores = rankings if is_ranking else errors
    metric = "accuracy of the ranking" if is_ranking else "absolute error"
    comparisons = []
    for name, of_budgets in scores.items():
        for index, per_player in enumerate(_PER_PLAYER):
            if name in (_SHEAR, _ANTITHETIC):
                continue
            other = of_budgets[index].mean()
            own, plain = (scores[one][index].mean() for one in (_SHEAR, _PLAIN))
            if is_ranking:
                quantity = f"{metric} of {_SHEAR} less that of {name}, N = {per_player}"
                gaps = float(own - other), float(plain - other)
                comparisons.append(difference(quantity, *gaps, "above"))
            else:
                quantity = f"{metric} of {name} over that of {_SHEAR}, N = {per_player}"
                ratios = float(other / own), float(other / plain)
                comparisons.append(Comparison(quantity, None, *ratios, leads="above"))
    note = (
        "The paper computes all coalitions of 39 features, 2³⁹ a row, which is not possible; ours "
        "are converged values. Our estimators, each coalition paid for once: KS and KS-Pair are "
        "one regression on all of them, and SHEAR learns its cooperators from the same evaluations."
    )
    lines = {name: (_PER_PLAYER, of.mean(axis=(1, 2))) for name, of in scores.items()}
    return Outcome(comparisons, settings, (note,), partial(draw_budgets, lines, metric))


ITEMS = (
    Item(
        "shear-2c", "Absolute error on Criteo", f"{_PAPER}, Figure 2c", (LEAST_ERROR,),
        (_FILE,), 0.5, partial(_figure, False),
    ),
    Item(
        "shear-2f", "Accuracy of the ranking on Criteo", f"{_PAPER}, Figure 2f", (LEAST_ERROR,),
        (_FILE,), 0.5, partial(_figure, True),
    ),
)  # fmt: skip

"""Figures 2 and 3 and Tables 1 and 2 of L-Shapley and C-Shapley (Chen et al., ICLR 2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from games import FloatArray
from neighbour_models import Case, Contender, build, log_odds, log_probabilities, ours
from neighbour_models import Item as Input
from sklearn.linear_model import Ridge
from torch import nn

import captum_ext

from .items import Claim, Comparison, Item, Outcome, Setting
from .pictures import picture

_PER_PLAYER = 4
_PLAIN = "SampleShapley"
_KERNEL_WIDTH = 0.25
"""Of LIME for texts: 25, for distances in percent."""

SHARES = np.array([0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5])
_MEASURED = (SHARES > 0) & (SHARES <= 0.3)
"""The mean change over these shares of masked features is one number for a curve."""

_FILES = {
    "imdb": "imdb/imdb.csv.gz",
    "ag_news": "ag_news/ag_news.csv.gz",
    "yahoo": "yahoo_answers/yahoo_answers.csv.gz",
    "mnist": "mnist5k/mnist5k.npz",
    "cifar10": "cifar10/cifar10_train.npz",
}

_CONTROL = "plain orders (SampleShapley) in the place of the leader"
_LEADERS = {
    "imdb": (("L-Shapley",), "L-Shapley, achieves the best performance"),
    "ag_news": (("L-Shapley", "C-Shapley"), "L-Shapley and C-Shapley both outperform other "
                "algorithms"),
    "yahoo": (("C-Shapley",), "C-Shapley outperforms the rest of the algorithms by a large margin"),
    "mnist": (("C-Shapley",), "C-Shapley consistently outperforms other methods on both data sets"),
    "cifar10": (("C-Shapley",), "C-Shapley consistently outperforms other methods on both data "
                "sets"),
}  # fmt: skip
"""The methods that the paper says lead, and its words."""

_ACCURACIES = {"imdb": 0.901, "ag_news": 0.9009, "yahoo": 0.7084, "mnist": 0.997, "cifar10": 0.961}
_CLASSES = {"imdb": 2, "ag_news": 4, "yahoo": 10, "mnist": 2, "cifar10": 2}


@dataclass(frozen=True)
class _Curves:
    """How the log-odds change by masking, (inputs, shares), by method."""

    case: Case
    changes: Mapping[str, FloatArray]

    def mean(self, method: str) -> float:
        """Return the mean change over inputs and shares of masked features."""
        return float(self.changes[method][:, _MEASURED].mean())


def contenders(case: Case) -> dict[str, Contender]:
    """Return the methods of the figure; KernelSHAP and SampleShapley without pairs, as there."""
    of_all = {
        "C-Shapley": ours(captum_ext.CShapley, variant="regression"),
        "KernelSHAP": ours(captum_ext.LeastSquares, paired=False),
        _PLAIN: ours(captum_ext.RandomOrder, antithetic=False),
    }
    if case.is_text:
        return {"L-Shapley": ours(captum_ext.LShapley, order=1), **of_all, "LIME": _lime}
    return {**of_all, "Saliency": _saliency}


def _lime(model: nn.Module, item: Input, budget: int, seed: int) -> tuple[FloatArray, int]:
    """Explain by LIME as for texts: ridge regression on texts without a random number of words."""
    rng = np.random.default_rng(seed)
    n_removed = rng.integers(1, item.n_players + 1, budget)
    ranks = rng.random((budget, item.n_players)).argsort(axis=1).argsort(axis=1)
    present = np.concatenate(
        [np.ones((1, item.n_players), dtype=bool), ranks >= n_removed[:, None]]
    )
    target = _target(model, item)
    outputs = log_probabilities(model, item, present, target)
    distances = 1 - np.sqrt(present.mean(axis=1))  # of the cosine
    weights = np.sqrt(np.exp(-((distances / _KERNEL_WIDTH) ** 2)))
    fitted = Ridge(alpha=1.0).fit(present.astype(float), outputs, sample_weight=weights)
    return np.asarray(fitted.coef_), budget


def _saliency(model: nn.Module, item: Input, budget: int, seed: int) -> tuple[FloatArray, int]:
    """Explain by the absolute gradient, the largest over channels."""
    del budget, seed
    target = _target(model, item)
    inputs = item.inputs.clone().requires_grad_()
    output = torch.log_softmax(model(inputs), dim=1)[0, target]
    (gradient,) = torch.autograd.grad(output, inputs)
    return gradient.abs().amax(dim=1).flatten().double().numpy(), 1


def _target(model: nn.Module, item: Input) -> int:
    with torch.no_grad():
        return int(model(item.inputs).argmax())


def changes_by_masking(model: nn.Module, item: Input, attributions: FloatArray) -> FloatArray:
    """Return how the log-odds of the predicted class change, for each share of masked features."""
    ranks = np.argsort(np.argsort(-attributions, kind="stable"), kind="stable")
    present = ranks >= np.round(SHARES * item.n_players)[:, None]
    with torch.no_grad():
        target = int(model(item.inputs).argmax())
    odds = log_odds(model, item, present, target)
    changes: FloatArray = odds - odds[0]
    return changes


@cache
def _curves(name: str, setting: Setting, n_inputs: int) -> _Curves:
    case = build(
        name, setting.data, setting.cache, 3 if setting.is_quick else n_inputs, setting.seed
    )
    changes = {}
    for method, explain in contenders(case).items():
        changes[method] = np.array(
            [
                changes_by_masking(
                    case.model,
                    item,
                    explain(case.model, item, _PER_PLAYER * item.n_players + 2, seed)[0],
                )
                for seed, item in enumerate(case.items)
            ]
        )
    return _Curves(case, changes)


def _figure(name: str, n_inputs: int, setting: Setting) -> Outcome:
    """Compare the curves of the methods that the paper says lead with the others."""
    curves = _curves(name, setting, n_inputs)
    leaders, _ = _LEADERS[name]
    comparisons = []
    for leader in leaders:
        for other in curves.changes:
            if other in leaders:
                continue
            ours, control = (curves.mean(one) - curves.mean(other) for one in (leader, _PLAIN))
            quantity = f"change of log-odds by {leader} less that by {other}"
            comparisons.append(
                Comparison(quantity, None, ours, control, 0.0, "below", is_ratio=False)
            )
    case = curves.case
    settings = {
        "model": f"{case.title}, accuracy {case.accuracy:.3f}",
        "inputs": str(len(case.items)),
        "evaluations": f"{_PER_PLAYER} for each feature",
    }
    note = "Each number is the mean change for 5 to 30 % of the features masked; lower is better."
    return Outcome(comparisons, settings, (note,), partial(_draw, curves))


def _table_1(setting: Setting) -> Outcome:
    """Compare the accuracies of the models."""
    comparisons = []
    for name, theirs in _ACCURACIES.items():
        case = build(name, setting.data, setting.cache, 1, setting.seed)
        comparisons.append(
            Comparison(
                f"accuracy, {case.title}", theirs, case.accuracy, 1 / _CLASSES[name], None, None,
                False,
            )
        )  # fmt: skip
    note = (
        "Trained on 1,200 reviews (theirs 25,000), 4,600 news items (120,000), 600 questions "
        "(1,400,000) and 440 to 640 images of two classes (10,000 to 12,000). The character CNN "
        "has one layer of convolutions where theirs has six. The models are other models than the "
        "paper's; the figures compare explanations of these."
    )
    return Outcome(comparisons, {"data": "smaller than the paper's"}, notes=(note,))


def _draw(curves: _Curves, path: Path) -> None:
    names = "features masked, %", "change of the log-odds"
    with picture(path, (7, 4.5), *names, title=curves.case.title) as panel:
        for method, changes in curves.changes.items():
            error = changes.std(axis=0, ddof=1) / np.sqrt(len(changes))
            panel.errorbar(
                100 * SHARES, changes.mean(axis=0), error, marker="o", capsize=2, label=method
            )


_PAPER = "L- and C-Shapley"


def _item(name: str, title: str, number: str, n_inputs: int, minutes: float) -> Item:
    place = "Section 5.2" if name in ("mnist", "cifar10") else "Section 5.1"
    return Item(
        f"neighbours-{name.replace('_', '-')}",
        title,
        f"{_PAPER}, Figure {number}",
        (Claim(_LEADERS[name][1], place, _CONTROL),),
        (_FILES[name],),
        minutes,
        partial(_figure, name, n_inputs),
    )


ITEMS: Sequence[Item] = (
    Item(
        "neighbours-accuracy", "Accuracies of the models", f"{_PAPER}, Table 1 and Section 5.2",
        (Claim("“Accuracy” is the model accuracy on test samples", "Table 1",
               "one class for all inputs"),),
        tuple(_FILES.values()), 5, _table_1,
    ),
    _item("imdb", "Masked words of film reviews", "2 left", 20, 2),
    _item("ag_news", "Masked words of news", "2 middle", 60, 1),
    _item("yahoo", "Masked words of questions", "2 right", 30, 1),
    _item("mnist", "Masked pixels of digits", "3 left", 15, 1),
    _item("cifar10", "Masked pixels of deers and horses", "3 middle", 12, 3),
)  # fmt: skip

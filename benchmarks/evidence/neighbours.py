"""Tables and figures of L-Shapley and C-Shapley (Chen et al., ICLR 2019)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import torch
from games import FloatArray
from neighbour_models import (
    Case,
    Contender,
    _split,
    build,
    log_odds,
    log_probabilities,
    ours,
    texts,
    vocabulary,
)
from neighbour_models import Item as Input
from scipy.ndimage import binary_dilation
from sklearn.linear_model import Ridge
from torch import nn

import captum_ext

from .items import Claim, Comparison, Item, Outcome, Setting, difference
from .pictures import draw_images, draw_lines

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
    return odds - odds[0]


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
            comparisons.append(difference(quantity, ours, control, "below"))
    case = curves.case
    settings = {
        "model": f"{case.title}, accuracy {case.accuracy:.3f}",
        "inputs": str(len(case.items)),
        "evaluations": f"{_PER_PLAYER} for each feature",
    }
    note = "Each number is the mean change for 5 to 30 % of the features masked; lower is better."
    lines = {method: (100 * SHARES, of.mean(axis=0)) for method, of in curves.changes.items()}
    names = "features masked, %", "change of the log-odds"
    draw = partial(draw_lines, {case.title: lines}, *names)
    return Outcome(comparisons, settings, (note,), draw)


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


_ITEMS_OF_CURVES: Sequence[Item] = (
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


_SENTENCE = "It is not heartwarming or entertaining. It just sucks."
_MASKED = 0.2
_NEAR = 1
"""Pixels around a digit that are near it."""

_NEGATIVE = 0


# --- words ---


def _table_2(setting: Setting) -> Outcome:
    """Colour the sentence by the exact values and by the estimates of four methods; find “not”."""
    words, _, _ = texts(setting.data, "imdb")
    train, _ = _split(len(words), setting.seed)
    number = vocabulary([words[place] for place in train])
    case = build("imdb", setting.data, setting.cache, 1, setting.seed)
    shown = re.findall(r"\w+|[^\w\s]", _SENTENCE)
    ids = torch.tensor([[number.get(word.lower(), 1) for word in shown]])
    n_words = len(shown)
    item = Input(ids, torch.zeros_like(ids), torch.arange(n_words)[None], n_words, (n_words,))
    found = _of_sentence(case.model, item)
    place = shown.index("not")
    alone = _alone(case.model, item, place)
    comparisons = []
    for name, values in found.items():
        ours, control = (float(one / np.abs(values).max()) for one in (values[place], alone))
        quantity = f"share of “not” in the negative class, by {name}"
        comparisons.append(difference(quantity, ours, control, "above"))
    with torch.no_grad():
        probability = torch.softmax(case.model(ids), dim=1)[0, _NEGATIVE].item()
    settings = {
        "model": f"{case.title}, accuracy {case.accuracy:.3f}",
        "class": f"negative, probability {probability:.2f}",
        "evaluations": "4 for each word; all coalitions for the exact values",
    }
    note = "Log-probability of the negative class. Blue words speak for it, red words against it."
    return Outcome(comparisons, settings, (note,), partial(_draw_words, shown, found))


def _alone(model: nn.Module, item: Input, place: int) -> float:
    """Return what a word alone adds to the log-probability of the negative class."""
    present = np.zeros((2, item.n_players), dtype=bool)
    present[1, place] = True
    nothing, word = log_probabilities(model, item, present, _NEGATIVE)
    return float(word - nothing)


def _of_sentence(model: nn.Module, item: Input) -> dict[str, FloatArray]:
    made: dict[str, FloatArray] = {}
    kinds: dict[str, tuple[type[Any], dict[str, Any]]] = {
        "Shapley": (captum_ext.LeastSquares, {}),
        "C-Shapley": (captum_ext.CShapley, {"variant": "regression"}),
        "L-Shapley": (captum_ext.LShapley, {"order": 1}),
        "KernelSHAP": (captum_ext.LeastSquares, {"paired": False}),
        _PLAIN: (captum_ext.RandomOrder, {"antithetic": False}),
    }
    for name, (kind, options) in kinds.items():
        # Least squares on all coalitions are the exact values.
        budget = 2**item.n_players if name == "Shapley" else 4 * item.n_players + 2
        attribution = kind(model, seed=0, value_function="log_probability", **options)
        attribution.attribute(
            item.inputs, baselines=item.baseline, feature_mask=item.mask, target=_NEGATIVE,
            n_samples=budget,
        )  # fmt: skip
        made[name] = attribution.last_estimate.values[0, :, 0]
    return made


def _draw_words(shown: Sequence[str], found: Mapping[str, FloatArray], path: Path) -> None:
    figure, panel = plt.subplots(figsize=(9.5, 2.6), layout="constrained")
    shares = [values / np.abs(values).max() for values in found.values()]
    panel.imshow(shares, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    panel.set_xticks(range(len(shown)), shown)
    panel.set_yticks(range(len(found)), list(found))
    figure.savefig(path, dpi=90)
    plt.close(figure)


# --- pixels ---


def _digits(setting: Setting) -> Outcome:
    """Compare how many of the first fifth of the pixels are near the digit."""
    case = build("mnist", setting.data, setting.cache, 2 if setting.is_quick else 5, setting.seed)
    found = {
        method: [
            explain(case.model, item, 4 * item.n_players + 2, seed)[0]
            for seed, item in enumerate(case.items)
        ]
        for method, explain in contenders(case).items()
    }
    shares = {
        method: float(np.mean([_near(*one) for one in zip(case.items, of_items, strict=True)]))
        for method, of_items in found.items()
    }
    leader = "C-Shapley"
    comparisons = [
        difference(
            f"share of pixels near the digit by {leader} less that by {other}",
            shares[leader] - shares[other], shares[_PLAIN] - shares[other], "above",
        )
        for other in shares
        if other != leader
    ]  # fmt: skip
    note = (
        f"Of the {_MASKED:.0%} of the pixels ranked first, the share within {_NEAR} pixel of a "
        "bright one. Masked pixels are red if bright, else blue."
    )
    return Outcome(comparisons, _settings(case), (note,), partial(_draw_grid, case, found))


def _near(item: Input, values: FloatArray) -> float:
    """Return the share of the first pixels that lie on or around the digit."""
    digit = item.inputs[0, 0].numpy() > 0.5
    around = binary_dilation(digit, np.ones((3, 3), dtype=bool), _NEAR)
    return float(around.ravel()[_first(item, values)].mean())


def _first(item: Input, values: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which pixels rank first."""
    ranks = np.argsort(np.argsort(-values, kind="stable"), kind="stable")
    return ranks < round(_MASKED * item.n_players)


def _settings(case: Case) -> dict[str, str]:
    return {"model": f"{case.title}, accuracy {case.accuracy:.3f}", "evaluations": "4 a pixel"}


def _misclassified(setting: Setting) -> Outcome:
    """Mask the first pixels of all digits of the test part that the network tells wrong."""
    case = build("mnist", setting.data, setting.cache, 160, setting.seed)
    stored = np.load(setting.data / "mnist5k" / "mnist5k.npz")
    labels = stored["labels"][np.isin(stored["labels"], (3, 8))]
    _, test = _split(len(labels), setting.seed)
    truth = (labels[test[: len(case.items)]] == 8).astype(int)
    with torch.no_grad():
        told = torch.cat([case.model(item.inputs) for item in case.items]).argmax(1).numpy()
    wrong = [case.items[place] for place in np.flatnonzero(told != truth)]
    note = f"{len(wrong)} of {len(case.items)} test images are classified wrong by this network."
    if not wrong:
        return Outcome((), _settings(case), notes=(note,))
    explain = contenders(case)["C-Shapley"]
    values = [explain(case.model, item, 4 * item.n_players + 2, 0)[0] for item in wrong]
    rng = np.random.default_rng(setting.seed)
    anything = [rng.random(item.n_players) for item in wrong]
    at = int(np.flatnonzero(np.isclose(SHARES, _MASKED))[0])

    def change(of_items: Sequence[FloatArray]) -> float:
        pairs = zip(wrong, of_items, strict=True)
        return float(np.mean([changes_by_masking(case.model, *pair)[at] for pair in pairs]))

    quantity = f"change of log-odds of the wrong class, {_MASKED:.0%} of the pixels masked"
    comparison = difference(quantity, change(values), change(anything), "below")
    few = Case(case.name, case.title, case.model, case.accuracy, wrong)
    draw = partial(_draw_grid, few, {"C-Shapley": values})
    return Outcome((comparison,), _settings(case), notes=(note,), draw=draw)


def _draw_grid(case: Case, found: Mapping[str, Sequence[FloatArray]], path: Path) -> None:
    rows = {"original": list(map(_image, case.items))} | {
        name: list(map(_masked, case.items, of_items)) for name, of_items in found.items()
    }
    draw_images(rows, path)


def _image(item: Input) -> npt.NDArray[Any]:
    """Return the digit in grey, (height, width, 3)."""
    return np.repeat(np.moveaxis(item.inputs[0].numpy(), 0, -1), 3, axis=2)


def _masked(item: Input, values: FloatArray) -> npt.NDArray[Any]:
    """Return the digit with the first pixels coloured."""
    image, first = _image(item), _first(item, values).reshape(item.shape)
    is_bright = image.mean(axis=2) > 0.5
    image[first & ~is_bright], image[first & is_bright] = (0.1, 0.2, 0.9), (0.9, 0.1, 0.1)
    return image


_ITEMS_OF_PICTURES = (
    Item(
        "neighbours-words", "The words of a sentence, coloured", f"{_PAPER}, Table 2",
        (Claim("The word “not” plays an important role in the overall sentence as being classified "
               "as negative, and thus should be attributed a significant weight", "Section 2.2",
               "the word alone, which has “neither negative nor positive sentiment”"),),
        ("imdb/imdb.csv.gz",), 1.5, _table_2,
    ),
    Item(
        "neighbours-wrong", "Misclassified 3 and 8", f"{_PAPER}, Figure 3 right",
        (Claim("the important pixels to the model are exactly those which could form a digit from "
               "the opposite class", "Section 5.2", "random pixels"),),
        ("mnist5k/mnist5k.npz",), 0.3, _misclassified,
    ),
    Item(
        "neighbours-digits", "Masked pictures of digits", f"{_PAPER}, Figure 4",
        (Claim("the pixels picked by C-Shapley concentrate around and inside the digits in MNIST",
               "Section 5.2", "plain orders (SampleShapley) in C-Shapley's place"),),
        ("mnist5k/mnist5k.npz",), 0.5, _digits,
    ),
    Item(
        "neighbours-animals", "Masked pictures of deers and horses", f"{_PAPER}, Figure 5",
        reason="which pictures are “the most interpretable” (Section 5.2) is for people to say",
    ),
    Item(
        "neighbours-people", "Words that people judge by", f"{_PAPER}, human evaluation",
        reason="people judged 200 reviews",
    ),
)  # fmt: skip

ITEMS = (*_ITEMS_OF_CURVES, *_ITEMS_OF_PICTURES)

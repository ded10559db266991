"""Table 2 and Figures 3 (right), 4 and 5 of L-Shapley and C-Shapley: coloured words and pixels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import torch
from coalition_games import FloatArray
from neighbour_contenders import Contender, ours
from neighbour_models import Case, _split, build
from neighbour_models import Item as Input
from neighbour_texts import texts, vocabulary
from neighbours_accuracy import SHARES, changes_by_masking
from scipy.stats import sem, spearmanr
from torch import nn

import captum_ext

from .items import Comparison, Item, Outcome, Setting
from .neighbours import explain_by_saliency

mpl.use("Agg")
import matplotlib.pyplot as plt

_SENTENCE = "It is not heartwarming or entertaining. It just sucks."
_MASKED = 0.2
_PAPER = "L-Shapley and C-Shapley (Chen et al., 2019)"


# --- words ---


def _table_2(setting: Setting) -> Outcome:
    """Colour the sentence by the exact values and by the estimates of four methods."""
    words, _, _ = texts(setting.data, "imdb")
    train, _ = _split(len(words))
    number = vocabulary([words[place] for place in train])
    case = build("imdb", setting.data, setting.cache, 1)
    shown = re.findall(r"\w+|[^\w\s]", _SENTENCE)
    ids = torch.tensor([[number.get(word.lower(), 1) for word in shown]])
    n_words = len(shown)
    item = Input(ids, torch.zeros_like(ids), torch.arange(n_words)[None], n_words, (n_words,))
    found = _of_sentence(case.model, item)
    exact = found["Shapley"]
    comparisons = [
        Comparison(
            f"rank correlation of {name} with the exact values", None,
            float(spearmanr(values, exact).statistic), 0.0, "above", False,
        )
        for name, values in found.items()
        if name != "Shapley"
    ]  # fmt: skip
    table = {"": shown}
    for name, values in found.items():
        table[name] = [f"{value:+.2f}" for value in values]
    with torch.no_grad():
        probability = torch.softmax(case.model(ids), dim=1)[0, 0].item()
    settings = {
        "model": f"{case.title}, accuracy {case.accuracy:.3f}",
        "class": f"negative, probability {probability:.2f}",
        "evaluations": "4 for each word; all coalitions for the exact values",
    }
    note = "Log-probability of the negative class. Blue words speak for it, red words against it."
    return Outcome(comparisons, settings, table, (note,), partial(_draw_words, shown, found))


def _of_sentence(model: nn.Module, item: Input) -> dict[str, FloatArray]:
    negative = 0
    made: dict[str, FloatArray] = {}
    kinds: dict[str, tuple[type[Any], dict[str, Any]]] = {
        "Shapley": (captum_ext.LeastSquares, {}),
        "C-Shapley": (captum_ext.CShapley, {"variant": "regression"}),
        "L-Shapley": (captum_ext.LShapley, {"order": 1}),
        "KernelSHAP": (captum_ext.LeastSquares, {"paired": False}),
        "SampleShapley": (captum_ext.RandomOrder, {"antithetic": False}),
    }
    for name, (kind, options) in kinds.items():
        # Least squares on all coalitions are the exact values.
        budget = 2**item.n_players if name == "Shapley" else 4 * item.n_players + 2
        attribution = kind(model, seed=0, value_function="log_probability", **options)
        attribution.attribute(
            item.inputs, baselines=item.baseline, feature_mask=item.mask, target=negative,
            n_samples=budget,
        )  # fmt: skip
        made[name] = attribution.last_estimate.values[0, :, 0]
    return made


def _draw_words(shown: Sequence[str], found: Mapping[str, FloatArray], path: Path) -> None:
    figure, panel = plt.subplots(figsize=(9.5, 2.6), layout="constrained")
    colours = mpl.colormaps["RdBu"]
    starts = np.cumsum([0.0, *(0.35 + 0.2 * len(word) for word in shown)])
    for line, (name, values) in enumerate(found.items()):
        panel.text(-0.3, -line, name, ha="right", va="center", fontsize=10)
        for place, word in enumerate(shown):
            share = values[place] / np.abs(values).max()
            panel.text(
                starts[place], -line, word, va="center", fontsize=11,
                bbox={"facecolor": colours(0.5 + 0.4 * share), "edgecolor": "none", "pad": 2},
            )  # fmt: skip
    panel.set_xlim(-3, starts[-1])
    panel.set_ylim(-len(found) + 0.4, 0.6)
    panel.axis("off")
    figure.savefig(path, dpi=100)
    plt.close(figure)


# --- pixels ---


def _contenders() -> dict[str, Contender]:
    return {
        "C-Shapley": ours(captum_ext.CShapley, variant="regression"),
        "KernelSHAP": ours(captum_ext.LeastSquares, paired=False),
        "SampleShapley": ours(captum_ext.RandomOrder, antithetic=False),
        "Saliency": explain_by_saliency,
    }


def _grid(name: str, setting: Setting) -> Outcome:
    """Mask the first fifth of the pixels of some images by four methods."""
    case = build(name, setting.data, setting.cache, 2 if setting.is_quick else 5)
    found = {
        method: [
            explain(case.model, item, 4 * item.n_players + 2, seed)[0]
            for seed, item in enumerate(case.items)
        ]
        for method, explain in _contenders().items()
    }
    at = int(np.flatnonzero(np.isclose(SHARES, _MASKED))[0])
    changes = {
        method: np.array(
            [
                changes_by_masking(case.model, item, values)[at]
                for item, values in zip(case.items, of_items, strict=True)
            ]
        )
        for method, of_items in found.items()
    }
    comparisons = [
        Comparison(
            f"change of log-odds by C-Shapley less that by {other}, {_MASKED:.0%} masked", None,
            float((changes["C-Shapley"] - changes[other]).mean()), 0.0, "below", False,
            float(sem(changes["C-Shapley"] - changes[other])),
        )
        for other in changes
        if other != "C-Shapley"
    ]  # fmt: skip
    note = (
        "The paper shows pictures only and says that C-Shapley's are the easiest to understand; "
        "the numbers are of these few images. "
    )
    note += "Masked pixels are red if bright, else blue." if name == "mnist" else "Masked: grey."
    settings = {"model": f"{case.title}, accuracy {case.accuracy:.3f}", "evaluations": "4 a pixel"}
    return Outcome(comparisons, settings, notes=(note,), draw=partial(_draw_grid, case, found))


def _misclassified(setting: Setting) -> Outcome:
    """Mask the first pixels of a wrong 3 and a wrong 8, or of those nearest to it."""
    case = build("mnist", setting.data, setting.cache, 160)
    stored = np.load(setting.data / "mnist5k" / "mnist5k.npz")
    labels = stored["labels"][np.isin(stored["labels"], (3, 8))]
    _, test = _split(len(labels))
    truth = (labels[test[: len(case.items)]] == 8).astype(int)
    with torch.no_grad():
        logits = torch.cat([case.model(item.inputs) for item in case.items])
    margins = (logits[:, 1] - logits[:, 0]).numpy() * (2 * truth - 1)
    places = [min(np.flatnonzero(truth == label), key=lambda p: margins[p]) for label in (0, 1)]
    explain = _contenders()["C-Shapley"]
    items = [case.items[place] for place in places]
    values = [explain(case.model, item, 4 * item.n_players + 2, 0)[0] for item in items]
    at = int(np.flatnonzero(np.isclose(SHARES, _MASKED))[0])
    comparisons, told = [], []
    for digit, place, item, own in zip((3, 8), places, items, values, strict=True):
        change = float(changes_by_masking(case.model, item, own)[at])
        wrong = "wrongly classified" if margins[place] < 0 else "classified right, by the least"
        told.append(f"the {digit} is {wrong} (margin {margins[place]:.1f})")
        quantity = f"change of log-odds of the predicted class, image of {digit}"
        comparisons.append(Comparison(quantity, None, change, 0.0, "below", False))
    note = f"Of {len(case.items)} test images, {' and '.join(told)}."
    few = Case(case.name, case.title, case.model, case.accuracy, items)
    draw = partial(_draw_grid, few, {"C-Shapley": values})
    settings = {"model": f"{case.title}, accuracy {case.accuracy:.3f}", "evaluations": "4 a pixel"}
    return Outcome(comparisons, settings, notes=(note,), draw=draw)


def _draw_grid(case: Case, found: Mapping[str, Sequence[FloatArray]], path: Path) -> None:
    n_columns = len(case.items)
    figure, panels = plt.subplots(
        len(found) + 1, n_columns, figsize=(1.5 * n_columns + 1, 1.5 * (len(found) + 1)),
        layout="constrained", squeeze=False,
    )  # fmt: skip
    for column, item in enumerate(case.items):
        image = _image(item)
        panels[0, column].imshow(image)
        for line, of_items in enumerate(found.values(), start=1):
            panels[line, column].imshow(_masked(image, of_items[column], item))
    for line, name in enumerate(("original", *found)):
        panels[line, 0].set_ylabel(name, fontsize=8)
        for panel in panels[line]:
            panel.set_xticks([])
            panel.set_yticks([])
    figure.savefig(path, dpi=80)
    plt.close(figure)


def _image(item: Input) -> npt.NDArray[Any]:
    """Return the colours, (height, width, 3)."""
    pixels = np.moveaxis(item.inputs[0].numpy(), 0, -1)
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels


def _masked(image: npt.NDArray[Any], values: FloatArray, item: Input) -> npt.NDArray[Any]:
    """Return the image with the first pixels coloured."""
    ranks = np.argsort(np.argsort(-values, kind="stable"), kind="stable")
    first = (ranks < round(_MASKED * item.n_players)).reshape(item.shape)
    shown = image.copy()
    is_digit = item.inputs.shape[1] == 1
    bright = first & (image.mean(axis=2) > 0.5)
    shown[first] = (0.1, 0.2, 0.9) if is_digit else (0.5, 0.5, 0.5)
    if is_digit:
        shown[bright] = (0.9, 0.1, 0.1)
    return shown


ITEMS = (
    Item(
        "neighbours-words", "The words of a sentence, coloured", f"{_PAPER}, Table 2",
        ("imdb/imdb.csv.gz",), 0.3, _table_2,
    ),
    Item(
        "neighbours-wrong", "A misclassified 3 and 8", f"{_PAPER}, Figure 3 right",
        ("mnist5k/mnist5k.npz",), 0.3, _misclassified,
    ),
    Item(
        "neighbours-digits", "Masked pictures of digits", f"{_PAPER}, Figure 4",
        ("mnist5k/mnist5k.npz",), 0.5, partial(_grid, "mnist"),
    ),
    Item(
        "neighbours-animals", "Masked pictures of deers and horses", f"{_PAPER}, Figure 5",
        ("cifar10/cifar10_train.npz", "cifar10/cifar10_test.npz"), 1, partial(_grid, "cifar10"),
    ),
)  # fmt: skip

"""Table 2, Figures 3 (right), 4 and 5 and the people of L-Shapley and C-Shapley."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import torch
from games import FloatArray
from neighbour_models import Case, _split, build, log_probabilities, texts, vocabulary
from neighbour_models import Item as Input
from scipy.ndimage import binary_dilation
from torch import nn

import captum_ext

from .items import Claim, Comparison, Item, Outcome, Setting
from .neighbours import SHARES, changes_by_masking, contenders
from .pictures import picture

_SENTENCE = "It is not heartwarming or entertaining. It just sucks."
_MASKED = 0.2
_NEAR = 1
"""Pixels around a digit that are near it."""

_PLAIN = "SampleShapley"
_NEGATIVE = 0
_PAPER = "L- and C-Shapley"


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
    comparisons = [
        Comparison(
            f"share of “not” in the negative class, by {name}", None,
            float(values[place] / np.abs(values).max()), alone / float(np.abs(values).max()),
            0.0, "above", False,
        )
        for name, values in found.items()
    ]  # fmt: skip
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
    colours = mpl.colormaps["RdBu"]
    starts = np.cumsum([0.0, *(0.35 + 0.2 * len(word) for word in shown)])
    with picture(path, (9.5, 2.6), has_grid=False, legend=None) as panel:
        for line, (name, values) in enumerate(found.items()):
            panel.text(-0.3, -line, name, ha="right", va="center", fontsize=10)
            for place, word in enumerate(shown):
                share = values[place] / np.abs(values).max()
                panel.text(
                    starts[place], -line, word, va="center", fontsize=11,
                    bbox={"facecolor": colours(0.5 + 0.4 * share), "edgecolor": "none", "pad": 2},
                )  # fmt: skip
        panel.set(xlim=(-3, starts[-1]), ylim=(-len(found) + 0.4, 0.6))
        panel.axis("off")


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
        Comparison(
            f"share of pixels near the digit by {leader} less that by {other}", None,
            shares[leader] - shares[other], shares[_PLAIN] - shares[other], 0.0, "above", False,
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
    first: npt.NDArray[np.bool_] = ranks < round(_MASKED * item.n_players)
    return first


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
    comparison = Comparison(
        quantity, None, change(values), change(anything), 0.0, "below", is_ratio=False
    )
    few = Case(case.name, case.title, case.model, case.accuracy, wrong)
    draw = partial(_draw_grid, few, {"C-Shapley": values})
    return Outcome((comparison,), _settings(case), notes=(note,), draw=draw)


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
    """Return the digit in grey, (height, width, 3)."""
    return np.repeat(np.moveaxis(item.inputs[0].numpy(), 0, -1), 3, axis=2)


def _masked(image: npt.NDArray[Any], values: FloatArray, item: Input) -> npt.NDArray[Any]:
    """Return the digit with the first pixels coloured."""
    first = _first(item, values).reshape(item.shape)
    shown = image.copy()
    shown[first] = (0.1, 0.2, 0.9)
    shown[first & (image.mean(axis=2) > 0.5)] = (0.9, 0.1, 0.1)
    return shown


ITEMS = (
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

"""Tables and figures of L-Shapley and C-Shapley (Chen et al., ICLR 2019)."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import torch
from games import FloatArray, LargeGame
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
from peers import CountedGame, by_lime
from scipy.ndimage import binary_dilation
from torch import nn

import captum_ext

from .items import Claim, Comparison, Item, Outcome, Setting, difference
from .pictures import draw_images, draw_lines

_PER_PLAYER = 4
_PLAIN = "SampleShapley"

SHARES = np.array([0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5])
_MEASURED = (SHARES > 0) & (SHARES <= 0.3)
"""The mean change over these shares of masked features is one number for a curve."""

_CONTROL = "plain orders (SampleShapley) in the place of the leader"


class _Set(NamedTuple):
    """Data, published accuracy, classes, and which methods lead, in the words of the paper."""

    file: str
    accuracy: float
    n_classes: int
    leaders: tuple[str, ...]
    quote: str


_CONSISTENTLY = "C-Shapley consistently outperforms other methods on both data sets"
_SETS = {
    "imdb": _Set("imdb/imdb.csv.gz", 0.901, 2, ("L-Shapley",),
                 "L-Shapley, achieves the best performance"),
    "ag_news": _Set("ag_news/ag_news.csv.gz", 0.9009, 4, ("L-Shapley", "C-Shapley"),
                    "L-Shapley and C-Shapley both outperform other algorithms"),
    "yahoo": _Set("yahoo_answers/yahoo_answers.csv.gz", 0.7084, 10, ("C-Shapley",),
                  "C-Shapley outperforms the rest of the algorithms by a large margin"),
    "mnist": _Set("mnist5k/mnist5k.npz", 0.997, 2, ("C-Shapley",), _CONSISTENTLY),
    "cifar10": _Set("cifar10/cifar10_train.npz", 0.961, 2, ("C-Shapley",), _CONSISTENTLY),
}  # fmt: skip


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


def _lime(model: nn.Module, item: Input, budget: int, seed: int) -> FloatArray:
    """Explain by LIME as for texts: ridge regression on texts without a random number of words."""
    of_class = partial(log_probabilities, model, item, target=_target(model, item))
    game = LargeGame(of_class, np.zeros(item.n_players))
    return by_lime(CountedGame(game), budget, seed).values


def _saliency(model: nn.Module, item: Input, budget: int, seed: int) -> FloatArray:
    """Explain by the absolute gradient, the largest over channels."""
    del budget, seed
    target = _target(model, item)
    inputs = item.inputs.clone().requires_grad_()
    output = torch.log_softmax(model(inputs), dim=1)[0, target]
    (gradient,) = torch.autograd.grad(output, inputs)
    return gradient.abs().amax(dim=1).flatten().double().numpy()


def _target(model: nn.Module, item: Input) -> int:
    with torch.no_grad():
        return int(model(item.inputs).argmax())


def _mean_changes(
    model: nn.Module, items: Sequence[Input], attributions: Sequence[FloatArray]
) -> FloatArray:
    """Return how the log-odds of the predicted class change, for each share of masked features."""
    changes = []
    for item, values in zip(items, attributions, strict=True):
        ranks = np.argsort(np.argsort(-values, kind="stable"), kind="stable")
        present = ranks >= np.round(SHARES * item.n_players)[:, None]
        odds = log_odds(model, item, present, _target(model, item))
        changes.append(odds - odds[0])
    return np.mean(changes, axis=0)


def _explained(case: Case) -> dict[str, list[FloatArray]]:
    """Return the attributions of all inputs by each method."""
    return {
        method: [
            explain(case.model, item, _PER_PLAYER * item.n_players + 2, seed)
            for seed, item in enumerate(case.items)
        ]
        for method, explain in contenders(case).items()
    }


def _case(name: str, setting: Setting, n_inputs: int) -> Case:
    return build(name, setting.data, setting.cache, n_inputs, setting.seed)


def _figure(name: str, n_inputs: int, setting: Setting) -> Outcome:
    """Compare the curves of the methods that the paper says lead with the others."""
    case, leaders = _case(name, setting, 3 if setting.is_quick else n_inputs), _SETS[name].leaders
    curves = {
        method: _mean_changes(case.model, case.items, found)
        for method, found in _explained(case).items()
    }
    means = {method: float(curve[_MEASURED].mean()) for method, curve in curves.items()}
    comparisons = [
        difference(
            f"change of log-odds by {leader} less that by {other}",
            means[leader] - means[other], means[_PLAIN] - means[other], "below",
        )
        for leader in leaders
        for other in means
        if other not in leaders
    ]  # fmt: skip
    settings = {
        "model": f"{case.title}, accuracy {case.accuracy:.3f}",
        "inputs": str(len(case.items)),
        "evaluations": f"{_PER_PLAYER} for each feature",
    }
    note = "Each number is the mean change for 5 to 30 % of the features masked; lower is better."
    lines = {method: (100 * SHARES, curve) for method, curve in curves.items()}
    draw = partial(draw_lines, {case.title: lines}, "features masked, %", "change of the log-odds")
    return Outcome(comparisons, settings, (note,), draw)


def _table_1(setting: Setting) -> Outcome:
    """Compare the accuracies of the models."""
    comparisons = []
    for name, of in _SETS.items():
        case, by_chance = _case(name, setting, 1), 1 / of.n_classes
        quantity = f"accuracy, {case.title}"
        comparisons.append(
            Comparison(quantity, of.accuracy, case.accuracy, by_chance, None, None, False)
        )
    note = (
        "Trained on 1,200 reviews (theirs 25,000), 4,600 news items (120,000), 600 questions "
        "(1,400,000) and 440 to 640 images of two classes (10,000 to 12,000). The character CNN "
        "has one layer of convolutions where theirs has six. The models are other models than the "
        "paper's; the figures compare explanations of these."
    )
    return Outcome(comparisons, {"data": "smaller than the paper's"}, notes=(note,))


_PAPER = "L- and C-Shapley"


_ITEMS_OF_CURVES: Sequence[Item] = (
    Item(
        "neighbours-accuracy", "Accuracies of the models", f"{_PAPER}, Table 1 and Section 5.2",
        (Claim("“Accuracy” is the model accuracy on test samples", "Table 1",
               "one class for all inputs"),),
        tuple(of.file for of in _SETS.values()), 5, _table_1,
    ),
    *(
        Item(
            f"neighbours-{name.replace('_', '-')}", f"Masked {title}", f"{_PAPER}, Figure {number}",
            (Claim(_SETS[name].quote, f"Section 5.{2 if number > '3' else 1}", _CONTROL),),
            (_SETS[name].file,), minutes, partial(_figure, name, n_inputs),
        )
        for name, title, number, n_inputs, minutes in (
            ("imdb", "words of film reviews", "2 left", 20, 2),
            ("ag_news", "words of news", "2 middle", 60, 1),
            ("yahoo", "words of questions", "2 right", 30, 1),
            ("mnist", "pixels of digits", "3 left", 15, 1),
            ("cifar10", "pixels of deers and horses", "3 middle", 12, 3),
        )
    ),
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
    case = _case("imdb", setting, 1)
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
    case = _case("mnist", setting, 2 if setting.is_quick else 5)
    found = _explained(case)
    shares = {method: np.mean(list(map(_near, case.items, of))) for method, of in found.items()}
    leader = "C-Shapley"
    comparisons = [
        difference(
            f"share of pixels near the digit by {leader} less that by {other}",
            float(shares[leader] - share), float(shares[_PLAIN] - share), "above",
        )
        for other, share in shares.items()
        if other != leader
    ]  # fmt: skip
    note = (
        f"Of the {_MASKED:.0%} of the pixels ranked first, the share within {_NEAR} pixel of a "
        "bright one. Masked pixels are red if bright, else blue."
    )
    return Outcome(comparisons, _settings(case), (note,), partial(_draw_grid, case.items, found))


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
    case = _case("mnist", setting, 160)
    labels = np.load(setting.data / "mnist5k" / "mnist5k.npz")["labels"]
    labels = labels[np.isin(labels, (3, 8))]
    truth = labels[_split(len(labels), setting.seed)[1][: len(case.items)]] == 8
    told = [_target(case.model, item) for item in case.items]
    wrong = [case.items[place] for place in np.flatnonzero(told != truth)]
    note = f"{len(wrong)} of {len(case.items)} test images are classified wrong by this network."
    if not wrong:
        return Outcome((), _settings(case), notes=(note,))
    explain = contenders(case)["C-Shapley"]
    values = [explain(case.model, item, _PER_PLAYER * item.n_players + 2, 0) for item in wrong]
    rng = np.random.default_rng(setting.seed)
    ours, control = (
        _mean_changes(case.model, wrong, of)[np.isclose(SHARES, _MASKED)].item()
        for of in (values, [rng.random(item.n_players) for item in wrong])
    )
    quantity = f"change of log-odds of the wrong class, {_MASKED:.0%} of the pixels masked"
    comparison = difference(quantity, ours, control, "below")
    draw = partial(_draw_grid, wrong, {"C-Shapley": values})
    return Outcome((comparison,), _settings(case), notes=(note,), draw=draw)


def _draw_grid(
    items: Sequence[Input], found: Mapping[str, Sequence[FloatArray]], path: Path
) -> None:
    masked = {name: list(map(_masked, items, values)) for name, values in found.items()}
    draw_images({"original": list(map(_image, items)), **masked}, path)


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

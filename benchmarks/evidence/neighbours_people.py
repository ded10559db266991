"""The human evaluation of L-Shapley and C-Shapley with a linear model in the place of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
from coalition_games import BoolArray, FloatArray
from neighbour_contenders import Contender, ours
from neighbour_models import _split, build
from neighbour_texts import texts
from scipy.stats import sem
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

import captum_ext

from .items import Comparison, Item, Outcome, Setting

mpl.use("Agg")
import matplotlib.pyplot as plt

_FILE = "imdb/imdb.csv.gz"
_N_SELECTED = 10
_LONGEST = 400
"""Words of a review that the network reads."""

_RAW = 0.880
_SELECTED = {"L-Shapley": 0.970, "C-Shapley": 0.990, "KernelSHAP": 0.960}
_MASKED = {"L-Shapley": 0.615, "C-Shapley": 0.830, "KernelSHAP": 0.660}
_SHARES = {"L-Shapley": 0.1436, "C-Shapley": 0.1475, "KernelSHAP": 0.3160}
"""Consistency with ten selected words, with words masked, and the share that was masked."""


@dataclass(frozen=True)
class _Review:
    """The words of a review, the class that the network predicts, and its attributions."""

    words: Sequence[str]
    predicted: int
    attributions: Mapping[str, FloatArray]


def _people(setting: Setting) -> Outcome:
    """Compare how often the judge finds the network's class, in whole reviews and in parts."""
    n_reviews = 4 if setting.is_quick else 50
    reviews, accuracy = _reviews(setting, n_reviews)
    judge, of_judge = _judge(setting)
    raw = _agreements(judge, reviews, [np.ones(len(r.words), dtype=bool) for r in reviews])
    comparisons, table = [], {"": ["published", "ours"]}
    table["raw reviews"] = [f"{_RAW:.3f}", f"{raw.mean():.3f}"]
    found: dict[str, tuple[float, float]] = {}
    for method, of_selected in _SELECTED.items():
        selected = _agreements(judge, reviews, [_first(r, method, _N_SELECTED) for r in reviews])
        left = [~_first(r, method, round(_SHARES[method] * len(r.words))) for r in reviews]
        masked = _agreements(judge, reviews, left)
        for name, theirs, shares in (
            (f"{method}, ten words selected", of_selected, selected),
            (f"{method}, {_SHARES[method]:.0%} of the words masked", _MASKED[method], masked),
        ):
            table[name] = [f"{theirs:.3f}", f"{shares.mean():.3f}"]
            comparisons.append(_difference(f"{name}, less raw", theirs - _RAW, shares - raw))
        found[method] = float(selected.mean()), float(masked.mean())
    settings = {
        "model": f"IMDB, word CNN, accuracy {accuracy:.3f}",
        "judge": f"logistic regression on TF-IDF, accuracy {of_judge:.3f}",
        "reviews": str(len(reviews)),
        "evaluations": "4 for each word",
    }
    note = (
        "**A substitute, not the experiment**: people read the reviews there, and a linear model "
        "does here. Consistency is the share of the reviews in which the judge finds the class "
        "that the network predicts. As many words are masked as in the published table."
    )
    return Outcome(comparisons, settings, table, (note,), partial(_draw, float(raw.mean()), found))


def _difference(quantity: str, theirs: float, gaps: FloatArray) -> Comparison:
    return Comparison(
        quantity, theirs, float(gaps.mean()), 0.0, is_ratio=False, error=float(sem(gaps))
    )


def _reviews(setting: Setting, n_reviews: int) -> tuple[list[_Review], float]:
    """Explain reviews of the test part by all methods."""
    case = build("imdb", setting.data, setting.cache, n_reviews)
    contenders: dict[str, Contender] = {
        "L-Shapley": ours(captum_ext.LShapley, order=1),
        "C-Shapley": ours(captum_ext.CShapley, variant="regression"),
        "KernelSHAP": ours(captum_ext.LeastSquares, paired=False),
    }
    words, _, _ = texts(setting.data, "imdb")
    _, test = _split(len(words))
    longer = [place for place in test if len(words[place]) >= 8]  # as the inputs are chosen
    reviews = []
    for seed, (item, place) in enumerate(zip(case.items, longer, strict=False)):
        own = words[place][:_LONGEST]
        assert len(own) == item.n_players
        budget = 4 * item.n_players + 2
        attributions = {
            name: explain(case.model, item, budget, seed)[0] for name, explain in contenders.items()
        }
        predicted = int(case.model(item.inputs).argmax())
        reviews.append(_Review(own, predicted, attributions))
    return reviews, case.accuracy


def _judge(setting: Setting) -> tuple[Pipeline, float]:
    """Return a linear model of the training reviews, and its accuracy on the test part."""
    words, labels, _ = texts(setting.data, "imdb")
    train, test = _split(len(words))
    joined = [" ".join(text) for text in words]
    vectors = TfidfVectorizer(token_pattern=r"\S+", min_df=2, sublinear_tf=True)
    judge = make_pipeline(vectors, LogisticRegression(C=10.0))
    judge.fit([joined[place] for place in train], labels[train].numpy())
    accuracy = judge.score([joined[place] for place in test], labels[test].numpy())
    return judge, float(accuracy)


def _first(review: _Review, method: str, n: int) -> BoolArray:
    """Return which words rank first."""
    ranks = np.argsort(np.argsort(-review.attributions[method], kind="stable"), kind="stable")
    first: BoolArray = ranks < n
    return first


def _agreements(
    judge: Pipeline, reviews: Sequence[_Review], shown: Sequence[BoolArray]
) -> FloatArray:
    """Return 1 where the judge finds the predicted class from the words that are shown."""
    seen = [
        " ".join(np.array(review.words)[which])
        for review, which in zip(reviews, shown, strict=True)
    ]
    predicted = np.array([review.predicted for review in reviews])
    agreements: FloatArray = (judge.predict(seen) == predicted).astype(np.float64)
    return agreements


def _draw(raw: float, found: Mapping[str, tuple[float, float]], path: Path) -> None:
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
    titles = ("ten words selected", "words masked")
    for index, (panel, published) in enumerate(zip(panels, (_SELECTED, _MASKED), strict=True)):
        at = np.arange(len(found))
        panel.bar(at - 0.2, [published[m] for m in found], 0.4, label="people (published)")
        panel.bar(at + 0.2, [found[m][index] for m in found], 0.4, label="linear model (ours)")
        panel.axhline(_RAW, color="C0", linestyle=":")
        panel.axhline(raw, color="C1", linestyle=":")
        panel.set_xticks(at, list(found))
        panel.set_title(titles[index])
    panels[0].set_ylabel("consistency (dotted: raw reviews)")
    panels[0].set_ylim(0, 1.25)
    panels[0].legend(fontsize=8, loc="upper left")
    figure.savefig(path, dpi=90)
    plt.close(figure)


ITEMS = (
    Item(
        "neighbours-people", "Words that people judge by, with a model as the judge",
        "L-Shapley and C-Shapley (Chen et al., 2019), human evaluation (slides, Table 3)",
        (_FILE,), 1.5, _people,
    ),
)  # fmt: skip

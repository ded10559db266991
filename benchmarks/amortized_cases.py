"""Models to explain by networks: rows to train on, rows to judge by, and what fits them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from adult import training_rows
from cases import prepare
from coalition_games import FloatArray
from digit_and_word_networks import SIDE, training_images
from explained_models import Case
from scipy.stats import norm
from tables import companies, news

_QUANTILES = 200

_IMAGES = ("image", "image-fine")
_TREES = ("table", "news")

TEST_ROWS = {
    "adult-elu": 400,
    "adult-relu": 400,
    "table": 64,
    "table-net": 40,
    "news": 200,
    "news-net": 40,
    "image": 40,
    "image-fine": 40,
}
"""Models, and how many rows there are values of by default."""


@dataclass(frozen=True)
class AmortizedCase:
    """What networks are trained and judged on.

    Attributes
    ----------
    case : Case
        The model, the test rows and their values.
    rows : array, (R, D)
        Rows to train on.
    options : dict
        Of all explainers: the network, and what it sees.
    """

    case: Case
    rows: npt.NDArray[Any]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_image(self) -> bool:
        """Whether features can be inserted and deleted so that it can be looked at."""
        return self.case.name in _IMAGES


def prepare_amortized(arguments: argparse.Namespace) -> AmortizedCase:
    """Return the case that the command line names."""
    name = arguments.model
    n_test = arguments.test_rows or TEST_ROWS[name]
    case = prepare(name, argparse.Namespace(**{**vars(arguments), "rows": n_test}))
    rows = _training_rows(name, arguments)
    options = _options(name, rows, case.explained.n_players)
    return AmortizedCase(case, rows[: arguments.rows], options)


def _training_rows(name: str, arguments: argparse.Namespace) -> npt.NDArray[Any]:
    makers: dict[str, Callable[[], npt.NDArray[Any]]] = {
        "adult-elu": partial(training_rows, arguments),
        "adult-relu": partial(training_rows, arguments),
        "table": lambda: companies(arguments.data).training,
        "table-net": lambda: companies(arguments.data).training_scores,
        "news": lambda: news(arguments.data).training,
        "news-net": lambda: news(arguments.data).training_scores,
        "image": partial(training_images, arguments.data),
        "image-fine": partial(training_images, arguments.data),
    }
    return makers[name]()


def _options(name: str, rows: npt.NDArray[Any], n_players: int) -> dict[str, Any]:
    if name in _TREES:
        return {"features": NormalScores(rows)}
    if name in _IMAGES:
        side = round(n_players**0.5)
        return {
            "features": partial(np.reshape, shape=(-1, SIDE, SIDE)),
            "student": "unet",
            "student_options": {"grid": (side, side), "width": 8},
        }
    return {}


class NormalScores:
    """Normal scores of ranks: trees see no more, and networks cannot learn from heavy tails.

    Interpolated between quantiles, in a few microseconds a row.
    """

    def __init__(self, rows: npt.NDArray[Any]) -> None:
        at = np.linspace(0, 1, _QUANTILES)
        of_ranks = np.clip(norm.ppf(at), -3, 3)
        self.knots = [
            _averaged(quantiles, of_ranks) for quantiles in np.quantile(rows, at, axis=0).T
        ]

    def __call__(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return the scores, at most 3 in size."""
        scores = np.empty(rows.shape, dtype=np.float32)
        for column, (quantiles, of_ranks) in enumerate(self.knots):
            scores[:, column] = np.interp(rows[:, column], quantiles, of_ranks)
        return scores


def _averaged(quantiles: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return different quantiles, and of those that are equal the mean score."""
    different, place = np.unique(quantiles, return_inverse=True)
    return different, np.bincount(place, scores) / np.bincount(place)

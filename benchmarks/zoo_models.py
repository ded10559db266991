"""Games of fitted models and of attention: a row beside a few reference rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from coalition_games import BoolArray, FloatArray
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.svm import SVC

Maker = Callable[[int, np.random.Generator], FloatArray]
"""Number of players and random numbers to the values of all coalitions, (2^M,)."""

_POINTS, _REFERENCES, _NOISE = 400, 4, 0.3
_WIDTH = 8
"""Numbers of the embedding of a player, in attention."""


def all_coalitions(n_players: int) -> BoolArray:
    """Return all coalitions, (2^M, M); bit j of the index is player j."""
    indices = np.arange(2**n_players)
    every: BoolArray = (indices[:, None] >> np.arange(n_players)) % 2 == 1
    return every


def _of_rows(function: Callable[[FloatArray], Any], rng: np.random.Generator, n: int) -> FloatArray:
    """Return the values of all coalitions: means over references, until one row has an effect."""
    present = all_coalitions(n)
    while True:
        row, references = rng.normal(size=n), rng.normal(size=(_REFERENCES, n))
        inputs = [np.where(present, row, reference) for reference in references]
        values: FloatArray = np.mean([np.asarray(function(x), float) for x in inputs], axis=0)
        if np.ptp(values) > 0:
            return values


def _fitted(make_model: Callable[[int], Any], predict: str, is_label: bool) -> Maker:
    """Return games of a model of scikit-learn, fitted to a smooth function with interactions.

    Parameters
    ----------
    make_model : callable
        Number of features to the model.
    predict : str
        The name of its method; of probabilities, those of the second class are explained.
    is_label : bool
        Whether it learns to tell positive numbers from others.
    """

    def make(n_players: int, rng: np.random.Generator) -> FloatArray:
        points = rng.normal(size=(_POINTS, n_players))
        target = points[:, :3].sum(axis=1) + 1.5 * points[:, 0] * points[:, 1]
        target += np.sin(2 * points[:, 2:]).mean(axis=1) + _NOISE * rng.normal(size=_POINTS)
        model = make_model(n_players).fit(points, target > 0 if is_label else target)
        method = getattr(model, predict)

        def function(inputs: FloatArray) -> Any:
            outputs = method(inputs)
            return outputs[:, 1] if outputs.ndim == 2 else outputs

        return _of_rows(function, rng, n_players)

    return make


def _attention(n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return a game of a random layer of attention: players are tokens, times their numbers."""
    tokens, biases = rng.normal(size=(2, n_players, _WIDTH))
    queries, keys, outer = (rng.normal(size=(_WIDTH, _WIDTH)) / np.sqrt(_WIDTH) for _ in range(3))
    output = rng.normal(size=_WIDTH)

    def of_block(inputs: FloatArray) -> FloatArray:
        embedded = inputs[:, :, None] * tokens + biases  # (C, M, width)
        scores = (embedded @ queries) @ (embedded @ keys).swapaxes(1, 2) / np.sqrt(_WIDTH)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        hidden = embedded + np.tanh(weights @ embedded @ outer)
        pooled: FloatArray = hidden.mean(axis=1) @ output
        return pooled

    def function(inputs: FloatArray) -> FloatArray:
        return np.concatenate([of_block(part) for part in np.array_split(inputs, 16)])

    return _of_rows(function, rng, n_players)


MODELS: dict[str, Maker] = {
    "RBF-SVM": _fitted(lambda n: SVC(C=3.0, gamma=1 / n), "decision_function", True),
    "forest, probability": _fitted(
        lambda n: RandomForestClassifier(60, random_state=0), "predict_proba", True
    ),
    "forest, label": _fitted(lambda n: RandomForestClassifier(60, random_state=0), "predict", True),
    "deep boosted trees": _fitted(
        lambda n: HistGradientBoostingRegressor(
            max_iter=60, max_depth=8, min_samples_leaf=5, random_state=0
        ),
        "predict",
        False,
    ),
    "Gaussian process": _fitted(
        lambda n: GaussianProcessRegressor(
            RBF(np.sqrt(n)) + WhiteKernel(_NOISE**2), optimizer=None, normalize_y=True
        ),
        "predict",
        False,
    ),
    "attention": _attention,
}

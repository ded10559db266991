"""Games of many kinds, by the values of all their coalitions.

Votes, maxima and thresholds have interactions of all sizes; networks, trees and neighbours are like
models, beside a few reference rows; sums of unanimity games are the field's standard synthetic
benchmark.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from games import BoolArray, FloatArray, all_coalitions
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.svm import SVC

Maker = Callable[[BoolArray, np.random.Generator], FloatArray]
"""All coalitions, (2^M, M), and random numbers to the values of the coalitions, (2^M,)."""

_POINTS, _FEW_REFERENCES, _NOISE = 400, 4, 0.3
_WIDTH = 8
"""Numbers of the embedding of a player, in attention."""


def _beside(present: BoolArray, rng: np.random.Generator, n_references: int) -> list[FloatArray]:
    """Return a random row with absent players from each of some reference rows, (2^M, M)."""
    n = present.shape[1]
    row, references = rng.normal(size=n), rng.normal(size=(n_references, n))
    return [np.where(present, row, reference) for reference in references]


def _of_rows(
    function: Callable[[FloatArray], Any], present: BoolArray, rng: np.random.Generator
) -> FloatArray:
    """Return the values of all coalitions: means over references, until one row has an effect."""
    while True:
        inputs = _beside(present, rng, _FEW_REFERENCES)
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

    def make(present: BoolArray, rng: np.random.Generator) -> FloatArray:
        n_players = present.shape[1]
        points = rng.normal(size=(_POINTS, n_players))
        target = points[:, :3].sum(axis=1) + 1.5 * points[:, 0] * points[:, 1]
        target += np.sin(2 * points[:, 2:]).mean(axis=1) + _NOISE * rng.normal(size=_POINTS)
        model = make_model(n_players).fit(points, target > 0 if is_label else target)
        method = getattr(model, predict)

        def function(inputs: FloatArray) -> Any:
            outputs = method(inputs)
            return outputs[:, 1] if outputs.ndim == 2 else outputs

        return _of_rows(function, present, rng)

    return make


def _attention(present: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return a game of a random layer of attention: players are tokens, times their numbers."""
    tokens, biases = rng.normal(size=(2, present.shape[1], _WIDTH))
    queries, keys, outer = (rng.normal(size=(_WIDTH, _WIDTH)) / np.sqrt(_WIDTH) for _ in range(3))
    output = rng.normal(size=_WIDTH)

    def of_block(inputs: FloatArray) -> FloatArray:
        embedded = inputs[:, :, None] * tokens + biases  # (C, M, width)
        scores = (embedded @ queries) @ (embedded @ keys).swapaxes(1, 2) / np.sqrt(_WIDTH)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        hidden = embedded + np.tanh(weights @ embedded @ outer)
        return hidden.mean(axis=1) @ output

    def function(inputs: FloatArray) -> FloatArray:
        return np.concatenate([of_block(part) for part in np.array_split(inputs, 16)])

    return _of_rows(function, present, rng)


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


_REFERENCES, _HIDDEN = 16, 24

_CLASSIFIED = 300
"""Points that an ensemble classifies."""


def _of_present(function: Callable[[FloatArray], Any]) -> Maker:
    """Return games of uniform numbers, where absent players have 0."""
    return lambda present, rng: np.asarray(
        function(np.asarray(present * rng.uniform(size=present.shape[1]))), dtype=np.float64
    )


def _network(activation: Callable[[FloatArray], FloatArray]) -> Maker:
    """Return games of random networks of one hidden layer, with sixteen references."""

    def make(present: BoolArray, rng: np.random.Generator) -> FloatArray:
        inputs, n_players = _beside(present, rng, _REFERENCES), present.shape[1]
        inner = rng.normal(size=(n_players, _HIDDEN)) * 3 / np.sqrt(n_players)
        offsets, outer = rng.normal(size=(2, _HIDDEN))
        return sum(activation(x @ inner + offsets) @ outer / _REFERENCES for x in inputs)

    return make


def _of_terms(sizes: Callable[[int, np.random.Generator], Iterable[int]]) -> Maker:
    """Return sums of unanimity games of some sizes, and of normal values."""

    def make(present: BoolArray, rng: np.random.Generator) -> FloatArray:
        n_players, values = present.shape[1], np.zeros(len(present))
        for size in sizes(n_players, rng):
            members = rng.choice(n_players, size, replace=False)
            values += rng.normal() * present[:, members].all(axis=1)
        return values

    return make


def _unanimity(n_games: int, fewest: int, most: int) -> Maker:
    """Return sums of unanimity games of random sizes."""
    return _of_terms(
        lambda n, rng: (int(rng.integers(min(fewest, n), min(most, n) + 1)) for _ in range(n_games))
    )


def _vote(lowest: float, highest: float) -> Maker:
    """Return votes of random shares that need more than a random quota of all."""

    def make(present: BoolArray, rng: np.random.Generator) -> FloatArray:
        shares = rng.integers(1, 10, size=present.shape[1])
        quota = rng.uniform(lowest, highest) if lowest < highest else lowest
        return (present @ shares > quota * shares.sum()).astype(float)

    return make


def _parity(size: int) -> Maker:
    """Return products of some players' signs beside single players."""

    def make(present: BoolArray, rng: np.random.Generator) -> FloatArray:
        signs, n_players = 2.0 * present - 1, present.shape[1]
        members = rng.choice(n_players, min(size, n_players), replace=False)
        return signs @ rng.normal(size=n_players) + 2 * signs[:, members].prod(axis=1)

    return make


def _neighbours(present: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return the share of the five nearest of 300 labelled points, by distance."""
    points = rng.normal(size=(300, present.shape[1]))
    labels = points[:, :3].sum(axis=1) + points[:, 0] * points[:, 1] > 0
    values = np.zeros(len(present))
    for inputs in _beside(present, rng, 4):
        distances = (points**2).sum(axis=1) - 2 * inputs @ points.T
        values += labels[np.argpartition(distances, 5, axis=1)[:, :5]].mean(axis=1) / 4
    return values


def _trees(present: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return a sum of forty regression trees of depth four with random splits."""
    references, n_players = _beside(present, rng, 8), present.shape[1]
    strengths = 1 / np.arange(1, n_players + 1)
    values = np.zeros(len(present))
    for _ in range(40):
        players = rng.choice(n_players, 4, p=strengths / strengths.sum())
        cuts, leaves = rng.normal(size=4), rng.normal(size=16)
        for inputs in references:
            values += leaves[(inputs[:, players] > cuts) @ (1 << np.arange(4))] / 8
    return values


def _sigmoid(numbers: FloatArray) -> FloatArray:
    """Return a steep sigmoid of the sum of each row."""
    return 1 / (1 + np.exp(8 * (0.25 * numbers.shape[1] - numbers.sum(axis=1))))


GAMES: dict[str, Maker] = {
    "tanh network": _network(np.tanh),
    "ReLU network": _network(lambda hidden: np.maximum(hidden, 0)),
    "GELU network": _network(lambda hidden: hidden / (1 + np.exp(-1.702 * hidden))),
    "trees": _trees,
    "nearest neighbours": _neighbours,
    "airport (max)": _of_present(lambda x: x.max(axis=1)),
    "second largest": _of_present(lambda x: np.sort(x, axis=1)[:, -2]),
    "argmax": _of_present(lambda x: x.argmax(axis=1) == 1),
    "norm": _of_present(lambda x: np.sqrt((x**2).sum(axis=1))),
    "sum above a threshold": _of_present(lambda x: (x.sum(axis=1) > 0.22 * x.shape[1]) * 1.0),
    "sigmoid of the sum": _of_present(_sigmoid),
    "minimum of four": _of_present(lambda x: x[:, :4].min(axis=1)),
    "minimum of eight": _of_present(lambda x: x[:, :8].min(axis=1)),
    "product of four": _of_present(lambda x: x[:, :4].prod(axis=1)),
    "product of eight": _of_present(lambda x: x[:, :8].min(axis=1) > 0),
    "vote": _vote(0.5, 0.5),
    "parity of four": _parity(4),
    "parity of five": _parity(5),
    "parity of six": _parity(6),
    "random": lambda present, rng: rng.normal(size=len(present)),
    "sparse rules": _of_terms(lambda n, rng: (2, 2, 3, 3)),
    "unanimity, 30 of 1 to M": _unanimity(30, 1, 99),
    "unanimity, 30 of 1 to 4": _unanimity(30, 1, 4),
    "unanimity, 15 of 4 to 8": _unanimity(15, 4, 8),
    **MODELS,
}


def _bankruptcy(present: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return what is left of an estate for some creditors after all others are paid in full."""
    claims = np.asarray(rng.lognormal(size=present.shape[1]))
    estate = rng.uniform(0.2, 0.9) * claims.sum()
    return np.maximum(estate - ~present @ claims, 0.0)


def _airport(present: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return the largest of lognormal costs."""
    costs = rng.lognormal(sigma=rng.uniform(0.5, 2.0), size=present.shape[1])
    return (present * costs).max(axis=1)


def _ensemble(present: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return the accuracy of the majority of models, each right with its own probability."""
    n_players = present.shape[1]
    difficulty = rng.normal(size=(_CLASSIFIED, 1))  # that all models share
    skills = rng.normal(0.4, 0.6, size=n_players)
    correct = np.where(skills + rng.normal(size=(_CLASSIFIED, n_players)) > difficulty, 1, -1)
    votes = present.astype(float) @ correct.T
    return ((votes > 0) + 0.5 * (votes == 0)).mean(axis=1)


def _distances(n_nodes: int, rng: np.random.Generator) -> FloatArray:
    """Return the distances of random points in a square, each times a random detour."""
    points = rng.uniform(size=(n_nodes, 2))
    detours = rng.uniform(1, 4, size=(n_nodes, n_nodes))
    distances: FloatArray = np.linalg.norm(points[:, None] - points, axis=2)
    return distances * np.minimum(detours, detours.T)


def _shortest_path(present: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return how much shorter a path between two nodes is where it may pass through players."""
    lengths = _distances(present.shape[1] + 2, rng)
    lengths[-2, -1] = lengths[-1, -2] = 2 * lengths.max()  # most paths pass through players
    paths = np.repeat(lengths[None, -2], len(present), axis=0)  # from the first end
    absent = np.pad(~present, ((0, 0), (0, 2)))
    for _ in range(present.shape[1]):
        starts = np.where(absent, np.inf, paths)
        paths = np.stack([(starts + to_node).min(axis=1) for to_node in lengths.T], axis=1)
    return np.asarray(lengths[-2, -1] - paths[:, -1])


def _spanning_tree(present: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return the length of the shortest tree of players and a source, by Prim's algorithm."""
    lengths = _distances(present.shape[1] + 1, rng)
    is_left = np.pad(present, ((0, 0), (0, 1)))
    to_tree = np.repeat(lengths[None, -1], len(present), axis=0)
    values = np.zeros(len(present))
    for _ in range(present.shape[1]):
        open_lengths = np.where(is_left, to_tree, np.inf)
        nearest, added = open_lengths.argmin(axis=1), open_lengths.min(axis=1)
        values += np.where(np.isfinite(added), added, 0.0)
        is_left[np.arange(len(present)), nearest] = False
        to_tree = np.minimum(to_tree, lengths[nearest])
    return values


_QUOTAS = (0.5, 0.6, 0.7, 0.8, 0.95)

KINDS: dict[str, Maker] = {
    **{f"vote, quota {low} to {high}": _vote(low, high) for low, high in pairwise(_QUOTAS)},
    "bankruptcy": _bankruptcy,
    "airport, lognormal": _airport,
    "ensemble": _ensemble,
    "shortest path": _shortest_path,
    "spanning tree": _spanning_tree,
    **GAMES,
}
"""Those whose parameters are drawn, and the others."""


def tabulated(name: str, n_players: int, n_games: int, seed: int = 0) -> FloatArray:
    """Return the values of all coalitions of some games of a kind, (R, 2^M)."""
    rng, present = np.random.default_rng(seed), all_coalitions(n_players)
    return np.stack([GAMES[name](present, rng) for _ in range(n_games)])

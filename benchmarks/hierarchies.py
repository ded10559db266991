"""Errors of `hierarchy` and shap's Partition at equal evaluations, on three kinds of games.

Both estimate the Owen values of the same binary tree of 256 players, which are known exactly. Needs
no data.

    python benchmarks/hierarchies.py
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import shap

import shap_ext
from shapley_adapters import PlayerTree
from shapley_adapters.hierarchies.default_trees import tree_of_places

N_PLAYERS, SIDE = 256, 16
BUDGETS = (60, 125, 250, 500, 1000, 2000)
N_GAMES, N_SEEDS = 6, 4

Model = Callable[[Any], Any]


def logistic(scores: Any) -> Any:
    """Return the logistic function of scores."""
    return 1 / (1 + np.exp(-scores))


def text(rng: np.random.Generator) -> Model:
    """Return a classifier of texts with few heavy words, which interact with their neighbours."""
    words = 0.4 * rng.standard_t(2, size=N_PLAYERS)
    pairs = 0.4 * rng.standard_t(2, size=N_PLAYERS - 1)
    return lambda x: logistic(x @ words + (x[:, 1:] * x[:, :-1]) @ pairs - 1)


def image(rng: np.random.Generator) -> Model:
    """Return a classifier that sees five spots, each if half of it is there."""
    y, x = np.mgrid[:SIDE, :SIDE]
    spots = np.empty((5, N_PLAYERS))
    for spot in spots:
        (row, column), width = rng.uniform(2, SIDE - 2, size=2), rng.uniform(1, 2.5)
        spot[:] = np.exp(-((y - row) ** 2 + (x - column) ** 2) / 2 / width**2).ravel()
    spots /= spots.sum(axis=1, keepdims=True)
    weights = 2 * rng.normal(size=5)

    def classifier(z: Any) -> Any:
        seen = z @ spots.T
        return logistic(logistic(12 * (seen - 0.5)) @ weights + seen @ weights / 2)

    return classifier


def network(rng: np.random.Generator) -> Model:
    """Return a network of one layer, to which all inputs contribute."""
    first = 1.5 * rng.normal(size=(N_PLAYERS, 32)) / np.sqrt(N_PLAYERS)
    second = rng.normal(size=32) / 6
    return lambda x: np.tanh(x @ first) @ second


KINDS = {"text": text, "image": image, "network": network}


def binary_tree(kind: str) -> PlayerTree:
    """Return halves of the words, or of the rows and columns of the image in turn."""
    if kind != "image":
        return tree_of_places([np.arange(N_PLAYERS)], N_PLAYERS)
    quadrants = tree_of_places([np.arange(N_PLAYERS).reshape(SIDE, SIDE)], N_PLAYERS)
    return PlayerTree.from_linkage(quadrants.to_linkage(N_PLAYERS))


def main() -> None:
    """Print a row for each kind of game and budget."""
    row, background = np.ones((1, N_PLAYERS)), np.zeros((1, N_PLAYERS))
    print("| game | evaluations | `hierarchy` | Partition | 95 % intervals hold |")
    print("|---|---|---|---|---|")
    for kind, make in KINDS.items():
        tree = binary_tree(kind)
        masker = shap.maskers.Partition(background, clustering=tree.to_linkage(N_PLAYERS))
        cells: dict[int, list[list[float]]] = {budget: [] for budget in BUDGETS}
        for game in range(N_GAMES):
            model = make(np.random.default_rng(game))
            explainer = shap_ext.HierarchyExplainer(model, masker)
            exact = explainer(row, max_evals=50_000, silent=True).values
            scale = np.sqrt((exact**2).sum())
            for budget in BUDGETS:
                theirs = shap.explainers.Partition(model, masker)
                np.random.seed(game)  # noqa: NPY002 # shap breaks ties by it
                error = theirs(row, max_evals=budget, silent=True).values - exact
                n_spent = theirs.last_eval_count + 2
                for seed in range(N_SEEDS):
                    explainer.seed = N_SEEDS * game + seed
                    ours = explainer(row, max_evals=budget, error_bounds=True, silent=True)
                    held = (ours.lower_bounds <= exact) & (exact <= ours.upper_bounds)
                    errors = [np.sqrt((e**2).sum()) / scale for e in (ours.values - exact, error)]
                    cells[budget].append([*errors, held.mean(), n_spent])
        for budget, numbers in cells.items():
            own, peer, held, spent = np.mean(numbers, axis=0)
            more = f" ({spent:.0f})" if spent > budget + 1 else ""
            print(f"| {kind} | {budget} | {own:.2f} | {peer:.2f}{more} | {held:.2f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()

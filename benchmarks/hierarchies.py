"""Errors of `hierarchy` and shap's Partition at equal evaluations, on three kinds of games.

Both estimate the Owen values of the same binary tree of 256 players, which are known exactly. Needs
no data.

    python benchmarks/hierarchies.py
    python benchmarks/hierarchies.py --curves

With `--curves`, on texts and digits, which need data: how much of a value is taken by the first ten
players of an explanation, deleted one after the other, and how much they give where no others are,
on average. 1 is what the ten largest of long converged Shapley values take and give. Beside
Partition: shap's KernelExplainer, and occlusion, which takes one evaluation a player.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import shap
from data_files import data_folder
from large_contenders import Answer, CountedGame, Explain, by_kernel, explain
from large_games import LargeGame
from large_models import digit_game, text_game

import shap_ext
from shapley_adapters import PlayerTree
from shapley_adapters.hierarchies.default_trees import tree_of_places

N_PLAYERS, SIDE = 256, 16
BUDGETS = (60, 125, 250, 500, 1000, 2000)
N_GAMES, N_SEEDS = 6, 4
N_CURVES = 12
CONTENDERS = ("`hierarchy`", "Partition", "KernelExplainer", "occlusion")

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


def compare_errors() -> None:
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


def with_tree(explainer: type, tree: PlayerTree) -> Explain:
    """Return a contender that explains by an explainer of shap's kind on a tree."""

    def contender(game: CountedGame, budget: int, seed: int) -> Answer:
        background, row = game.columns
        clustering = tree.to_linkage(game.game.n_players)
        masker = shap.maskers.Partition(background, clustering=clustering)
        np.random.seed(seed)  # noqa: NPY002 # Partition breaks ties by it
        # Two more: Partition counts the ends apart, and ours look for noise.
        found = explainer(game, masker)(row, max_evals=budget - 2, silent=True)
        return Answer(np.asarray(found.values)[0])

    return contender


def by_occlusion(game: CountedGame, budget: int, _: int) -> Answer:
    """Explain by what each player takes when it leaves alone; all players or none."""
    n_players = game.game.n_players
    if budget < n_players + 1:
        raise ValueError("fewer evaluations than players")
    found = game(np.vstack([np.ones(n_players), 1 - np.eye(n_players)]))
    return Answer(found[0] - found[1:])


def taken_and_given(game: LargeGame, values: Any) -> np.ndarray:
    """Return what the first ten players take from all, and what they give to none, on average."""
    order = np.argsort(-values)[:10]
    first = np.zeros((10, game.n_players), dtype=bool)
    for n_first in range(10):
        first[n_first:, order[n_first]] = True
    ends = game.values(np.repeat([[True], [False]], game.n_players, axis=1))
    return np.array([ends[0] - game.values(~first).mean(), game.values(first).mean() - ends[1]])


def compare_curves() -> None:
    """Print a row for each task, number of evaluations and score, with the explainers beside it."""
    data = data_folder()
    quadrants = tree_of_places([np.arange(196).reshape(14, 14)], 196)
    tasks = [("Yahoo! Answers", text_game, 100, tree_of_places([np.arange(100)], 100))]
    tasks += [("IMDB", text_game, 200, tree_of_places([np.arange(200)], 200))]
    tasks += [("digits", digit_game, 196, PlayerTree.from_linkage(quadrants.to_linkage(196)))]
    print("| task | players | evaluations | score | " + " | ".join(CONTENDERS) + " |")
    print("|---" * (4 + len(CONTENDERS)) + "|")
    for task, make, n_players, tree in tasks:
        contenders: list[Explain] = [
            with_tree(shap_ext.HierarchyExplainer, tree),
            with_tree(shap.explainers.Partition, tree),
            partial(by_kernel, l1_reg="num_features(10)"),
            by_occlusion,
        ]
        games = [make(data, n_players, seed) for seed in range(N_CURVES)]
        best = [taken_and_given(game, game.exact) for game in games]
        for per_player in (0.5, 1, 2, 4, 8):
            budget = round(per_player * n_players)
            cells = []
            for contender in contenders:
                found = [explain(contender, game, budget, seed) for seed, game in enumerate(games)]
                scores = [
                    taken_and_given(game, each[0].values)
                    for game, each in zip(games, found, strict=True)
                    if each is not None
                ]
                whole = np.mean(scores, axis=0) if len(scores) == N_CURVES else np.full(2, np.nan)
                cells.append(whole / np.mean(best, axis=0))
            for score, row in zip(("deletion", "insertion"), np.transpose(cells), strict=True):
                shown = " | ".join("–" if np.isnan(cell) else f"{cell:.2f}" for cell in row)
                print(f"| {task} | {n_players} | {budget} | {score} | {shown} |", flush=True)


def main() -> None:
    """Compare errors, or curves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--curves", action="store_true")
    compare_curves() if parser.parse_args().curves else compare_errors()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()

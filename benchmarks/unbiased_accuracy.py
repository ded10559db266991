"""Errors and intervals of unbiased `oddgp`, or of learned cooperators, on games of many kinds.

    python benchmarks/unbiased_accuracy.py [--of shear] [--quick] [--players 10]
        [--per-player 16 32 64] [--games 10] [--seeds 4] [--kinds vote "random forest"]

A cell is a kind of game and a number of evaluations a player. Its error is Σ|φ̂ − φ| over Σ|φ|,
averaged over games and seeds; the ratio is to the best rival, which the table names, with its 95 %
interval, paired by game. Errors that are rounding, or of no interest, count as a least one. The
largest ratio comes first.

By default `oddgp` with `unbiased=True` is compared with the other unbiased estimators. With
`--of shear`, SHEAR with learned cooperators is compared with random order, least squares and shap's
permutation explainer; five more kinds are then scikit-learn models of the diabetes data, with ten
features and twenty background rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import shap
from coalition_games import FloatArray, TabulatedGame
from core_games import core_game, share_inside
from scores import Ratio, ratio_of
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from zoo_games import GAMES, tabulated
from zoo_models import all_coalitions

import shapley_adapters as core

PERMUTATION = "shap's permutation"


@dataclass(frozen=True)
class Question:
    """Which estimator is compared with which others.

    Attributes
    ----------
    ours, plain : str
        The estimator that is judged, and its default, which is shown but no rival.
    estimators : dict of str to callable
        What makes each of them; None is shap's permutation explainer.
    n_ends : int
        Evaluations beside those of each player.
    least : float
        Smaller errors count as this.
    slack : float
        How far outside of an interval a value may be, as a share of Σ|φ|.
    """

    ours: str
    plain: str
    estimators: Mapping[str, Callable[[], Any] | None]
    n_ends: int
    least: float
    slack: float


QUESTIONS = {
    "oddgp": Question(
        "oddgp, unbiased",
        "oddgp",
        {
            "oddgp, unbiased": lambda: core.OddGP(unbiased=True),
            "oddgp": core.OddGP,
            "random order": core.RandomOrder,
            "least squares": core.UnbiasedLeastSquares,
            "semivalue": core.Semivalue,
            "SHEAR": core.Shear,
        },
        n_ends=0,
        least=1e-6,
        slack=1e-9,
    ),
    "shear": Question(
        "learned",
        "SHEAR",
        {
            "learned": lambda: core.Shear(cooperators="learned"),
            "SHEAR": core.Shear,
            "random order": core.RandomOrder,
            "least squares": lambda: core.least_squares(True, "kernel", True, False),
            PERMUTATION: None,
        },
        n_ends=2,
        least=1e-5,
        slack=1e-6,
    ),
}

MODELS: dict[str, Callable[[], Any]] = {
    "random forest": lambda: RandomForestRegressor(50, random_state=0),
    "gradient boosting": lambda: GradientBoostingRegressor(random_state=0),
    "support vectors": lambda: make_pipeline(StandardScaler(), SVR(C=100)),
    "neighbours": lambda: make_pipeline(StandardScaler(), KNeighborsRegressor(10)),
    "perceptron": lambda: make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=(32, 32), max_iter=1000, random_state=0)
    ),
}


@dataclass(frozen=True)
class Cell:
    """Errors of each estimator on a kind of game, and how often our intervals hold.

    Attributes
    ----------
    name, best : str
        The kind of game, and the best rival.
    per_player : int
        Evaluations a player.
    errors : dict of str to float
        The error of each estimator.
    ratio : Ratio
        Our error over that of the best rival.
    inside : tuple of float
        The shares of exact values in 95 % and 68 % intervals.
    """

    name: str
    per_player: int
    errors: Mapping[str, float]
    best: str
    ratio: Ratio
    inside: tuple[float, float]


def main() -> None:
    """Print the table of cells, and a summary for each number of evaluations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", choices=QUESTIONS, default="oddgp")
    parser.add_argument("--players", type=int, default=10)
    parser.add_argument("--per-player", type=int, nargs="+", default=[16, 32, 64])
    parser.add_argument("--games", type=int, default=10, help="games of each kind")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--kinds", nargs="+", choices=[*GAMES, *MODELS], help="default: all")
    parser.add_argument("--quick", action="store_true", help="3 games, 1 seed, two budgets")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.games, arguments.seeds, arguments.per_player = 3, 1, [16, 32]
    question = QUESTIONS[arguments.of]
    cells = []
    for name in arguments.kinds or [*GAMES, *(MODELS if arguments.of == "shear" else ())]:
        games = games_of(name, arguments.players, arguments.games)
        cells += [
            measured(name, games, per_player, arguments.seeds, question)
            for per_player in arguments.per_player
            if per_player * games.n_players < games.table.shape[1]
        ]
    print(f"{arguments.games} games of each kind, {arguments.seeds} seeds\n")
    print_cells(sorted(cells, key=lambda cell: -cell.ratio.of_means))
    for per_player in arguments.per_player:
        print_summary(per_player, [cell for cell in cells if cell.per_player == per_player])


def games_of(name: str, n_players: int, n_games: int) -> TabulatedGame:
    """Return some games of a kind."""
    if name in GAMES:
        return TabulatedGame(tabulated(name, n_players, n_games), n_players)
    x, y = load_diabetes(return_X_y=True)
    model, background = MODELS[name]().fit(x, y), x[:20]
    present = all_coalitions(x.shape[1])[:, None]
    inputs = [np.where(present, row, background).reshape(-1, x.shape[1]) for row in x[-n_games:]]
    values = [model.predict(table).reshape(len(present), -1).mean(axis=1) for table in inputs]
    return TabulatedGame(np.stack(values), x.shape[1])


def measured(
    name: str, games: TabulatedGame, per_player: int, n_seeds: int, question: Question
) -> Cell:
    """Run all estimators on games of one kind."""
    exact, budget = games.shapley_values(), per_player * games.n_players
    scale = np.abs(exact).sum(axis=1)
    of_games: dict[str, FloatArray] = {}
    inside = 0.0, 0.0
    for estimator, make in question.estimators.items():
        if make is None:
            found = [by_permutations(games, budget, seed) for seed in range(n_seeds)]
        else:
            settings = [
                core.Settings(seed, budget=budget + question.n_ends) for seed in range(n_seeds)
            ]
            estimates = [core.estimate(core_game(games), make(), one) for one in settings]
            found = [estimate.values[:, :, 0] for estimate in estimates]
        of_games[estimator] = np.abs(np.array(found) - exact).sum(axis=2) / scale
        if estimator == question.ours:
            slack = question.slack * scale[:, None]
            wide, narrow = (
                np.mean([share_inside(one, exact, confidence, slack) for one in estimates])
                for confidence in (0.95, 0.6827)
            )
            inside = float(wide), float(narrow)
    errors = {estimator: float(of_all.mean()) for estimator, of_all in of_games.items()}
    rivals = [one for one in errors if one not in (question.ours, question.plain)]
    best = min(rivals, key=errors.__getitem__)
    ratio = ratio_of(of_games[question.ours], of_games[best], question.least)
    return Cell(name, per_player, errors, best, ratio, inside)


def by_permutations(games: TabulatedGame, budget: int, seed: int) -> FloatArray:
    """Return the values by shap's permutation explainer, which takes whole pairs of orders."""
    n_players = games.n_players
    places = 1 << np.arange(n_players)
    n_evaluations = max(1, round(budget / (2 * n_players))) * (2 * n_players + 1)
    values = []
    for table in games.table:
        explainer = shap.PermutationExplainer(
            lambda rows, table=table: table[(rows > 0.5) @ places],
            np.zeros((1, n_players)),
            seed=seed,
        )
        rows = np.ones((1, n_players))
        values.append(explainer(rows, max_evals=n_evaluations, silent=True).values[0])
    return np.array(values)


def print_cells(cells: list[Cell]) -> None:
    """Print the cells as a table, in their order."""
    names = list(cells[0].errors)
    head = [
        "game",
        "a player",
        "ratio",
        "95 % interval",
        "best rival",
        *names,
        "in 95 %",
        "in 68 %",
    ]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for cell in cells:
        errors = " | ".join(f"{error:.4f}" for error in cell.errors.values())
        inside = " | ".join(f"{share:.2f}" for share in cell.inside)
        ratio = cell.ratio
        interval = f"{ratio.of_means:.2f} | {ratio.lower:.2f} to {ratio.upper:.2f}"
        print(
            f"| {cell.name} | {cell.per_player} | {interval} | {cell.best} | {errors} | {inside} |"
        )


def print_summary(per_player: int, cells: list[Cell]) -> None:
    """Print the median ratio and how often intervals hold, of cells of one budget."""
    if not cells:
        return
    ratios = [cell.ratio.of_means for cell in cells]
    inside = np.array([cell.inside for cell in cells])
    print(
        f"\n{per_player} a player: median ratio {np.median(ratios):.2f}, largest {max(ratios):.2f};"
        f" in 95 %: mean {inside[:, 0].mean():.3f}, least {inside[:, 0].min():.2f};"
        f" in 68 %: mean {inside[:, 1].mean():.3f}, least {inside[:, 1].min():.2f}"
    )


if __name__ == "__main__":
    main()

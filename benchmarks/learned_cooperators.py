"""Errors and intervals of SHEAR with learned cooperators, on games of many kinds.

    python benchmarks/learned_cooperators.py [--players 10] [--per-player 16 32 64]
        [--games 4] [--seeds 2] [--kinds vote "random forest"]

A cell is a kind of game and a number of evaluations a player. Its error is Σ|φ̂ − φ| over Σ|φ|,
averaged over games and seeds; the ratio is to the best of random order, least squares and shap's
permutation, with its 95 % interval, paired by game. Errors below 1e-5 count as 1e-5. The largest
ratio comes first. The last five kinds are scikit-learn models of the diabetes data, with ten
features and twenty background rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import shap
from coalition_games import FloatArray, TabulatedGame
from scores import Ratio
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from zoo_cells import ZooCell, argument_parser, core_game, print_summary, ratio_of
from zoo_games import GAMES, tabulated
from zoo_models import all_coalitions

import shapley_adapters as core

LEARNED, PERMUTATION = "learned", "shap's permutation"

ESTIMATORS: dict[str, Callable[[], Any]] = {
    LEARNED: lambda: core.Shear(cooperators="learned"),
    "SHEAR": core.Shear,
    "random order": core.RandomOrder,
    "least squares": lambda: core.least_squares(True, "kernel", True, False),
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

_LEAST = 1e-5
"""Errors below this are rounding, or of no interest."""


@dataclass(frozen=True)
class Cell(ZooCell):
    """A cell with the errors and intervals of learned cooperators.

    Attributes
    ----------
    of_games : dict of str to array, (S, R)
        The errors of each estimator, by seed and game.
    """

    of_games: dict[str, FloatArray]

    @property
    def ratio(self) -> float:
        """The error with learned cooperators over that of the best other estimator."""
        return self.to_best.of_means

    @property
    def to_best(self) -> Ratio:
        """The ratio with its interval."""
        others = {name: of for name, of in self.errors.items() if name not in (LEARNED, "SHEAR")}
        best = min(others, key=others.__getitem__)
        return ratio_of(self.of_games[LEARNED], self.of_games[best], _LEAST)


def main() -> None:
    """Print the table of cells, and a summary for each number of evaluations."""
    arguments = argument_parser(__doc__, [16, 32, 64], 2, list(MODELS)).parse_args()
    cells = []
    for name in arguments.kinds or [*GAMES, *MODELS]:
        table = _table(name, arguments.players, arguments.games)
        n_players = int(np.log2(table.shape[1]))
        for per_player in arguments.per_player:
            if per_player * n_players < table.shape[1]:
                cells.append(_cell(name, table, n_players, per_player, arguments.seeds))
    print(f"{arguments.games} games of each kind, {arguments.seeds} seeds\n")
    names = " | ".join(cells[0].errors)
    print(f"| game | a player | ratio | 95 % interval | {names} | in 95 % | in 68 % |")
    print("|" + "---|" * (len(cells[0].errors) + 6))
    for cell in sorted(cells, key=lambda cell: -cell.ratio):
        errors = " | ".join(f"{error:.4f}" for error in cell.errors.values())
        inside = " | ".join(f"{share:.2f}" for share in cell.inside)
        ratio = cell.to_best
        interval = f"{ratio.of_means:.2f} | {ratio.lower:.2f} to {ratio.upper:.2f}"
        print(f"| {cell.name} | {cell.per_player} | {interval} | {errors} | {inside} |")
    for per_player in arguments.per_player:
        print_summary(per_player, cells)


def _table(name: str, n_players: int, n_games: int) -> FloatArray:
    """Return the values of all coalitions of some games of a kind, (R, 2^M)."""
    if name in GAMES:
        return tabulated(name, n_players, n_games)
    x, y = load_diabetes(return_X_y=True)
    model, background = MODELS[name]().fit(x, y), x[:20]
    present = all_coalitions(x.shape[1])[:, None]
    inputs = [np.where(present, row, background).reshape(-1, x.shape[1]) for row in x[-n_games:]]
    return np.stack([model.predict(table).reshape(len(present), -1).mean(1) for table in inputs])


def _cell(name: str, table: FloatArray, n_players: int, per_player: int, n_seeds: int) -> Cell:
    """Run all estimators on games of one kind."""
    exact, budget = TabulatedGame(table, n_players).shapley_values(), per_player * n_players
    of_games: dict[str, FloatArray] = {}
    inside = 0.0, 0.0
    for estimator, make in ESTIMATORS.items():
        found = [
            core.estimate(
                core_game(table, n_players), make(), core.Settings(seed=seed, budget=budget + 2)
            )
            for seed in range(n_seeds)
        ]
        of_games[estimator] = _errors([one.values[:, :, 0] for one in found], exact)
        if estimator == LEARNED:
            inside = _inside(found, exact, 0.95), _inside(found, exact, 0.6827)
    values = [_by_permutations(table, n_players, budget, seed) for seed in range(n_seeds)]
    of_games[PERMUTATION] = _errors(values, exact)
    errors = {estimator: float(of_all.mean()) for estimator, of_all in of_games.items()}
    return Cell(name, per_player, errors, inside, of_games)


def _errors(values: list[FloatArray], exact: FloatArray) -> FloatArray:
    """Return the errors by seed and game, (S, R)."""
    off = np.abs(np.array(values) - exact)
    errors: FloatArray = off.sum(axis=2) / np.abs(exact).sum(axis=1)
    return errors


def _inside(found: list[core.Estimate], exact: FloatArray, confidence: float) -> float:
    """Return how often intervals hold the exact values; rounding errors count as nothing."""
    holds, slack = [], 1e-6 * np.abs(exact).sum(axis=1, keepdims=True)
    for one in found:
        lower, upper = (bound[:, :, 0] for bound in one.interval(confidence))
        holds.append(((lower - slack <= exact) & (exact <= upper + slack)).mean())
    return float(np.mean(holds))


def _by_permutations(table: FloatArray, n_players: int, budget: int, seed: int) -> FloatArray:
    """Return the values by shap's permutation explainer, which takes whole pairs of orders."""
    places = 1 << np.arange(n_players)
    n_orders = max(1, round(budget / (2 * n_players)))
    values = []
    for of_game in table:
        explainer = shap.PermutationExplainer(
            lambda rows, of_game=of_game: of_game[(rows > 0.5) @ places],
            np.zeros((1, n_players)),
            seed=seed,
        )
        rows = np.ones((1, n_players))
        n_evaluations = n_orders * (2 * n_players + 1)
        values.append(explainer(rows, max_evals=n_evaluations, silent=True).values[0])
    return np.array(values)


if __name__ == "__main__":
    main()

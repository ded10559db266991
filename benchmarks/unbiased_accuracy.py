"""Errors and intervals of unbiased estimators on games of many kinds.

    python benchmarks/unbiased_accuracy.py [--quick] [--players 10] [--per-player 16 32 64]

A cell is a kind of game and a number of evaluations a player. Its error is Σ|φ̂ − φ| over Σ|φ|,
averaged over games and seeds; the ratio is that of `oddgp` with `unbiased=True` to the best of the
other unbiased estimators, which the table names, with its 95 % interval, paired by game. An error
below 1e-6 counts as 1e-6. The largest ratio comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from coalition_games import FloatArray, TabulatedGame
from scores import Ratio
from zoo_cells import ZooCell, argument_parser, core_game, print_summary, ratio_of
from zoo_games import GAMES, tabulated

import shapley_adapters as core
from shapley_adapters.pipeline.result import Estimate

OURS, BIASED = "oddgp, unbiased", "oddgp"

ESTIMATORS: dict[str, Callable[[], Any]] = {
    OURS: lambda: core.OddGP(unbiased=True),
    BIASED: core.OddGP,
    "random order": core.RandomOrder,
    "least squares": core.UnbiasedLeastSquares,
    "semivalue": core.Semivalue,
    "SHEAR": core.Shear,
}

_LEAST = 1e-6
"""Errors that are rounding count as this."""


@dataclass(frozen=True)
class Cell(ZooCell):
    """A cell with the errors and intervals of unbiased `oddgp`.

    Attributes
    ----------
    of_games : dict of str to array, (S, R)
        The errors of each estimator, by seed and game.
    """

    of_games: dict[str, FloatArray]

    @property
    def best_other(self) -> str:
        """The best of the other unbiased estimators."""
        others = [name for name in self.errors if name not in (OURS, BIASED)]
        return min(others, key=lambda name: self.errors[name])

    @property
    def ratio(self) -> float:
        """The error of ours over that of the best other one."""
        return self.to_best.of_means

    @property
    def to_best(self) -> Ratio:
        """The ratio with its interval."""
        return ratio_of(self.of_games[OURS], self.of_games[self.best_other], _LEAST)


def main() -> None:
    """Print the table of cells, and a summary for each number of evaluations."""
    parser = argument_parser(__doc__, [16, 32, 64], 4)
    parser.add_argument("--quick", action="store_true", help="3 games, 1 seed, two budgets")
    arguments = parser.parse_args()
    n_games, n_seeds = (3, 1) if arguments.quick else (arguments.games, arguments.seeds)
    cells = []
    for name in arguments.kinds or GAMES:
        table = tabulated(name, arguments.players, n_games)
        for per_player in arguments.per_player[: 2 if arguments.quick else None]:
            if per_player * arguments.players < table.shape[1]:
                cells.append(_cell(name, table, arguments.players, per_player, n_seeds))
    print(f"{arguments.players} players, {n_games} games of each kind, {n_seeds} seeds\n")
    _print_cells(sorted(cells, key=lambda cell: -cell.ratio))
    for per_player in arguments.per_player:
        print_summary(per_player, cells)


def _cell(name: str, table: FloatArray, n_players: int, per_player: int, n_seeds: int) -> Cell:
    """Run all estimators on games of one kind."""
    exact = TabulatedGame(table, n_players).shapley_values()[:, :, None]
    of_games: dict[str, FloatArray] = {}
    inside = 0.0, 0.0
    for estimator, make in ESTIMATORS.items():
        found = [
            core.estimate(
                core_game(table, n_players),
                make(),
                core.Settings(seed=seed, budget=per_player * n_players),
            )
            for seed in range(n_seeds)
        ]
        off = np.array([np.abs(one.values - exact)[:, :, 0] for one in found])
        of_games[estimator] = off.sum(axis=2) / np.abs(exact[:, :, 0]).sum(axis=1)
        if estimator == OURS:
            inside = _inside(found, exact, 0.95), _inside(found, exact, 0.6827)
    errors = {estimator: float(of_all.mean()) for estimator, of_all in of_games.items()}
    return Cell(name, per_player, errors, inside, of_games)


def _inside(found: list[Estimate], exact: FloatArray, confidence: float) -> float:
    """Return how often intervals hold the exact values; rounding errors count as nothing."""
    holds = []
    for one in found:
        lower, upper = one.interval(confidence)
        holds.append(((lower - 1e-9 <= exact) & (exact <= upper + 1e-9)).mean())
    return float(np.mean(holds))


def _print_cells(cells: list[Cell]) -> None:
    """Print the cells as a table, in their order."""
    names = " | ".join(ESTIMATORS)
    print(f"| game | a player | ratio | 95 % interval | best other | {names} | 95 % | 68 % |")
    print("|" + "---|" * (len(ESTIMATORS) + 7))
    for cell in cells:
        errors = " | ".join(f"{cell.errors[name]:.4f}" for name in ESTIMATORS)
        inside = " | ".join(f"{share:.2f}" for share in cell.inside)
        ratio = cell.to_best
        interval = f"{ratio.of_means:.2f} | {ratio.lower:.2f} to {ratio.upper:.2f}"
        start = f"{cell.name} | {cell.per_player} | {interval} | {cell.best_other}"
        print(f"| {start} | {errors} | {inside} |")


if __name__ == "__main__":
    main()

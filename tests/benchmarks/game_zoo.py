"""Errors and intervals of `oddgp` on games of many kinds, beside our other estimators.

    python tests/benchmarks/game_zoo.py [--players 10] [--per-player 8 16 32] [--games 10]
        [--seeds 1] [--kinds vote "tanh network"] [--estimators oddgp]

A cell is a kind of game and a number of evaluations a player. Its error is Σ|φ̂ − φ| over Σ|φ|,
averaged over games and seeds; the ratio is to the better of least squares and random order. Losing
cells come first. Then come the cells in which the error is larger than with half the evaluations,
and for each kind of game how often intervals hold, the worst first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from coalition_games import FloatArray, TabulatedGame
from zoo_cells import ZooCell, argument_parser, core_game, print_summary
from zoo_games import GAMES, tabulated

import shapley_adapters as core

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "oddgp": core.OddGP,
    "equal weights": lambda: core.OddGP("equal"),
    "least squares": lambda: core.least_squares(True, "kernel", True, False),
    "random order": core.RandomOrder,
    "SHEAR": core.Shear,
}

_OURS = ("oddgp", "equal weights")
_CONFIDENCES = (0.95, 0.6827)


class Cell(ZooCell):
    """A cell with the errors and intervals of `oddgp`."""

    @property
    def ratio(self) -> float:
        """The error of `oddgp` over that of the best of the others."""
        others = [error for name, error in self.errors.items() if name not in _OURS]
        return self.errors["oddgp"] / max(min(others, default=np.nan), 1e-9)


def main() -> None:
    """Print the table of cells, and a summary for each number of evaluations."""
    parser = argument_parser(__doc__, [4, 8, 16, 32, 64], 1)
    parser.add_argument("--estimators", nargs="+", choices=list(ESTIMATORS), help="and oddgp")
    arguments = parser.parse_args()
    names = [
        name for name in ESTIMATORS if name in ("oddgp", *(arguments.estimators or ESTIMATORS))
    ]
    cells = []
    for name in arguments.kinds or GAMES:
        table = tabulated(name, arguments.players, arguments.games)
        for per_player in arguments.per_player:
            if per_player * arguments.players < table.shape[1]:
                size = arguments.players, per_player, arguments.seeds
                cells.append(_cell(name, table, names, *size))
    print(f"{arguments.players} players, {arguments.games} games of each kind\n")
    _print_cells(sorted(cells, key=lambda cell: -cell.ratio))
    for per_player in arguments.per_player:
        print_summary(per_player, cells)
    _print_rises(cells)
    _print_coverage(cells)


def _cell(
    name: str,
    table: FloatArray,
    estimators: list[str],
    n_players: int,
    per_player: int,
    n_seeds: int,
) -> Cell:
    """Run the estimators on games of one kind."""
    exact = TabulatedGame(table, n_players).shapley_values()
    errors, of_oddgp = {}, np.zeros((0, 2))
    for estimator in estimators:
        of_seeds = []
        for seed in range(n_seeds):
            settings = core.Settings(seed=seed, budget=per_player * n_players + 2)
            found = core.estimate(core_game(table, n_players), ESTIMATORS[estimator](), settings)
            off = np.abs(found.values[:, :, 0] - exact)
            of_seeds.append((off.sum(axis=1) / np.abs(exact).sum(axis=1)).mean())
            if estimator == "oddgp":
                intervals = [found.interval(confidence) for confidence in _CONFIDENCES]
                inside = [
                    ((lower[:, :, 0] - 1e-9 <= exact) & (exact <= upper[:, :, 0] + 1e-9)).mean()
                    for lower, upper in intervals
                ]
                of_oddgp = np.concatenate([of_oddgp, [inside]])
        errors[estimator] = float(np.mean(of_seeds))
    wide, narrow = of_oddgp.mean(axis=0)
    return Cell(name, per_player, errors, (float(wide), float(narrow)))


def _print_rises(cells: list[Cell]) -> None:
    """Print the cells whose error is larger than with half the evaluations."""
    errors = {(cell.name, cell.per_player): cell.errors["oddgp"] for cell in cells}
    print("\nError over that with half the evaluations, where it rises:")
    for (name, per_player), error in errors.items():
        before = errors.get((name, per_player // 2))
        if before is not None and error > before + 1e-9:
            print(f"{name}, {per_player} a player: {error / before:.2f}")


def _print_coverage(cells: list[Cell]) -> None:
    """Print for each kind of game how often intervals hold, the worst first."""
    inside = {
        name: np.mean([cell.inside for cell in cells if cell.name == name], axis=0)
        for name in {cell.name: None for cell in cells}
    }
    print("\n| game | in 95 % | in 68 % |\n|---|---|---|")
    for name, (wide, narrow) in sorted(inside.items(), key=lambda item: float(item[1][0])):
        print(f"| {name} | {wide:.2f} | {narrow:.2f} |")


def _print_cells(cells: list[Cell]) -> None:
    """Print the cells as a table, in their order."""
    names = list(cells[0].errors)
    print("| game | a player | ratio | " + " | ".join(names) + " | in 95 % | in 68 % |")
    print("|" + "---|" * (len(names) + 5))
    for cell in cells:
        errors = " | ".join(f"{cell.errors[name]:.4f}" for name in names)
        inside = " | ".join(f"{share:.2f}" for share in cell.inside)
        print(f"| {cell.name} | {cell.per_player} | {cell.ratio:.2f} | {errors} | {inside} |")


if __name__ == "__main__":
    main()

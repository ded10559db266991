"""Errors and intervals of unbiased estimators on games of many kinds.

    python tests/benchmarks/unbiased_accuracy.py [--quick] [--players 10] [--per-player 16 32 64]

A cell is a kind of game and a number of evaluations a player. Its error is Σ|φ̂ − φ| over Σ|φ|,
averaged over games and seeds; the ratio is that of `oddgp` with `unbiased=True` to the best of the
other unbiased estimators, which the table names. An error below 1e-6 counts as 1e-6. The largest
ratio comes first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from coalition_games import BoolArray, FloatArray, IntArray, TabulatedGame
from core_games import CoreGame
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
    "SVARM": core.SVARM,
    "Owen": core.Owen,
    "SHEAR": core.Shear,
}

_LEAST = 1e-6
"""Errors that are rounding count as this."""


@dataclass(frozen=True)
class Cell:
    """Errors of each estimator on a kind of game, and how often our intervals hold."""

    name: str
    per_player: int
    errors: dict[str, float]
    inside: tuple[float, float]

    @property
    def best_other(self) -> str:
        """The best of the other unbiased estimators."""
        others = [name for name in self.errors if name not in (OURS, BIASED)]
        return min(others, key=lambda name: self.errors[name])

    @property
    def ratio(self) -> float:
        """The error of ours over that of the best other one."""
        return max(self.errors[OURS], _LEAST) / max(self.errors[self.best_other], _LEAST)


def main() -> None:
    """Print the table of cells, and a summary for each number of evaluations."""
    arguments = _arguments()
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
        _print_summary(per_player, [cell for cell in cells if cell.per_player == per_player])


def _cell(name: str, table: FloatArray, n_players: int, per_player: int, n_seeds: int) -> Cell:
    """Run all estimators on games of one kind."""
    exact = TabulatedGame(table, n_players).shapley_values()[:, :, None]

    def values_of(rows: IntArray, coalitions: BoolArray) -> FloatArray:
        values: FloatArray = table[rows, coalitions @ (1 << np.arange(n_players))]
        return values

    errors, inside = {}, (0.0, 0.0)
    for estimator, make in ESTIMATORS.items():
        found = [
            core.estimate(
                CoreGame(values_of, n_players, len(table)),
                make(),
                core.Settings(seed=seed, budget=per_player * n_players),
            )
            for seed in range(n_seeds)
        ]
        off = np.array([np.abs(one.values - exact) for one in found])
        errors[estimator] = float((off.sum(axis=2) / np.abs(exact).sum(axis=1)).mean())
        if estimator == OURS:
            inside = _inside(found, exact, 0.95), _inside(found, exact, 0.6827)
    return Cell(name, per_player, errors, inside)


def _inside(found: list[Estimate], exact: FloatArray, confidence: float) -> float:
    """Return how often intervals hold the exact values; rounding errors count as nothing."""
    holds = []
    for one in found:
        lower, upper = one.interval(confidence)
        holds.append(((lower - 1e-9 <= exact) & (exact <= upper + 1e-9)).mean())
    return float(np.mean(holds))


def _print_cells(cells: list[Cell]) -> None:
    """Print the cells as a table, in their order."""
    print("| game | a player | ratio | best other | " + " | ".join(ESTIMATORS) + " | 95 % | 68 % |")
    print("|" + "---|" * (len(ESTIMATORS) + 6))
    for cell in cells:
        errors = " | ".join(f"{cell.errors[name]:.4f}" for name in ESTIMATORS)
        inside = " | ".join(f"{share:.2f}" for share in cell.inside)
        start = f"{cell.name} | {cell.per_player} | {cell.ratio:.2f} | {cell.best_other}"
        print(f"| {start} | {errors} | {inside} |")


def _print_summary(per_player: int, cells: list[Cell]) -> None:
    """Print the median ratio and how often intervals hold, of cells of one budget."""
    if not cells:
        return
    ratios = [cell.ratio for cell in cells]
    inside = np.array([cell.inside for cell in cells])
    print(
        f"\n{per_player} a player: median ratio {np.median(ratios):.2f}, largest {max(ratios):.2f};"
        f" in 95 %: mean {inside[:, 0].mean():.3f}, least {inside[:, 0].min():.2f};"
        f" in 68 %: mean {inside[:, 1].mean():.3f}, least {inside[:, 1].min():.2f}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--players", type=int, default=10)
    parser.add_argument("--per-player", type=int, nargs="+", default=[16, 32, 64])
    parser.add_argument("--games", type=int, default=10, help="games of each kind")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--kinds", nargs="+", choices=list(GAMES), help="all where none is named")
    parser.add_argument("--quick", action="store_true", help="3 games, 1 seed, two budgets")
    return parser.parse_args()


if __name__ == "__main__":
    main()

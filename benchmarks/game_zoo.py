"""Errors and intervals of `oddgp` on games of many kinds, beside our other estimators and peers.

    python benchmarks/game_zoo.py [--players 10] [--per-player 8 16 32] [--games 10]
        [--seeds 1] [--kinds vote "tanh network"] [--estimators oddgp]
        [--shapiq-python NAME/bin/python] [--peer-errors FILE]

A cell is a kind of game and a number of evaluations a player. Its error is Σ|φ̂ − φ| over Σ|φ|,
averaged over games and seeds. The ratio is to the best of the others, with its 95 % interval,
paired by game; then comes the ratio to our least squares. With `--shapiq-python`, the others
include shap's permutation and kernel explainers and regressions of shapiq. Their errors are kept in
a file, and an interrupted run goes on.

Cells that lose beyond the interval come first, then the others by ratio. Then come the cells in
which the error is larger than with half the evaluations, and for each kind of game how often
intervals hold, the worst first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from coalition_games import FloatArray
from scores import Ratio
from shapiq_contenders import ShapiqWorker
from zoo_cells import EXACT, ZooCell, argument_parser, print_summary, ratio_of, shares_inside
from zoo_games import GAMES
from zoo_peers import PeerErrors, relative_errors
from zoo_values import ZooGames, games_of

import shapley_adapters as core
from shapley_adapters.errors import BudgetError

_LEAST_SQUARES = "least squares"

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "oddgp": core.OddGP,
    "equal weights": lambda: core.OddGP("equal"),
    _LEAST_SQUARES: lambda: core.least_squares(True, "kernel", True, False),
    "random order": core.RandomOrder,
    "SHEAR": core.Shear,
}

_OURS = ("oddgp", "equal weights")


@dataclass(frozen=True)
class Cell(ZooCell):
    """A cell with the errors and intervals of `oddgp`.

    Attributes
    ----------
    of_games : dict of str to array, (S, R)
        The errors of each estimator, by seed and game.
    """

    of_games: dict[str, FloatArray]

    @property
    def best(self) -> str:
        """The best of the others."""
        others = [name for name in self.errors if name not in _OURS]
        return min(others, key=lambda name: self.errors[name])

    @property
    def ratio(self) -> float:
        """The error of `oddgp` over that of the best of the others."""
        return self.ratio_to(self.best).of_means

    def ratio_to(self, other: str) -> Ratio:
        """Return the error of `oddgp` over that of another, and its interval."""
        return ratio_of(self.of_games["oddgp"], self.of_games[other], EXACT)


def main() -> None:
    """Print the table of cells, and a summary for each number of evaluations."""
    parser = argument_parser(__doc__, [4, 8, 16, 32, 64], 1)
    parser.add_argument("--estimators", nargs="+", choices=list(ESTIMATORS), help="and oddgp")
    parser.add_argument("--shapiq-python", type=Path, help="a Python that has shapiq; see README")
    parser.add_argument(
        "--peer-errors", type=Path, default=Path("benchmark_output/zoo_peers.json"), metavar="FILE"
    )
    arguments = parser.parse_args()
    arguments.estimators = arguments.estimators or list(ESTIMATORS)
    worker = peers = None
    if arguments.shapiq_python is not None:
        worker = ShapiqWorker(arguments.shapiq_python)
        peers = PeerErrors(worker, arguments.peer_errors)
    cells: list[Cell] = []
    for name in arguments.kinds or GAMES:
        games = games_of(name, arguments.players, arguments.games)
        for per_player in arguments.per_player:
            if per_player * arguments.players < 2**arguments.players:
                cells.append(measured_cell(name, games, per_player, arguments, peers))
    if worker is not None:
        worker.close()
    print(f"{arguments.players} players, {arguments.games} games of each kind\n")
    if cells:
        _print_cells(cells)
        for per_player in arguments.per_player:
            print_summary(per_player, cells)
        _print_medians(cells)
    _print_rises(cells)
    _print_coverage(cells)


def measured_cell(
    name: str,
    games: ZooGames,
    per_player: int,
    arguments: argparse.Namespace,
    peers: PeerErrors | None = None,
) -> Cell:
    """Run the estimators on games of one kind."""
    of_games, of_oddgp = {}, np.zeros((0, 2))
    for estimator in ("oddgp", _LEAST_SQUARES, *arguments.estimators):
        if estimator in of_games:
            continue
        try:
            found = estimates(games, ESTIMATORS[estimator](), per_player, arguments.seeds)
        except BudgetError:
            continue  # SHEAR needs four evaluations a player
        of_seeds = [relative_errors(of_seed.values[:, :, 0], games.exact) for of_seed in found]
        of_games[estimator] = np.array(of_seeds)
        if estimator == "oddgp":
            of_oddgp = np.array([shares_inside(of_seed, games.exact) for of_seed in found])
    if peers is not None:
        of_games |= peers.of_cell(name, games, per_player, arguments.seeds)
    wide, narrow = of_oddgp.mean(axis=0)
    errors = {estimator: float(of_all.mean()) for estimator, of_all in of_games.items()}
    return Cell(name, per_player, errors, (float(wide), float(narrow)), of_games)


def estimates(
    games: ZooGames, estimator: Any, per_player: int, n_seeds: int
) -> list[core.Estimate]:
    """Return the estimates of all games, for each seed."""
    budget = per_player * games.n_players + 2
    settings = [core.Settings(seed=seed, budget=budget) for seed in range(n_seeds)]
    return [core.estimate(games.for_core(), estimator, of_seed) for of_seed in settings]


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
    budgets = sorted({cell.per_player for cell in cells})
    inside = {(cell.name, cell.per_player): cell.inside for cell in cells}
    least = {
        name: min(of_cell[0] for (kind, _), of_cell in inside.items() if kind == name)
        for name, _ in inside
    }
    print("\nIn 95 % / in 68 %:\n\n| game | " + " | ".join(map(str, budgets)) + " |")
    print("|" + "---|" * (len(budgets) + 1))
    for name in sorted(least, key=lambda kind: least[kind]):
        shares = [inside.get((name, budget), (np.nan, np.nan)) for budget in budgets]
        print(f"| {name} | " + " | ".join(f"{w:.2f}/{n:.2f}" for w, n in shares) + " |")


def _print_cells(cells: list[Cell]) -> None:
    """Print the cells as a table: those that lose beyond their intervals, then by ratio."""
    print("| game | a player | ratio | 95 % interval | the best other | to least squares | oddgp |")
    print("|" + "---|" * 7)
    ratios = [cell.ratio_to(cell.best) for cell in cells]
    order = sorted(range(len(cells)), key=lambda i: (ratios[i].lower <= 1, -ratios[i].of_means))
    for cell, ratio in ((cells[i], ratios[i]) for i in order):
        other = f"{cell.best.removeprefix('shapiq ')} {_number(cell.errors[cell.best])}"
        own, least = _number(cell.errors["oddgp"]), _number(cell.ratio_to(_LEAST_SQUARES).of_means)
        interval = f"{_number(ratio.lower)} to {_number(ratio.upper)}"
        start = f"{cell.name} | {cell.per_player} | {_number(ratio.of_means)} | {interval}"
        print(f"| {start} | {other} | {least} | {own} |")


def _number(number: float) -> str:
    """Return a number with two digits, without exponent from 1e-5 on."""
    rounded = f"{number:.2g}"
    is_small = 0 < number < 1e-5
    return rounded if is_small else np.format_float_positional(float(rounded), trim="-")


def _print_medians(cells: list[Cell]) -> None:
    """Print the medians from 8 to 64 evaluations a player, and where least squares are better."""
    ratios = [
        cell.ratio
        for cell in cells
        if 8 <= cell.per_player <= 64 and max(cell.errors["oddgp"], cell.errors[cell.best]) > EXACT
    ]
    median = np.median(ratios) if ratios else np.nan
    print(f"\nFrom 8 to 64 a player, where not both are exact: median ratio {median:.2f}")
    losing = [cell for cell in cells if cell.ratio_to(cell.best).lower > 1]
    print(f"Cells that lose beyond the interval: {len(losing)} of {len(cells)}")
    for cell in cells:
        to_least = cell.ratio_to(_LEAST_SQUARES)
        if to_least.of_means > 1.05:
            interval = f"({to_least.lower:.2f} to {to_least.upper:.2f})"
            print(
                f"least squares: {cell.name}, {cell.per_player} a player, "
                f"{to_least.of_means:.2f} {interval}"
            )


if __name__ == "__main__":
    main()

"""Errors and intervals of `oddgp` on kinds and parameters of games that a seed draws.

    python benchmarks/drawn_zoo.py --draw 7 [--games 10] [--seeds 1] [--n-kinds 6]
        [--kinds "spanning tree"] [--per-player 4 16] [--estimators oddgp]

The draw chooses some kinds of the other benchmark of games beside those of `zoo_draws.py`, the
number of players of each kind, 10 to 14, and all parameters. A mechanism that is tuned to known
games fails on some draw. A cell is a kind and a number of evaluations a player; it fails where 95 %
intervals hold less than .90 or more than .99, unless values are exact. Failing cells come first,
the least coverage first.
The stated error is the root mean square of standard errors, over that of the errors.
"""

from __future__ import annotations

import argparse

import numpy as np
from game_zoo import ESTIMATORS, Cell, estimates, measured_cell
from zoo_cells import EXACT
from zoo_draws import DRAWN, drawn_tables
from zoo_games import GAMES
from zoo_values import ZooGames, tabulated_games

_FEWEST_PLAYERS, _MOST_PLAYERS = 10, 14
_LEAST, _MOST = 0.90, 0.99
"""Shares of exact values in 95 % intervals that are right."""


def main() -> None:
    """Print the cells of a draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", type=int, required=True, help="the seed of the draw")
    parser.add_argument("--games", type=int, default=10, help="games of each kind")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--n-kinds", type=int, default=6, help="of the other kinds")
    parser.add_argument("--kinds", nargs="+", choices=[*DRAWN, *GAMES])
    parser.add_argument("--per-player", type=int, nargs="+", default=[4, 8, 16, 32, 64, 128])
    parser.add_argument("--estimators", nargs="+", choices=list(ESTIMATORS))
    arguments = parser.parse_args()
    arguments.estimators = arguments.estimators or list(ESTIMATORS)
    rng = np.random.default_rng(arguments.draw)
    others = rng.choice(list(GAMES), min(arguments.n_kinds, len(GAMES)), replace=False).tolist()
    cells = []
    for kind in arguments.kinds or [*DRAWN, *others]:
        n_players = int(rng.integers(_FEWEST_PLAYERS, _MOST_PLAYERS + 1))
        table = drawn_tables(kind, n_players, arguments.games, arguments.draw)
        games = tabulated_games(table, n_players)
        name = f"{kind}, {n_players} players"
        for per_player in arguments.per_player:
            if per_player * n_players + 2 < 2**n_players:
                cell = measured_cell(name, games, per_player, arguments)
                cells.append((cell, _stated_over_actual(games, per_player, arguments.seeds)))
    print(f"Draw {arguments.draw}: {arguments.games} games of each kind\n")
    _print(sorted(cells, key=lambda found: (not _fails(found[0]), found[0].inside[0])))


def _fails(cell: Cell) -> bool:
    most = _MOST if cell.errors["oddgp"] > EXACT else 1.0  # known values are always inside
    return not _LEAST <= cell.inside[0] <= most


def _stated_over_actual(games: ZooGames, per_player: int, n_seeds: int) -> float:
    """Return the root mean square of standard errors over that of errors of `oddgp`."""
    found = estimates(games, ESTIMATORS["oddgp"](), per_player, n_seeds)
    stated = np.mean([(of_seed.standard_errors**2).mean() for of_seed in found])
    actual = np.mean([((of_seed.values[:, :, 0] - games.exact) ** 2).mean() for of_seed in found])
    return float(np.sqrt(stated / actual)) if actual > EXACT**2 else np.nan


def _print(cells: list[tuple[Cell, float]]) -> None:
    print("| game | a player | in 95 % | stated error | error | ratio | to |")
    print("|" + "---|" * 7)
    for cell, stated in cells:
        mark = " *" if _fails(cell) else ""
        print(
            f"| {cell.name} | {cell.per_player} | {cell.inside[0]:.2f}{mark} | {stated:.2f} "
            f"| {cell.errors['oddgp']:.3f} | {cell.ratio:.2f} | {cell.best} |"
        )
    n_failing = sum(_fails(cell) for cell, _ in cells)
    print(f"\n{n_failing} of {len(cells)} cells fail: their coverage is not {_LEAST} to {_MOST}.")


if __name__ == "__main__":
    main()

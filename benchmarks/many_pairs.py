"""Errors, intervals and time of `oddgp` with thousands of evaluations for a row.

    python benchmarks/many_pairs.py [--players 16] [--evaluations 4090 4300 8200 10300]
        [--games 5] [--seeds 2] [--kinds vote "tanh network"] [--weights equal learned]

From 10,000 evaluations on, the prior is approximated through the first values. An error is
Σ|φ̂ − φ| over Σ|φ|, averaged over games and seeds; its standard error is that over the games. The
next columns are the shares of exact values in 95 % and 68 % intervals, and processor seconds for a
row.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from zoo_cells import shares_inside
from zoo_games import GAMES
from zoo_peers import relative_errors
from zoo_values import ZooGames, games_of

import shapley_adapters as core

_KINDS = [
    "vote",
    "sum above a threshold",
    "second largest",
    "tanh network",
    "ReLU network",
    "trees",
    "unanimity, 15 of 4 to 8",
]


def main() -> None:
    """Print a table for each kind of game."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--players", type=int, default=16)
    parser.add_argument(
        "--evaluations", type=int, nargs="+", default=[4090, 4300, 8200, 9990, 10300, 16400]
    )
    parser.add_argument("--games", type=int, default=5, help="games of each kind")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", choices=list(GAMES), default=_KINDS)
    parser.add_argument("--weights", nargs="+", default=["equal", "learned"])
    arguments = parser.parse_args()
    print(f"{arguments.players} players\n")
    for kind in arguments.kinds:
        games = games_of(kind, arguments.players, arguments.games)
        print(f"{kind}\n\n| weights | evaluations | error | in 95 % | in 68 % | seconds |")
        print("|---|---|---|---|---|---|")
        for weights in arguments.weights:
            for budget in arguments.evaluations:
                print(_line(games, weights, budget, arguments.seeds), flush=True)
        print()


def _line(games: ZooGames, weights: str, budget: int, n_seeds: int) -> str:
    """Return a line of a table."""
    errors, inside = [], []
    started = time.process_time()
    for seed in range(n_seeds):
        settings = core.Settings(seed=seed, budget=budget)
        found = core.estimate(games.for_core(), core.OddGP(weights), settings)
        errors.append(relative_errors(found.values[:, :, 0], games.exact))
        inside.append(shares_inside(found, games.exact))
    seconds = (time.process_time() - started) / n_seeds / len(games.exact)
    of_games = np.mean(errors, axis=0)
    standard_error = of_games.std(ddof=1) / np.sqrt(len(of_games))
    wide, narrow = np.mean(inside, axis=0)
    return (
        f"| {weights} | {budget:,} | {of_games.mean():.2g} ± {standard_error:.1g} "
        f"| {wide:.2f} | {narrow:.2f} | {seconds:.2f} |"
    )


if __name__ == "__main__":
    main()

"""Whether the error of `oddgp` falls from every number of evaluations to its double.

    python benchmarks/consistent_games.py [--players 10] [--games 10] [--seeds 3]
        [--kinds vote "tanh network"]

For each game, the mean error over seeds, Σ|φ̂ − φ| over Σ|φ|, at 2, 4, 8, … evaluations a player
and with all coalitions. A game rises where the mean difference over seeds to half the evaluations
is above 0 beyond its 95 % interval. By chance, one in forty is where errors are level. The table
has the kinds of games with rises: the mean error over that with half the evaluations, and how many
games rise. Then come the largest error with all coalitions, and the kinds where it is over 1e-10.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.stats
from coalition_games import BoolArray, FloatArray
from zoo_games import GAMES
from zoo_peers import relative_errors
from zoo_values import ZooGames, games_of

import shapley_adapters as core

_EXACT = 1e-9
"""Differences below this are rounding."""

_COMPLETE = 1e-10
"""The most that an error may be with all coalitions."""


def main() -> None:
    """Print the rises and the errors with all coalitions."""
    arguments = _arguments()
    n_all = 2**arguments.players
    budgets = [2]
    while 2 * budgets[-1] * arguments.players < n_all:
        budgets.append(2 * budgets[-1])
    print(f"{arguments.players} players, {arguments.games} games, {arguments.seeds} seeds\n")
    print("| game | a player | error over that with half | games that rise |\n|---|---|---|---|")
    n_rises, complete = 0, {}
    for name in arguments.kinds or GAMES:
        games = games_of(name, arguments.players, arguments.games)
        spent = [budget * arguments.players + 2 for budget in budgets] + [n_all]
        errors = [_errors(games, budget, arguments.seeds) for budget in spent]
        names = [*map(str, budgets[1:]), "all"]
        for budget, before, after in zip(names, errors[:-1], errors[1:], strict=True):
            is_rise = _rises(before, after)
            n_rises += int(is_rise.sum())
            ratio = after.mean() / max(before.mean(), _EXACT)
            if is_rise.any() or (ratio > 1 and after.mean() > _EXACT):
                print(f"| {name} | {budget} | {ratio:.2f} | {is_rise.sum()} of {len(is_rise)} |")
        complete[name] = float(errors[-1].max())
    n_steps = len(complete) * arguments.games * len(budgets)
    print(f"\nRises: {n_rises} of {n_steps} steps of single games")
    print(f"With all coalitions: {max(complete.values()):.1e}")
    print("Above 1e-10:", {name: error for name, error in complete.items() if error > _COMPLETE})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--players", type=int, default=10)
    parser.add_argument("--games", type=int, default=10, help="games of each kind")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=list(GAMES), help="all where none is named")
    return parser.parse_args()


def _errors(games: ZooGames, budget: int, n_seeds: int) -> FloatArray:
    """Return the errors of all games with a number of evaluations, (S, R)."""
    settings = [core.Settings(seed=seed, budget=budget) for seed in range(n_seeds)]
    estimates = [core.estimate(games.for_core(), core.OddGP(), of_seed) for of_seed in settings]
    return np.array([relative_errors(one.values[:, :, 0], games.exact) for one in estimates])


def _rises(before: FloatArray, after: FloatArray) -> BoolArray:
    """Return which games have larger errors than with half the evaluations, (R,)."""
    differences, n_seeds = after - before, len(after)
    quantile = scipy.stats.t.ppf(0.975, n_seeds - 1)
    slack = quantile * differences.std(axis=0, ddof=1) / np.sqrt(n_seeds)
    rises: BoolArray = differences.mean(axis=0) > slack + _EXACT
    return rises


if __name__ == "__main__":
    main()

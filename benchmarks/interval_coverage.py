"""How often the 95 % intervals of every estimator hold, on kinds and parameters that a seed draws.

    python benchmarks/interval_coverage.py --draw 5 [--games 8] [--seeds 2]
        [--per-player 4 8 16 32] [--estimators "random order" SHEAR]

For each estimator and number of evaluations a player: the mean over the kinds of `drawn_zoo.py`
with 10 to 13 players, and the kinds whose intervals hold least. Budgets that give no standard
errors, or are refused, are left out.
"""

from __future__ import annotations

import argparse

import numpy as np
from drawn_zoo import DRAWN, drawn_tables
from game_zoo import estimates
from zoo_cells import shares_inside
from zoo_games import GAMES
from zoo_values import ZooGames, tabulated_games

import shapley_adapters as core
from shapley_adapters.errors import BudgetError

ESTIMATORS = {
    "random order": core.RandomOrder,
    "SHEAR": core.Shear,
    "semivalue": core.Semivalue,
    "sim-semivalue": core.SimSemivalue,
    "least squares": core.LeastSquares,
    "oddgp": core.OddGP,
}
_LEAST, _N_SHOWN = 0.9, 3


def main() -> None:
    """Print a line for each estimator and budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", type=int, required=True, help="the seed of the draw")
    parser.add_argument("--games", type=int, default=8, help="games of each kind")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--per-player", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=[*ESTIMATORS])
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.draw)
    games: dict[str, ZooGames] = {}
    for kind in [*DRAWN, *GAMES]:
        n_players = int(rng.integers(10, 14))
        table = drawn_tables(kind, n_players, arguments.games, arguments.draw)
        games[kind] = tabulated_games(table, n_players)
    print("| estimator | a player | mean | kinds below .90 | the lowest |")
    print("|" + "---|" * 5)
    for name in arguments.estimators:
        for per_player in arguments.per_player:
            shares = {
                kind: _share_inside(of_kind, name, per_player, arguments.seeds)
                for kind, of_kind in games.items()
            }
            known = {kind: share for kind, share in shares.items() if share is not None}
            if known:
                print(f"| {name} | {per_player} | {_summary(known)} |", flush=True)


def _share_inside(games: ZooGames, name: str, per_player: int, n_seeds: int) -> float | None:
    """Return the share of exact values in 95 % intervals; None without standard errors."""
    try:
        found = estimates(games, ESTIMATORS[name](), per_player, n_seeds)
    except BudgetError:
        return None
    if any(np.isnan(of_seed.standard_errors).any() for of_seed in found):
        return None
    return float(np.mean([shares_inside(of_seed, games.exact)[0] for of_seed in found]))


def _summary(shares: dict[str, float]) -> str:
    lowest = sorted(shares, key=lambda kind: shares[kind])[:_N_SHOWN]
    n_below = sum(share < _LEAST for share in shares.values())
    texts = ", ".join(f"{kind} {shares[kind]:.2f}" for kind in lowest)
    mean = np.mean(list(shares.values()))
    return f"{mean:.3f} | {n_below} of {len(shares)} | {texts}"


if __name__ == "__main__":
    main()

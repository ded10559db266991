"""How often the 95 % intervals of every estimator hold, on kinds and parameters that a seed draws.

    python benchmarks/interval_coverage.py --draw 5 [--games 8] [--seeds 2]
        [--per-player 4 8 16 32] [--estimators "random order" SHEAR]

The kinds are those of `zoo_games.py`, and kinds below whose quotas, estates, costs, networks and
ensembles are drawn as well, with 10 to 13 players. For each estimator and number of evaluations a
player: the mean over the kinds, and the kinds whose intervals hold least. Budgets that give no
standard errors, or are refused, are left out.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import pairwise

import numpy as np
from coalition_games import FloatArray, TabulatedGame
from core_games import core_game, share_inside
from zoo_games import GAMES, shares_of_vote
from zoo_models import Maker, all_coalitions

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

_POINTS = 300
"""Points that an ensemble classifies."""


def _vote(n_players: int, rng: np.random.Generator, lowest: float, highest: float) -> FloatArray:
    """Return a vote of random shares that needs more than a quota of all."""
    shares, quota = shares_of_vote(n_players, rng), rng.uniform(lowest, highest)
    values: FloatArray = (all_coalitions(n_players) @ shares > quota * shares.sum()).astype(float)
    return values


def _bankruptcy(n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return what is left of an estate for some creditors after all others are paid in full."""
    claims = rng.lognormal(size=n_players)
    estate = rng.uniform(0.2, 0.9) * claims.sum()
    values: FloatArray = np.maximum(estate - ~all_coalitions(n_players) @ claims, 0.0)
    return values


def _airport(n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return the largest of lognormal costs."""
    costs = rng.lognormal(sigma=rng.uniform(0.5, 2.0), size=n_players)
    values: FloatArray = (all_coalitions(n_players) * costs).max(axis=1)
    return values


def _ensemble(n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return the accuracy of the majority of models, each right with its own probability."""
    difficulty = rng.normal(size=(_POINTS, 1))  # that all models share
    skills = rng.normal(0.4, 0.6, size=n_players)
    correct = np.where(skills + rng.normal(size=(_POINTS, n_players)) > difficulty, 1, -1)
    votes = all_coalitions(n_players).astype(float) @ correct.T
    values: FloatArray = ((votes > 0) + 0.5 * (votes == 0)).mean(axis=1)
    return values


def _distances(n_nodes: int, rng: np.random.Generator) -> FloatArray:
    """Return the distances of random points in a square, each times a random detour."""
    points = rng.uniform(size=(n_nodes, 2))
    detours = rng.uniform(1, 4, size=(n_nodes, n_nodes))
    distances: FloatArray = np.linalg.norm(points[:, None] - points, axis=2)
    return distances * np.minimum(detours, detours.T)


def _shortest_path(n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return how much shorter a path between two nodes is where it may pass through players."""
    lengths, present = _distances(n_players + 2, rng), all_coalitions(n_players)
    lengths[-2, -1] = lengths[-1, -2] = 2 * lengths.max()  # most paths pass through players
    paths = np.repeat(lengths[None, -2], len(present), axis=0)  # from the first end
    absent = np.pad(~present, ((0, 0), (0, 2)))
    for _ in range(n_players):
        starts = np.where(absent, np.inf, paths)
        paths = np.stack([(starts + to_node).min(axis=1) for to_node in lengths.T], axis=1)
    return np.asarray(lengths[-2, -1] - paths[:, -1])


def _spanning_tree(n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return the length of the shortest tree of players and a source, by Prim's algorithm."""
    lengths, present = _distances(n_players + 1, rng), all_coalitions(n_players)
    is_left = np.pad(present, ((0, 0), (0, 1)))
    to_tree = np.repeat(lengths[None, -1], len(present), axis=0)
    values = np.zeros(len(present))
    for _ in range(n_players):
        open_lengths = np.where(is_left, to_tree, np.inf)
        nearest = open_lengths.argmin(axis=1)
        added = open_lengths.min(axis=1)
        values += np.where(np.isfinite(added), added, 0.0)
        is_left[np.arange(len(present)), nearest] = False
        to_tree = np.minimum(to_tree, lengths[nearest])
    return values


_QUOTAS = (0.5, 0.6, 0.7, 0.8, 0.95)

DRAWN: dict[str, Maker] = {
    **{
        f"vote, quota {low} to {high}": partial(_vote, lowest=low, highest=high)
        for low, high in pairwise(_QUOTAS)
    },
    "bankruptcy": _bankruptcy,
    "airport, lognormal": _airport,
    "ensemble": _ensemble,
    "shortest path": _shortest_path,
    "spanning tree": _spanning_tree,
}
"""The kinds whose parameters are drawn."""


KINDS = DRAWN | GAMES


def drawn_games(kind: str, n_players: int, n_games: int, seed: int) -> TabulatedGame:
    """Return some games of any kind."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    table = np.stack([KINDS[kind](n_players, rng) for _ in range(n_games)])
    return TabulatedGame(table, n_players)


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
    games = {
        kind: drawn_games(kind, int(rng.integers(10, 14)), arguments.games, arguments.draw)
        for kind in KINDS
    }
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


def _share_inside(games: TabulatedGame, name: str, per_player: int, n_seeds: int) -> float | None:
    """Return the share of exact values in 95 % intervals; None without standard errors."""
    game, budget = core_game(games), per_player * games.n_players + 2
    try:
        found = [
            core.estimate(game, ESTIMATORS[name](), core.Settings(seed=seed, budget=budget))
            for seed in range(n_seeds)
        ]
    except BudgetError:
        return None
    if any(np.isnan(of_seed.standard_errors).any() for of_seed in found):
        return None
    exact = games.shapley_values()
    return float(np.mean([share_inside(of_seed, exact) for of_seed in found]))


def _summary(shares: dict[str, float]) -> str:
    lowest = sorted(shares, key=lambda kind: shares[kind])[:_N_SHOWN]
    n_below = sum(share < _LEAST for share in shares.values())
    texts = ", ".join(f"{kind} {shares[kind]:.2f}" for kind in lowest)
    mean = np.mean(list(shares.values()))
    return f"{mean:.3f} | {n_below} of {len(shares)} | {texts}"


if __name__ == "__main__":
    main()

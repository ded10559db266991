"""How many of the strongest pairs of many players few evaluations find, beside SPEX and ProxySPEX.

    python benchmarks/strongest_pairs.py [--players 50 200] [--per-player 2 4 8] [--games 3]
        [--shapiq-python NAME/bin/python]

Games are sums of heavy-tailed effects of single players and of conjunctions of two to four players,
half as many as players. The Shapley interaction of a pair is the sum of w / (|T| − 1) over the
conjunctions T that hold it. Recall: how many of the ten strongest pairs are among the ten that are
found. Held: how many of these ten, and of all pairs, are in their 95 % intervals. Seconds are of
the processor, shapiq's of the clock; the cells in which a peer finds more pairs come first. No data
is needed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from coalition_games import BoolArray, FloatArray
from core_games import CoreGame
from shapiq_contenders import Approximator, ShapiqWorker, UnusableBudgetError

import shapley_adapters as core

OURS, _COUNTED = "oddgp", 10


def _options(**more: object) -> Callable[[int, int], dict[str, object]]:
    return lambda n_players, budget: {"index": "SII", "max_order": 2, **more}


PEERS = (
    # Without the search of hyperparameters, which takes minutes.
    Approximator("ProxySPEX", _options(hpo=False, pairing_trick=True)),
    Approximator("SPEX", _options()),
)


def conjunctions(n_players: int, seed: int) -> tuple[Callable[[BoolArray], FloatArray], FloatArray]:
    """Return a game of coalitions, (C, M), and its interactions, (M (M − 1) / 2,)."""
    rng = np.random.default_rng(seed)
    effects = rng.standard_t(3, size=n_players)
    sizes = rng.choice([2, 2, 3, 4], size=n_players // 2)
    sets = [np.sort(rng.choice(n_players, size, replace=False)) for size in sizes]
    weights = 4 * rng.standard_t(3, size=len(sets))
    exact = np.zeros((n_players, n_players))
    for members, weight in zip(sets, weights, strict=True):
        for first, second in combinations(members, 2):
            exact[first, second] += weight / (len(members) - 1)

    def values(coalitions: BoolArray) -> FloatArray:
        total = coalitions @ effects
        for members, weight in zip(sets, weights, strict=True):
            total += weight * coalitions[:, members].all(axis=1)
        return np.asarray(total)

    return values, exact[np.triu_indices(n_players, 1)]


def recall(found: FloatArray, exact: FloatArray) -> float:
    """Return the share of the strongest pairs that are among the strongest of those found."""
    top, ours = (set(np.argsort(-np.abs(pairs))[:_COUNTED]) for pairs in (exact, found))
    return len(top & ours) / _COUNTED


def held(found: FloatArray, errors: FloatArray, exact: FloatArray) -> dict[str, object]:
    """Return how many of the strongest pairs found, and of all, are in their 95 % intervals."""
    inside, top = np.abs(exact - found) < 1.96 * errors, np.argsort(-np.abs(found))[:_COUNTED]
    return {"held of ten": float(inside[top].mean()), "held of all": float(inside.mean())}


def measured(
    n_players: int, per_player: float, seed: int, worker: ShapiqWorker | None
) -> list[dict[str, object]]:
    """Return recall and seconds of each method."""
    values, exact = conjunctions(n_players, seed)
    budget, found = int(per_player * n_players), {}
    started = time.process_time()
    game = CoreGame(lambda rows, coalitions: values(coalitions), n_players, 1)
    settings = core.Settings(seed=seed, budget=budget, interactions="shapley")
    estimate = core.estimate(game, core.OddGP(), settings)
    assert estimate.interactions is not None
    found[OURS] = estimate.interactions.values[0, :, 0], time.process_time() - started
    errors = estimate.interactions.standard_errors[0, :, 0]
    inside = held(found[OURS][0], errors, exact)
    for peer in PEERS:
        if worker is None:
            break
        try:
            pairs, _, seconds = worker.explain(peer, values, n_players, budget, seed, of_pairs=True)
        except UnusableBudgetError:
            continue
        found[peer.kind] = pairs, seconds
    cell = {"players": n_players, "per player": per_player}
    return [
        {**cell, "method": method, "recall": recall(pairs, exact), "seconds": seconds}
        | (inside if method == OURS else {})
        for method, (pairs, seconds) in found.items()
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--per-player", type=float, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--games", type=int, default=3)
    parser.add_argument("--shapiq-python", type=Path)
    options = parser.parse_args()
    worker = ShapiqWorker(options.shapiq_python) if options.shapiq_python else None
    rows = [
        row
        for n_players in options.players
        for per_player in options.per_player
        for seed in range(options.games)
        for row in measured(n_players, per_player, seed, worker)
    ]
    cells = pd.DataFrame(rows).groupby(["players", "per player", "method"]).mean().unstack()
    lost = cells["recall"].drop(columns=OURS).max(axis=1) - cells["recall"][OURS]
    cells = cells.loc[lost.sort_values(ascending=False, kind="stable").index]
    cells.columns = [f"{method}, {what}" for what, method in cells.columns]
    print(cells.round(2).reset_index().to_string(index=False))


if __name__ == "__main__":
    main()

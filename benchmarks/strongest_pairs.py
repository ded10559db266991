"""How many strong pairs of many players few evaluations find, beside SPEX and ProxySPEX.

    python benchmarks/strongest_pairs.py [--players 50 200] [--per-player 2 4 8] [--games 3]
        [--largest 3] [--shapiq-python NAME/bin/python]

Games are sums of heavy-tailed effects of single players and of conjunctions of two to four players,
half as many as players; with `--largest 3`, conjunctions of four lose their last player. The
Shapley interaction of a pair is the sum of w / (|T| − 1) over the conjunctions T that hold it.
Recall: how many of the ten strongest pairs are among the ten that are found. Held: how many of
these, and of all pairs found, are in their 95 % intervals. Seconds are of the processor, shapiq's
of the clock; the cells in which a peer finds more pairs come first. No data is needed.
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
from shapley_adapters.interactions.result import InteractionRequest

OURS, _COUNTED = "oddgp", 10


_SII = {"index": "SII", "max_order": 2}
PEERS = (
    # Without the search of hyperparameters, which takes minutes.
    Approximator("ProxySPEX", lambda n, b: {**_SII, "hpo": False, "pairing_trick": True}),
    Approximator("SPEX", lambda n, b: _SII),
)


def conjunctions(
    n_players: int, seed: int, largest: int
) -> tuple[Callable[[BoolArray], FloatArray], FloatArray]:
    """Return a game of coalitions, (C, M), and its interactions of all pairs, (P,)."""
    rng = np.random.default_rng(seed)
    effects = rng.standard_t(3, size=n_players)
    sizes = rng.choice([2, 2, 3, 4], size=n_players // 2)
    sets = [np.sort(rng.choice(n_players, size, replace=False)[:largest]) for size in sizes]
    weights = 4 * rng.standard_t(3, size=len(sets))
    exact = dict.fromkeys(combinations(range(n_players), 2), 0.0)
    for members, weight in zip(sets, weights, strict=True):
        for players in combinations(members.tolist(), 2):
            exact[players] += weight / (len(members) - 1)

    def values(coalitions: BoolArray) -> FloatArray:
        total = coalitions @ effects
        for members, weight in zip(sets, weights, strict=True):
            total += weight * coalitions[:, members].all(axis=1)
        return np.asarray(total)

    return values, np.array(list(exact.values()))


def recall(found: FloatArray, exact: FloatArray) -> float:
    """Return the share of the strongest pairs that are among the strongest of those found."""
    top, ours = (
        {index for index in np.argsort(-np.abs(pairs))[:_COUNTED] if pairs[index]}
        for pairs in (exact, found)
    )
    return len(top & ours) / _COUNTED


def held(found: FloatArray, errors: FloatArray, exact: FloatArray) -> dict[str, object]:
    """Return how many of the strongest pairs found, and of all, are in their 95 % intervals."""
    listed = np.argsort(-np.abs(found))
    listed = listed[errors[listed] > 0]
    deviations = np.abs(exact - found)[listed] / errors[listed]
    inside = deviations < 1.96
    if not len(inside):
        return {}
    return {
        "held of strongest": float(inside[:_COUNTED].mean()),
        "held of all": float(inside.mean()),
    }


def measured(
    n_players: int,
    per_player: float,
    seed: int,
    largest: int,
    worker: ShapiqWorker | None,
) -> list[dict[str, object]]:
    """Return recall and seconds of each method."""
    values, exact = conjunctions(n_players, seed, largest)
    budget, found = int(per_player * n_players), {}
    started = time.process_time()
    game = CoreGame(lambda rows, coalitions: values(coalitions), n_players, 1)
    settings = core.Settings(seed=seed, budget=budget, interactions=InteractionRequest("SII"))
    estimate = core.estimate(game, core.OddGP(), settings)
    seconds = time.process_time() - started
    pairs = estimate.interactions
    assert pairs is not None
    found[OURS] = pairs.values[0, :, 0], seconds
    inside = held(pairs.values[0, :, 0], pairs.standard_errors[0, :, 0], exact)
    for peer in PEERS:
        if worker is None:
            break
        try:
            of_peer, _, seconds = worker.explain(peer, values, n_players, budget, seed, of_size=2)
        except UnusableBudgetError:
            continue
        found[peer.kind] = of_peer, seconds
    cell = {"players": n_players, "per player": per_player}
    return [
        {**cell, "method": method, "recall": recall(values_of_pairs, exact)}
        | {"seconds": seconds}
        | (inside if method == OURS else {})
        for method, (values_of_pairs, seconds) in found.items()
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--per-player", type=float, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--games", type=int, default=3)
    parser.add_argument("--largest", type=int, choices=(2, 3, 4), default=4)
    parser.add_argument("--shapiq-python", type=Path)
    options = parser.parse_args()
    worker = ShapiqWorker(options.shapiq_python) if options.shapiq_python else None
    rows = [
        row
        for n_players in options.players
        for per_player in options.per_player
        for seed in range(options.games)
        for row in measured(n_players, per_player, seed, options.largest, worker)
    ]
    cells = pd.DataFrame(rows).groupby(["players", "per player", "method"]).mean().unstack()
    cells = cells.dropna(axis=1, how="all")
    lost = cells["recall"].drop(columns=OURS).max(axis=1) - cells["recall"][OURS]
    cells = cells.loc[lost.sort_values(ascending=False, kind="stable").index]
    cells.columns = [f"{method}, {what}" for what, method in cells.columns]
    print(cells.round(2).reset_index().to_string(index=False))


if __name__ == "__main__":
    main()

"""How many strong pairs or triples of many players few evaluations find, beside SPEX, ProxySPEX.

    python benchmarks/strongest_pairs.py [--players 50 200] [--per-player 2 4 8] [--games 3]
        [--size 3] [--largest 3] [--shapiq-python NAME/bin/python]

Games are sums of heavy-tailed effects of single players and of conjunctions of two to four players,
half as many as players; with `--largest 3`, conjunctions of four lose their last player. The
Shapley interaction of a pair is the sum of w / (|T| − 1) over the conjunctions T that hold it, that
of a triple the sum of w / (|T| − 2). Recall: how many of the ten strongest pairs, or the five
strongest triples, are among as many that are found. Held: how many of these, and of all pairs or
all triples found, are in their 95 % intervals. Slope: that of the exact values on those found, of
the strongest found; less than 1 where the choice of the strongest, or a prior that is too wide,
overestimates them. Deviation: the root mean square of their errors over standard errors. Seconds
are of the processor, shapiq's of the clock; the cells in which a peer finds more pairs come first.
No data is needed.
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

OURS, _COUNTED = "oddgp", {2: 10, 3: 5}


def peers(size: int) -> tuple[Approximator, ...]:
    """Return the peers for interactions of so many players."""

    def options(**more: object) -> Callable[[int, int], dict[str, object]]:
        return lambda n_players, budget: {"index": "SII", "max_order": size, **more}

    return (
        # Without the search of hyperparameters, which takes minutes.
        Approximator("ProxySPEX", options(hpo=False, pairing_trick=True)),
        Approximator("SPEX", options()),
    )


def conjunctions(
    n_players: int, seed: int, size: int, largest: int
) -> tuple[Callable[[BoolArray], FloatArray], FloatArray]:
    """Return a game of coalitions, (C, M), and its interactions of all sets of `size`, (T,)."""
    rng = np.random.default_rng(seed)
    effects = rng.standard_t(3, size=n_players)
    sizes = rng.choice([2, 2, 3, 4], size=n_players // 2)
    sets = [np.sort(rng.choice(n_players, size, replace=False)[:largest]) for size in sizes]
    weights = 4 * rng.standard_t(3, size=len(sets))
    exact = dict.fromkeys(combinations(range(n_players), size), 0.0)
    for members, weight in zip(sets, weights, strict=True):
        for players in combinations(members.tolist(), size):
            exact[players] += weight / (len(members) - size + 1)

    def values(coalitions: BoolArray) -> FloatArray:
        total = coalitions @ effects
        for members, weight in zip(sets, weights, strict=True):
            total += weight * coalitions[:, members].all(axis=1)
        return np.asarray(total)

    return values, np.array(list(exact.values()))


def recall(found: FloatArray, exact: FloatArray, n: int) -> float:
    """Return the share of the n strongest sets that are among the n strongest of those found."""
    top, ours = (
        {index for index in np.argsort(-np.abs(sets))[:n] if sets[index]} for sets in (exact, found)
    )
    return len(top & ours) / n


def held(found: FloatArray, errors: FloatArray, exact: FloatArray, n: int) -> dict[str, object]:
    """Return how many of the n strongest sets found, and of all, are in their 95 % intervals."""
    listed = np.argsort(-np.abs(found))
    listed = listed[errors[listed] > 0]
    deviations = np.abs(exact - found)[listed] / errors[listed]
    inside, top = deviations < 1.96, listed[:n]
    if not len(inside):
        return {}
    return {
        "held of strongest": float(inside[:n].mean()),
        "held of all": float(inside.mean()),
        "slope": float(exact[top] @ found[top] / (found[top] @ found[top])),
        "deviation": float(np.sqrt((deviations[:n] ** 2).mean())),
    }


def ours(estimate: core.Estimate, n_players: int, size: int) -> tuple[FloatArray, FloatArray]:
    """Return the interactions of all sets of so many players and their errors, (T,)."""
    assert estimate.interactions is not None
    if size == 2:
        return estimate.interactions.values[0, :, 0], estimate.interactions.standard_errors[0, :, 0]
    sets = {players: index for index, players in enumerate(combinations(range(n_players), size))}
    values, errors = np.zeros((2, len(sets)))
    names = [str(player) for player in range(n_players)]
    for triple in estimate.interactions.triples.triples_of(0, 0, names):
        index = sets[tuple(sorted(map(int, triple.names)))]
        values[index], errors[index] = triple.value, triple.standard_error
    return values, errors


def measured(
    n_players: int,
    per_player: float,
    seed: int,
    size: int,
    largest: int,
    worker: ShapiqWorker | None,
) -> list[dict[str, object]]:
    """Return recall and seconds of each method."""
    values, exact = conjunctions(n_players, seed, size, largest)
    budget, found = int(per_player * n_players), {}
    started = time.process_time()
    game = CoreGame(lambda rows, coalitions: values(coalitions), n_players, 1)
    settings = core.Settings(seed=seed, budget=budget, interactions="shapley")
    estimate = core.estimate(game, core.OddGP(), settings)
    seconds = time.process_time() - started
    of_ours, errors = ours(estimate, n_players, size)
    found[OURS] = of_ours, seconds
    inside = held(of_ours, errors, exact, _COUNTED[size])
    for peer in peers(size):
        if worker is None:
            break
        try:
            sets, _, seconds = worker.explain(peer, values, n_players, budget, seed, of_size=size)
        except UnusableBudgetError:
            continue
        found[peer.kind] = sets, seconds
    cell = {"players": n_players, "per player": per_player}
    return [
        {**cell, "method": method, "recall": recall(sets, exact, _COUNTED[size])}
        | {"seconds": seconds}
        | (inside if method == OURS else {})
        for method, (sets, seconds) in found.items()
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--per-player", type=float, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--games", type=int, default=3)
    parser.add_argument("--size", type=int, choices=sorted(_COUNTED), default=2)
    parser.add_argument("--largest", type=int, choices=(2, 3, 4), default=4)
    parser.add_argument("--shapiq-python", type=Path)
    options = parser.parse_args()
    worker = ShapiqWorker(options.shapiq_python) if options.shapiq_python else None
    rows = [
        row
        for n_players in options.players
        for per_player in options.per_player
        for seed in range(options.games)
        for row in measured(n_players, per_player, seed, options.size, options.largest, worker)
    ]
    cells = pd.DataFrame(rows).groupby(["players", "per player", "method"]).mean().unstack()
    cells = cells.dropna(axis=1, how="all")
    lost = cells["recall"].drop(columns=OURS).max(axis=1) - cells["recall"][OURS]
    cells = cells.loc[lost.sort_values(ascending=False, kind="stable").index]
    cells.columns = [f"{method}, {what}" for what, method in cells.columns]
    print(cells.round(2).reset_index().to_string(index=False))


if __name__ == "__main__":
    main()

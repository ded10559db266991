"""What a mechanism or a constant of `oddgp` is worth, or another estimator in its place.

    python benchmarks/ablation.py [--seed 11] [--players 8 14 31 60] [--per-player 1 2 2.5 4 8 16]
        [--games 3] [--kinds radial network] [--set MODULE.NAME=VALUE ...] [--other MODULE:CLASS]
        [--docs]

Without --set and --other, `oddgp` is compared with random orders and least squares at equal
evaluations. With --set, constants of its modules have other values in a second column:
`--set prior._SD_STRENGTH=0.1` for `shapley_adapters.estimators.odd_gp.prior`. With
--other, the second column is an estimator of any module that Python finds, and --set is for modules
of its package.

For each cell, a kind of game with some evaluations a player: errors Σ |φ̂ − φ| / Σ |φ|, as geometric
means over games (below 1e-4 they count as that), their ratio, and the share of values in 95 %
intervals; losing cells come first. Then the table of the page: for each number of players and of
evaluations, the geometric mean of the ratios over kinds, and the mean share.
"""

import argparse
import importlib
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pages
import pandas as pd
from drawn_games import KINDS, drawn_game
from games import LargeGame, joined, share_inside
from zoo_games import MODELS

import shapley_adapters as core

_LEAST_ERROR = 1e-4
_MOST_SHARE = 0.5
"""Cells with more evaluations than this share of all coalitions are left out."""

_MOST_TABULATED = 14
"""Fitted models have tables of values of so many features at most."""


def measured(games: list[LargeGame], estimator: Any, budget: int, seed: int) -> dict[str, float]:
    """Return the error, and the share in intervals."""
    exact = np.array([game.exact for game in games])
    all_games = joined([game.values for game in games], exact.shape[1])
    found = core.estimate(all_games, estimator, core.Settings(seed, budget=budget))
    errors = np.abs(found.values[:, :, 0] - exact).sum(axis=1) / np.abs(exact).sum(axis=1)
    mean = float(np.exp(np.log(np.maximum(errors, _LEAST_ERROR)).mean()))
    return {"error": mean, "inside": share_inside(found, exact)}


@contextmanager
def with_constants(settings: list[str], package: str) -> Iterator[None]:
    """Give constants of modules other values."""
    with ExitStack() as stack:
        for name, value in (setting.split("=") for setting in settings if setting):
            module, _, constant = f"{package}.{name}".rpartition(".")
            kind = type(getattr(importlib.import_module(module), constant))
            stack.enter_context(mock.patch(f"{module}.{constant}", kind(float(value))))
        yield


def measured_cells(options: argparse.Namespace) -> pd.DataFrame:
    """Return a line for each cell and estimator."""
    warnings.simplefilter("ignore")
    peers = {"orders": core.RandomOrder(), "squares": core.LeastSquares()}
    module, _, name = options.other.rpartition(":")
    package = module.rpartition(".")[0] or "shapley_adapters.estimators.odd_gp"
    if name:
        peers = {"changed": getattr(importlib.import_module(module), name)()}
    elif any(options.set):
        peers = {"changed": core.OddGP()}
    lines = []
    for n_players in options.players:
        for kind in options.kinds:
            if kind in MODELS and n_players > _MOST_TABULATED:
                continue
            seeds = range(options.games * options.seed, options.games * (options.seed + 1))
            games = [drawn_game(kind, n_players, seed) for seed in seeds]
            for each in options.per_player:
                budget = max(6, round(each * n_players) + 2 * (each == 2))
                if budget > _MOST_SHARE * 2.0**n_players:
                    continue
                found = {"oddgp": measured(games, core.OddGP(), budget, options.seed)}
                with with_constants(options.set, package):
                    for name, peer in peers.items():
                        found[name] = measured(games, peer, budget, options.seed)
                cell = {"players": n_players, "each": each, "kind": kind}
                lines += [{**cell, "of": name, **numbers} for name, numbers in found.items()]
    return pd.DataFrame(lines)


def main() -> None:
    """Measure, and print the cells, losing ones first, and the table of the page."""
    options = pages.read_options(
        __doc__,
        seed=11,
        players=[8, 14, 31, 60],
        per_player=[1.0, 2, 2.5, 4, 8, 16],
        games=3,
        kinds=[*KINDS, *MODELS],
        set=[""],
        other="",
    )
    if options.quick:
        options.players, options.games = [8], 1
    cells = measured_cells(options).pivot_table(
        index=["players", "each", "kind"], columns="of", values=["error", "inside"]
    )
    errors, inside = cells["error"], cells["inside"]
    others = [name for name in errors if name != "oddgp"]
    ratio = (errors[others].min(axis=1) / errors["oddgp"]).rename("ratio")
    shown = pd.concat([errors, inside.add_suffix(" inside"), ratio], axis=1)
    # What loses comes first: `oddgp` to a peer, or a change to `oddgp`.
    shown = shown.sort_values("ratio", ascending="changed" not in others)
    print(f"error of each, and of the best other over that of oddgp\n{shown.round(4).to_string()}")
    groups = ["players", "each"]
    ratios = np.exp(np.log(ratio).groupby(groups).mean()).map(lambda one: pages.short(one, 1))
    shares = inside[others[0] if "changed" in others else "oddgp"].groupby(groups).mean()
    texts = (ratios + ", " + shares.map(lambda one: pages.short(one, 2))).unstack()
    lines = ([n_players, *row] for n_players, *row in texts.fillna("").itertuples())
    pages.report(options, "oddgp", pages.table(["features", *pages.budgets(texts)], lines))
    print(f"\nall: {float(np.exp(np.log(ratio).mean())):.3f}")


if __name__ == "__main__":
    main()

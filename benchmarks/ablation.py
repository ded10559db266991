"""What a mechanism or a constant of `oddgp` is worth, or another estimator in its place.

    python benchmarks/ablation.py [--seed 3] [--players 8 14 31 60] [--per-player 1 2 2.5 4 8 16]
        [--games 3] [--kinds radial network] [--set MODULE.NAME=VALUE ...] [--other MODULE:CLASS]
        [--data FOLDER]

Without --set and --other, `oddgp` is compared with random orders and least squares at equal
evaluations. With --set, constants of its modules have other values in a second column:
`--set prior._SD_STRENGTH=0.1` for `shapley_adapters.estimators.odd_gp.prior`. With
--other, the second column is an estimator of any module that Python finds, and --set is for modules
of its package.

For each cell, a kind of game with some evaluations a player: errors Σ |φ̂ − φ| / Σ |φ|, as geometric
means over games (below 1e-4 they count as that), their ratio, and the share of values in 95 %
intervals. Then the geometric means over kinds, the share in intervals and our own processor time of
each number of players and of evaluations. Losing cells come first. --data adds real texts of 50 and
100 words, for the folder in which the data sets are.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from drawn_games import KINDS, drawn_game
from games import BoolArray, CoreGame, FloatArray, IntArray, LargeGame, share_inside
from zoo_games import MODELS

import shapley_adapters as core

_LEAST_ERROR = 1e-4
_MOST_SHARE = 0.5
"""Cells with more evaluations than this share of all coalitions are left out."""

_MOST_TABULATED = 14
"""Fitted models have tables of values of so many features at most."""

TEXT_PLAYERS = (50, 100)


@dataclass
class Clocked:
    """Games that count the processor time of their values."""

    games: list[LargeGame]
    seconds: float = field(default=0.0)

    def __call__(self, rows: IntArray, coalitions: BoolArray) -> FloatArray:
        started = time.process_time()
        values = np.empty(len(rows))
        for row in np.unique(rows):
            values[rows == row] = self.games[row].values(coalitions[rows == row])
        self.seconds += time.process_time() - started
        return values


@cache
def games_of(
    kind: str, n_players: int, n_games: int, seed: int, data: Path | None
) -> list[LargeGame]:
    """Return games of a kind; real ones where it is a text."""
    if kind == "text":
        from large_models import text_game  # needs torch

        return [text_game(Path(data or ""), n_players, seed + game) for game in range(n_games)]
    return [drawn_game(kind, n_players, n_games * seed + game) for game in range(n_games)]


def measured(games: list[LargeGame], estimator: Any, budget: int, seed: int) -> dict[str, float]:
    """Return the error, the share in intervals, and milliseconds a row of our own work."""
    clock = Clocked(games)
    exact = np.array([game.exact for game in games])
    started = time.process_time()
    found = core.estimate(
        CoreGame(clock, exact.shape[1], len(games)), estimator, core.Settings(seed, budget=budget)
    )
    seconds = time.process_time() - started - clock.seconds
    errors = np.abs(found.values[:, :, 0] - exact).sum(axis=1) / np.abs(exact).sum(axis=1)
    return {
        "error": float(np.exp(np.log(np.maximum(errors, _LEAST_ERROR)).mean())),
        "inside": share_inside(found, exact),
        "ms": 1e3 * seconds / len(games),
    }


def other_estimator(options: argparse.Namespace) -> tuple[Any, str]:
    """Return the estimator of the second column, and the package whose constants change."""
    if not options.other:
        return core.OddGP(), "shapley_adapters.estimators.odd_gp"
    module, name = options.other.split(":")
    return getattr(importlib.import_module(module), name)(), module.rpartition(".")[0]


@contextmanager
def with_constants(settings: list[str], package: str) -> Iterator[None]:
    """Give constants of modules other values."""
    patches = []
    for setting in settings:
        name, value = setting.split("=")
        module_name, constant = name.rsplit(".", 1)
        module = importlib.import_module(f"{package}.{module_name}")
        kept = getattr(module, constant)
        patches.append(mock.patch.object(module, constant, type(kept)(float(value))))
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def table_of(options: argparse.Namespace) -> pd.DataFrame:
    """Return a line for each cell: its place, and what each column has there."""
    warnings.simplefilter("ignore")
    other, package = other_estimator(options)
    is_compared = options.other or options.set
    lines = []
    for n_players in options.players:
        kinds = [kind for kind in options.kinds if kind in KINDS or n_players <= _MOST_TABULATED]
        if options.data and n_players in TEXT_PLAYERS:
            kinds.append("text")
        for kind in kinds:
            games = games_of(kind, n_players, options.games, options.seed, options.data)
            for per_player in options.per_player:
                budget = max(6, round(per_player * n_players) + 2 * (per_player == 2))
                if budget > _MOST_SHARE * 2.0**n_players:
                    continue
                cell = {"kind": kind, "players": n_players, "each": per_player}
                of = {"oddgp": measured(games, core.OddGP(), budget, options.seed)}
                if is_compared:
                    with with_constants(options.set, package):
                        of["changed"] = measured(games, other, budget, options.seed)
                else:
                    for name, peer in {
                        "orders": core.RandomOrder(),
                        "squares": core.LeastSquares(),
                    }.items():
                        of[name] = measured(games, peer, budget, options.seed)
                lines += [{**cell, "of": name, **numbers} for name, numbers in of.items()]
    return pd.DataFrame(lines)


def report(table: pd.DataFrame) -> str:
    """Return the cells, losing ones first, and the summary."""
    cells = table.pivot_table(
        index=["players", "each", "kind"], columns="of", values=["error", "inside", "ms"]
    )
    others = [name for name in cells["error"].columns if name != "oddgp"]
    ratio = (cells["error"][others].min(axis=1) / cells["error"]["oddgp"]).rename("ratio")
    shown = pd.concat([cells["error"], cells["inside"].add_suffix(" inside"), ratio], axis=1)
    # What loses comes first: `oddgp` to a peer, or a change to `oddgp`.
    shown = shown.sort_values("ratio", ascending="changed" not in others)
    of_groups = pd.concat(
        [
            np.exp(np.log(ratio).groupby(["players", "each"]).mean()),
            cells["inside"].groupby(["players", "each"]).mean().add_suffix(" inside"),
            cells["ms"].groupby(["players", "each"]).mean().add_suffix(" ms"),
        ],
        axis=1,
    )
    first = "error of each, and of the best other over that of oddgp"
    second = "geometric means of that ratio, shares in intervals, milliseconds a row of own work"
    return (
        f"{first}\n{shown.round(4).to_string()}\n\n{second}\n{of_groups.round(3).to_string()}\n\n"
        f"all: {float(np.exp(np.log(ratio).mean())):.3f}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--players", type=int, nargs="+", default=[8, 14, 31, 60])
    parser.add_argument("--per-player", type=float, nargs="+", default=[1, 2, 2.5, 4, 8, 16])
    parser.add_argument("--games", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS, *MODELS], default=[*KINDS, *MODELS])
    parser.add_argument("--set", nargs="+", default=[])
    parser.add_argument("--other")
    parser.add_argument("--data", type=Path)
    print(report(table_of(parser.parse_args())))


if __name__ == "__main__":
    main()

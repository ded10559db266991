"""How often 95 % intervals hold and how large errors are, on kinds of games that a seed draws.

    python benchmarks/error_bars.py [--draw 5] [--games 8] [--seeds 2] [--per-player 4 8 16 32]
        [--of "oddgp, unbiased"] [--quick] [--docs]

The kinds are all of `zoo_games.py`, with 10 to 13 players. First the cells in which intervals hold
less than .90 of the values. Then the table of the page, for each estimator and number of
evaluations a player: the mean over kinds of the share of values in their intervals, how many kinds
have less than .90, and the lowest. With --of:
also the cells in which an estimator errs, in Σ |φ̂ − φ| / Σ |φ|, more than the best other one, and
the median and the largest ratio. Budgets that are refused are left out.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pages
import pandas as pd
from games import TabulatedGame, all_coalitions, core_game, share_inside
from zoo_games import KINDS

import shapley_adapters as core
from shapley_adapters.errors import BudgetError

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "oddgp": core.OddGP,
    "random order": core.RandomOrder,
    "least squares": core.LeastSquares,
    "SHEAR": core.Shear,
    "semivalue": core.Semivalue,
    "sim-semivalue": core.SimSemivalue,
    "oddgp, unbiased": lambda: core.OddGP(unbiased=True),
    "SHEAR, learned": lambda: core.Shear(cooperators="learned"),
}
BIASED = ("oddgp", "least squares", "SHEAR, learned")
"""They are no rivals of an unbiased estimator."""

_LEAST, _LEAST_ERROR, _SHOWN = 0.9, 1e-5, 2


def measured(
    games: TabulatedGame, make: Callable[[], Any], each: int, n_seeds: int
) -> dict[str, float] | None:
    """Return the error and the share of values in intervals; None if the budget is refused."""
    exact, errors, inside = games.shapley_values(), [], []
    for seed in range(n_seeds):
        settings = core.Settings(seed=seed, budget=each * games.n_players + 2)
        try:
            found = core.estimate(core_game(games), make(), settings)
        except BudgetError:
            return None
        gaps = np.abs(found.values[:, :, 0] - exact).sum(axis=1)
        errors.append((gaps / np.abs(exact).sum(axis=1)).mean())
        has_errors = not np.isnan(found.standard_errors).any()
        inside.append(share_inside(found, exact) if has_errors else np.nan)
    return {"error": max(float(np.mean(errors)), _LEAST_ERROR), "inside": float(np.mean(inside))}


def coverage(table: pd.DataFrame) -> str:
    """Return the table of the page."""
    rows, budgets = [], table["each"].unique()
    for name, cells in table.groupby("of", sort=False):
        texts = []
        for each in budgets:
            shares = cells.loc[cells["each"] == each, "inside"].dropna()
            n_below = (shares < _LEAST).sum()
            texts.append(f"{pages.short(shares.mean(), 3)}, {n_below}" if len(shares) else "")
        lowest = "; ".join(
            f"{cell.kind} {pages.short(cell.inside, 2)} at {cell.each}"
            for cell in cells[cells["inside"] < _LEAST].nsmallest(_SHOWN, "inside").itertuples()
        )
        rows.append([name.replace("oddgp", "`oddgp`"), *texts, lowest])
    return pages.table(["estimator", *pages.budgets(budgets), "the lowest"], rows)


def print_ratios(table: pd.DataFrame, name: str) -> None:
    """Print the cells in which an estimator errs more than the best other one, and a summary."""
    errors = table.pivot_table(index=["each", "kind"], columns="of", values="error")
    rivals = errors.drop(
        columns=[name, *(BIASED if "unbiased" in name else ("SHEAR",))], errors="ignore"
    )
    ratio = (errors[name] / rivals.min(axis=1)).dropna().sort_values(ascending=False)
    best = rivals.idxmin(axis=1)
    lost = ratio[ratio > 1]
    rows = ([*cell, f"{by:.2f}", best[cell]] for cell, by in lost.items())
    print(f"\n{name} over the best other\n")
    print(pages.table(["a player", "kind", "ratio", "best"], rows))
    for each, of_kinds in ratio.groupby("each"):
        print(f"{each} a player: median {of_kinds.median():.2f}, largest {of_kinds.max():.2f}")


def main() -> None:
    """Measure, and print the tables."""
    options = pages.read_options(
        __doc__, draw=5, games=8, seeds=2, per_player=[4, 8, 16, 32], of=""
    )
    warnings.simplefilter("ignore")
    kinds = list(KINDS)
    if options.quick:
        options.games, options.per_player, kinds = 2, [8], kinds[::8]
    rng, lines = np.random.default_rng(options.draw), []
    names = dict.fromkeys([*[*ESTIMATORS][:6], options.of or "oddgp"])
    for place, kind in enumerate(KINDS):
        n_players, own = int(rng.integers(10, 14)), np.random.default_rng([options.draw, place])
        if kind not in kinds:
            continue
        present = all_coalitions(n_players)
        table = np.stack([KINDS[kind](present, own) for _ in range(options.games)])
        games = TabulatedGame(table, n_players)
        for name in names:
            for each in options.per_player:
                found = measured(games, ESTIMATORS[name], each, options.seeds)
                if found is not None:
                    lines.append({"of": name, "each": each, "kind": kind, **found})
    cells = pd.DataFrame(lines)
    print(cells[cells["inside"] < _LEAST].sort_values("inside").round(3).to_string(index=False))
    pages.report(options, "error-bars", coverage(cells))
    if options.of:
        print_ratios(cells, options.of)


if __name__ == "__main__":
    main()

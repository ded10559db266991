"""How far estimators are from the Shapley values of a model at equal evaluations.

    python benchmarks/accuracy.py [--model trees news] [--rows 40] [--seeds 3] [--quick] [--docs]
        [--per-player 4 8 16 32 64] [--shapiq-python NAME/bin/python]

Each contender gets N evaluations a player and the two end points of the same rows. Ours run through
`shap.Explainer` on the model itself, where SHEAR makes up to 28 backward passes of networks beside
its evaluations; the others get the game of each row. The error is Σ|φ̂ − φ|, in the mean over rows
and seeds; the ratio is that of `oddgp` over a contender's, on the rows and seeds of both.
Contenders to which `oddgp` loses come first. Seconds are those of a row, with the model. Then the
table of the page: errors of ours on one model, or on several `oddgp` over the best of some peers.
With `--shapiq-python`, the interpreter of an environment with shapiq, its approximators take part;
slow ones explain fewer rows with one seed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pandas as pd
from data_files import add_folder_arguments
from games import FloatArray, LargeGame
from models import TITLES, Case, prepare
from peers import (
    APPROXIMATORS,
    PARTITION,
    PEERS,
    Explain,
    ShapiqWorker,
    by_shapiq,
    explain,
    limit_of,
)

from shapley_adapters.errors import BudgetError

ODDGP = "oddgp"
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    ODDGP: ("oddgp", {}),
    "oddgp, equal weights": ("oddgp", {"weights": "equal"}),
    "SHEAR": ("shear", {}),
    "random order, antithetic": ("randomorder", {}),
    "least squares": ("leastsquares", {}),
    "least squares, no replacement": ("leastsquares", {"replacement": False}),
    "least squares, leverage sizes": ("leastsquares", {"sizes": "leverage"}),
    "unbiased least squares, sim-semivalue": ("leastsquares", {"unbiased": True}),
    "semivalue, antithetic": ("semivalue", {}),
    "sim-semivalue as printed": ("simsemivalue", {"paired": False, "centred": False}),
}
"""Algorithms and options; the sim-semivalue of the defaults is unbiased least squares."""

RIVALS = (
    "shap, permutation", "shap, kernel", "shap, kernel, default", "shapiq KernelSHAP",
    "shapiq LeverageSHAP", "shapiq OddSHAP", "shapiq OddSHAP factor 5", "shapiq kADDSHAP",
    "shapiq ProxySHAP 5 folds",
)  # fmt: skip
"""Those of the page's table of models."""

DOCUMENTED = (
    "--rows 100 --seeds 5",
    "--model adult-relu trees news news-net table table-net --rows 5 --seeds 1 "
    "--per-player 1 2 4 8 16 --shapiq-python ENVIRONMENT/bin/python",
)

Attribute = Callable[[int, int], FloatArray | None]
"""Budget and seed to attributions of all rows, or of the first few; None if it is refused."""


def main() -> None:
    """Run all contenders and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=TITLES, nargs="+", default=["adult-elu"])
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--per-player", type=int, nargs="+", default=[4, 8, 16, 32, 64])
    parser.add_argument("--shapiq-python", type=Path, help="a Python that has shapiq; see README")
    parser.add_argument("--quick", action="store_true", help="5 rows, 1 seed, two budgets")
    add_folder_arguments(parser)
    options = pages.read_options(parser, *DOCUMENTED)
    if options.quick:
        options.rows, options.seeds, options.per_player = 5, 1, [4, 8]
    worker = ShapiqWorker(options.shapiq_python) if options.shapiq_python else None
    print(f"shapiq: {worker.version if worker else 'none, for want of --shapiq-python'}")
    lines = []
    for model in options.model:
        case = prepare(model, options.data, options.cache, options.rows)
        of_model = f"`{model}`, {case.explained.n_players}"
        lines += [{"model": of_model, **cell} for cell in measured_cells(case, worker, options)]
    if worker is not None:
        worker.close()
    table = pd.DataFrame(lines)
    losing = table[table["contender"] != ODDGP].sort_values("ratio", ascending=False)
    print(f"\n{losing.to_string(index=False, float_format='{:.3g}'.format)}")
    is_one = len(options.model) == 1
    shown = table_of_estimators(table) if is_one else table_of_models(table)
    pages.report(options, "estimators" if is_one else "models", shown)


def measured_cells(
    case: Case, worker: ShapiqWorker | None, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Return a line for each budget and contender that takes it."""
    n_players, exact, lines = case.explained.n_players, case.exact, []
    print(
        f"{case.title}: {len(exact)} rows, test accuracy {case.explained.accuracy:.3f}; Shapley "
        f"values known to a Σ of {case.error:.2g}, Σ|φ| is {np.abs(exact).sum(axis=1).mean():.3g}"
    )
    for each in options.per_player:
        of_oddgp = np.empty(0)
        for name, attribute in all_contenders(case, worker).items():
            found = measured(attribute, each * n_players + 2, options.seeds, exact)
            if found is None:
                continue
            errors, seconds = found
            of_oddgp = errors if name == ODDGP else of_oddgp
            shared = tuple(map(slice, np.minimum(errors.shape, of_oddgp.shape)))
            ratio = of_oddgp[shared].mean() / errors[shared].mean()
            lines.append(
                {"N": each, "contender": name, "rows": errors.shape[1], "ratio": ratio,
                 "error": errors.mean(), "s a row": seconds}
            )  # fmt: skip
    return lines


def table_of_estimators(table: pd.DataFrame) -> str:
    """Return the errors of ours but `oddgp`, the least of each budget in bold."""
    errors = table.pivot_table(index="contender", columns="N", values="error", sort=False)
    errors = errors.loc[[name for name in OURS if name in errors.index and ODDGP not in name]]
    texts = errors.map(pages.short).mask(
        errors == errors.min(), "**" + errors.map(pages.short) + "**"
    )
    return pages.table(["", *pages.budgets(errors)], texts.itertuples())


def table_of_models(table: pd.DataFrame) -> str:
    """Return the error of `oddgp` over that of the best rival in each cell."""
    ratios = table[table["contender"].isin(RIVALS)].pivot_table(
        index="model", columns="N", values="ratio", aggfunc="max", sort=False
    )
    texts = ratios.map(lambda one: pages.short(one, 2))
    return pages.table(["model, features", *pages.budgets(ratios)], texts.itertuples())


def all_contenders(case: Case, worker: ShapiqWorker | None) -> dict[str, Attribute]:
    """Return what explains the rows of a case, by its name in tables."""
    contenders: dict[str, Attribute] = {
        name: partial(by_ours, case, *of_name) for name, of_name in OURS.items()
    }
    for name, peer in PEERS.items():
        if name != PARTITION:
            contenders[name] = partial(by_peer, case, peer)
    if worker is not None:
        for approximator in APPROXIMATORS:
            peer = partial(by_shapiq, worker, approximator)
            contenders[approximator.name] = partial(
                by_peer, case, peer,
                most_rows=approximator.most_rows, most_per_player=approximator.most_per_player,
            )  # fmt: skip
    return contenders


def by_ours(
    case: Case, algorithm: str, options: dict[str, Any], budget: int, seed: int
) -> FloatArray | None:
    """Explain all rows through `shap.Explainer`."""
    explainer = case.explained.explainer(algorithm, seed, **options)
    try:
        explanation = explainer(case.explained.rows, max_evals=limit_of(budget), silent=True)
    except BudgetError:
        return None
    return np.asarray(explanation.values)


def by_peer(
    case: Case,
    peer: Explain,
    budget: int,
    seed: int,
    *,
    most_rows: int | None = None,
    most_per_player: int | None = None,
) -> FloatArray | None:
    """Explain row by row, each with draws of its own; few rows with the first seed only."""
    games, values = case.explained.evaluated(), []
    is_long = most_per_player is not None and budget > most_per_player * games.n_players + 2
    if is_long or (seed and most_rows is not None):
        return None
    for row, exact in enumerate(case.exact[:most_rows]):
        game = LargeGame(partial(games.of_row, row), exact)
        found = explain(peer, game, budget, seed * 10_000 + row)
        if found is None:
            return None
        values.append(found.values)
    return np.array(values)


def measured(
    attribute: Attribute, budget: int, n_seeds: int, exact: FloatArray
) -> tuple[FloatArray, float] | None:
    """Return errors, (S, R), and seconds of a row; None if the budget is refused."""
    errors, seconds = [], []
    for seed in range(n_seeds):
        started = time.perf_counter()
        values = attribute(budget, seed)
        if values is not None:
            seconds.append((time.perf_counter() - started) / len(values))
            errors.append(np.abs(values - exact[: len(values)]).sum(axis=1))
    return (np.array(errors), float(np.median(seconds))) if errors else None


if __name__ == "__main__":
    main()

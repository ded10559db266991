"""How far estimators are from the Shapley values of a model at equal evaluations.

    python benchmarks/accuracy.py [--model trees news] [--rows 40] [--seeds 3] [--quick] [--docs]
        [--per-player 4 8 16 32 64] [--shapiq-python NAME/bin/python]

Each contender gets N evaluations a player and the two end points of the same rows. Ours run through
`shap.Explainer` on the model itself, where SHEAR makes up to 28 backward passes of networks beside
its evaluations; the others get the game of each row. The error is Σ|φ̂ − φ|, in the mean over rows
and seeds; the ratio is that of `oddgp` over a contender's, on the rows and seeds of both.
Contenders to which `oddgp` loses come first. Seconds are those of a row, with the model. Then the
table of the page: errors of ours on one model, or on several `oddgp` over the best of some peers.
With `--shapiq-python`, the interpreter of an environment with shapiq, its approximators take part.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pages
import pandas as pd
from data_files import FOLDERS
from games import FloatArray, LargeGame
from models import Case, prepare
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
"""Budget and seed to attributions of all rows; None if the budget is refused."""


def main() -> None:
    """Run all contenders and print the tables."""
    options = pages.read_options(
        __doc__,
        *DOCUMENTED,
        model=["adult-elu"],
        rows=40,
        seeds=3,
        per_player=[4, 8, 16, 32, 64],
        shapiq_python=None,
        **FOLDERS,
    )
    if options.quick:
        options.rows, options.seeds, options.per_player = 5, 1, [4, 8]
    worker = ShapiqWorker(options.shapiq_python) if options.shapiq_python else None
    print(f"shapiq: {worker.version if worker else 'none, for want of --shapiq-python'}")
    lines = []
    for model in options.model:
        case = prepare(model, options.data, options.cache, options.rows)
        of_model = f"`{model}`, {case.explained.n_players}"
        lines += [{"model": of_model, **cell} for cell in measured_cells(case, worker, options)]
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
        of_oddgp = np.nan
        for name, attribute in all_contenders(case, worker, each).items():
            started = time.perf_counter()
            found = [attribute(each * n_players + 2, seed) for seed in range(options.seeds)]
            if found[0] is None:
                continue
            seconds = (time.perf_counter() - started) / options.seeds / len(exact)
            error = np.abs(np.array(found) - exact).sum(axis=2).mean()
            of_oddgp = error if name == ODDGP else of_oddgp
            cell = {"N": each, "contender": name, "ratio": of_oddgp / error, "error": error}
            lines.append(cell | {"s a row": seconds})
    return lines


def table_of_estimators(table: pd.DataFrame) -> str:
    """Return the errors of ours but `oddgp`, the least of each budget in bold."""
    errors = table.pivot_table(index="contender", columns="N", values="error", sort=False)
    errors = errors.loc[[name for name in OURS if name in errors.index and name != ODDGP]]
    return pages.table(["", *pages.budgets(errors)], pages.bold_least(errors).itertuples())


def table_of_models(table: pd.DataFrame) -> str:
    """Return the error of `oddgp` over that of the best rival in each cell."""
    ratios = table[table["contender"].isin(RIVALS)].pivot_table(
        index="model", columns="N", values="ratio", aggfunc="max", sort=False
    )
    texts = ratios.map(lambda one: pages.short(one, 2))
    return pages.table(["model, features", *pages.budgets(ratios)], texts.itertuples())


def all_contenders(case: Case, worker: ShapiqWorker | None, each: int) -> dict[str, Any]:
    """Return what explains the rows of a case in so many evaluations a player, by its name."""
    peers = {name: peer for name, peer in PEERS.items() if name != PARTITION}
    if worker is not None:
        peers |= {
            one.name: partial(by_shapiq, worker, one)
            for one in APPROXIMATORS
            if each <= one.most_per_player
        }
    ours = {name: partial(by_ours, case, *of_name) for name, of_name in OURS.items()}
    return ours | {name: partial(by_peer, case, peer) for name, peer in peers.items()}


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


def by_peer(case: Case, peer: Explain, budget: int, seed: int) -> FloatArray | None:
    """Explain row by row, each with draws of its own."""
    games, values = case.explained.evaluated(), []
    for row, exact in enumerate(case.exact):
        game = LargeGame(partial(games.of_row, row), exact)
        found = explain(peer, game, budget, seed * 10_000 + row)
        if found is None:
            return None
        values.append(found.values)
    return np.array(values)


if __name__ == "__main__":
    main()

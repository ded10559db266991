"""How far estimators are from the Shapley values of a model at equal evaluations.

    python benchmarks/accuracy.py [--model trees] [--rows 40] [--seeds 3] [--only WORD …] [--quick]
        [--per-player 4 8 16 32 64] [--shapiq-python NAME/bin/python]

Each contender gets N evaluations a player and the two end points of the same rows. Ours run through
`shap.Explainer` on the model itself, where SHEAR makes up to 28 backward passes of networks beside
its evaluations; the others get the game of each row. The error is Σ|φ̂ − φ|, in the mean over rows
and seeds; the ratio is that of `oddgp` over a contender's, on the rows and seeds of both, with its
95 % interval. Contenders to which `oddgp` loses come first. Seconds are those of a row, with the
model. With `--shapiq-python`, the interpreter of an environment with shapiq, its approximators take
part; slow ones explain fewer rows with one seed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
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
    "random order": ("randomorder", {}),
    "least squares": ("leastsquares", {}),
    "least squares, no replacement": ("leastsquares", {"replacement": False}),
    "least squares, leverage": ("leastsquares", {"sizes": "leverage"}),
    "least squares, unbiased": ("leastsquares", {"unbiased": True}),
    "semivalue": ("semivalue", {}),
    "sim-semivalue as printed": ("simsemivalue", {"paired": False, "centred": False}),
}
"""Algorithms and options; the sim-semivalue of the defaults is unbiased least squares."""

Attribute = Callable[[int, int], FloatArray | None]
"""Budget and seed to attributions of all rows, or of the first few; None if it is refused."""


@dataclass(frozen=True)
class Score:
    """The errors of a contender by seed and row, (S, R), and its seconds for a row."""

    errors: FloatArray
    seconds: float


def ratio_of(own: FloatArray, others: FloatArray) -> dict[str, float]:
    """Return the ratio of mean errors on the seeds and rows of both, (S, R), and its interval."""
    n_seeds, n_rows = np.minimum(own.shape, others.shape)
    own, others = own[:n_seeds, :n_rows], others[:n_seeds, :n_rows]
    ratio = float(own.mean() / others.mean())
    error = standard_error(own - ratio * others) / float(others.mean())
    # On the scale of logarithms, for errors are positive.
    factor = float(np.exp(1.96 * error / ratio))
    return {"ratio": ratio, "from": ratio / factor, "to": ratio * factor}


def standard_error(found: FloatArray) -> float:
    """Return the standard error of the mean over seeds and rows, (S, R).

    The rows of one seed share their draws, so that seeds and rows are taken as crossed.
    """
    n_seeds, n_rows = found.shape
    of_rows = found.mean(axis=0).var(ddof=1) / n_rows
    of_seeds = found.mean(axis=1).var(ddof=1) / n_seeds if n_seeds > 1 else 0.0
    return float(np.sqrt(of_rows + of_seeds))


def main() -> None:
    """Run all contenders and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=TITLES, default="adult-elu")
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--per-player", type=int, nargs="+", default=[4, 8, 16, 32, 64])
    parser.add_argument("--only", nargs="+", metavar="WORD", help="contenders by parts of names")
    parser.add_argument("--shapiq-python", type=Path, help="a Python that has shapiq; see README")
    parser.add_argument("--quick", action="store_true", help="5 rows, 1 seed, two budgets")
    add_folder_arguments(parser)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.seeds, arguments.per_player = 5, 1, [4, 8]
    worker = ShapiqWorker(arguments.shapiq_python) if arguments.shapiq_python else None
    case = prepare(arguments.model, arguments.data, arguments.cache, arguments.rows)
    shapley, n_players = case.shapley, case.explained.n_players
    print(
        f"{case.title}: {len(shapley.values)} rows, {arguments.seeds} seeds, {n_players} players, "
        f"test accuracy {case.explained.accuracy:.3f}; N · {n_players} + 2 evaluations.\n"
        f"Shapley values: {shapley.source}, known to a Σ of {shapley.absolute_error:.2g}; Σ|φ| is "
        f"{np.abs(shapley.values).sum(axis=1).mean():.3g}. "
        f"shapiq: {worker.version if worker else 'none, for want of --shapiq-python'}."
    )
    words = arguments.only or [""]
    contenders = {
        name: attribute
        for name, attribute in all_contenders(case, worker).items()
        if name == ODDGP or any(word in name for word in words)
    }
    lines = []
    for per_player in arguments.per_player:
        found = {}
        for name, attribute in contenders.items():
            score = measured(attribute, per_player * n_players + 2, arguments.seeds, shapley.values)
            if score is not None:
                found[name] = score
        lines += [
            {"N": per_player, "contender": name, "rows": score.errors.shape[1],
             **ratio_of(found[ODDGP].errors, score.errors), "error": score.errors.mean(),
             "±": standard_error(score.errors), "s a row": score.seconds}
            for name, score in found.items()
        ]  # fmt: skip
    if worker is not None:
        worker.close()
    table = pd.DataFrame(lines)
    losing = table[table["contender"] != ODDGP].sort_values("ratio", ascending=False)
    print(f"\n{losing.to_string(index=False, float_format='{:.3g}'.format)}")
    errors = table.pivot_table(index="contender", columns="N", values="error", sort=False)
    print(f"\nerrors\n{errors.to_string(float_format='{:.3g}'.format)}")


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
    for row, exact in enumerate(case.shapley.values[:most_rows]):
        game = LargeGame(partial(games.of_row, row), exact)
        found = explain(peer, game, budget, seed * 10_000 + row)
        if found is None:
            return None
        values.append(found[0].values)
    return np.array(values)


def measured(attribute: Attribute, budget: int, n_seeds: int, exact: FloatArray) -> Score | None:
    """Return the score of a contender; None if it refuses the budget."""
    errors, seconds = [], []
    for seed in range(n_seeds):
        started = time.perf_counter()
        values = attribute(budget, seed)
        if values is not None:
            seconds.append((time.perf_counter() - started) / len(values))
            errors.append(np.abs(values - exact[: len(values)]).sum(axis=1))
    return Score(np.array(errors), float(np.median(seconds))) if errors else None


if __name__ == "__main__":
    main()

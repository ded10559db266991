"""What explanations take beside the model: overhead, designs and solutions.

    python benchmarks/own_time.py [--parts overhead solving] [--quick] [--docs]

*overhead*, on six kinds of models: the time of a call for an evaluation over that of the plainest
loop that masks and evaluates the same rows, in batches of the best of four sizes; contenders and
the loop take turns, and medians count. *solving*: milliseconds of `oddgp` to choose the coalitions
of random games of degree three for the first time, and for each row to choose them later and to
solve.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import captum.attr
import numpy as np
import pages
import pandas as pd
import shap
import torch
from games import BoolArray, CoreGame, FloatArray, IntArray
from workloads import WORKLOADS, Workload

import shap_ext  # noqa: F401 # it makes shap know the algorithms
import shapley_adapters as core

Run = Callable[[], object]

_ROUNDS = 3
FLOOR_SIZES = (64, 128, 256, 1024)
"""Evaluations of one call of the loop; the best size counts."""

N_TABLE_ROWS = 200
"""Rows of tables; the other models explain as many rows as they have."""


# --- overhead ---


class CountingModel(torch.nn.Module):
    """A model that counts the rows it is run on."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model, self.n_rows_run = model, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the model."""
        self.n_rows_run += len(x)
        return self.model(x)


def by_shap(algorithm: str, workload: Workload, **options: str) -> Run:
    """Return a call of an algorithm of ours."""
    explainer = shap.Explainer(
        workload.predict, workload.masker, algorithm=algorithm, seed=0, **workload.options,
        **options,
    )  # fmt: skip
    return partial(explainer, workload.table, max_evals=workload.budget, silent=True)


def by_permutation(workload: Workload) -> Run:
    """shap's own; it knows no groups, and masks one background row or a function."""
    if workload.mask is not None or workload.budget < 2 * workload.table.shape[1] + 1:
        raise NotImplementedError
    explainer = shap.PermutationExplainer(workload.predict, workload.masker, seed=0)
    return partial(explainer, workload.table, max_evals=workload.budget, silent=True)


def by_sampling(workload: Workload) -> Run:
    """captum's sampling of permutations; it takes a single baseline for each row."""
    if len(workload.background) > 1:
        raise NotImplementedError
    n_players = workload.rows[0].numel() if workload.mask is None else int(workload.mask.max()) + 1
    return partial(
        captum.attr.ShapleyValueSampling(workload.module).attribute, workload.rows,
        baselines=workload.background, feature_mask=workload.mask,
        n_samples=max(1, workload.budget // n_players),
        perturbations_per_eval=max(1, 256 // len(workload.rows)),
    )  # fmt: skip


CONTENDERS: dict[str, Callable[[Workload], Run]] = {
    "shap_ext `oddgp`": partial(by_shap, "oddgp"),
    "shap_ext `oddgp`, equal weights": partial(by_shap, "oddgp", weights="equal"),
    "shap_ext `randomorder`": partial(by_shap, "randomorder"),
    "shap_ext `leastsquares`": partial(by_shap, "leastsquares"),
    "shap permutation": by_permutation,
    "captum `ShapleyValueSampling`": by_sampling,
}
LOOP = "the loop, µs per evaluation"


def floor(workload: Workload, size: int) -> Run:
    """Return the plainest loop that masks and runs `budget` evaluations of each row."""
    shape, n_background = workload.rows.shape[1:], len(workload.background)
    mask = torch.arange(workload.rows[0].numel()) if workload.mask is None else workload.mask
    of_cells = mask.flatten()
    generator = torch.Generator().manual_seed(0)
    present = torch.rand(workload.budget, int(of_cells.max()) + 1, generator=generator) < 0.5

    def run() -> None:
        with torch.no_grad():
            for row in workload.rows:
                for some in torch.split(present, size):
                    keep = some[:, of_cells].reshape(-1, 1, *shape)
                    masked = torch.where(keep, row, workload.background)
                    outputs = workload.module(masked.flatten(0, 1))
                    outputs.reshape(len(some), n_background, -1).mean(1)

    return run


def overhead(options: argparse.Namespace) -> None:
    """Report the overhead of each contender on each model, the slowest first."""
    workloads = list(WORKLOADS.items())[: 1 if options.quick else None]
    table = pd.DataFrame({title: overhead_of(make(), options) for title, make in workloads})
    # The loop, which nothing is slower than, is the row before the others.
    order = table.drop(index=LOOP).max(axis=1).sort_values(ascending=False).index
    texts = table.loc[[LOOP, *order]].map(pages.short)
    pages.report(options, "overhead", pages.table(["", *table], texts.itertuples()))


def overhead_of(workload: Workload, options: argparse.Namespace) -> dict[str, float]:
    """Return the time of each contender over that of the loop, and of the loop in microseconds."""
    workload.module.eval()
    is_plain = workload.rows.dim() == 2 and len(workload.background) == 1
    if is_plain and not workload.uses_masker and not options.quick:
        generator = torch.Generator().manual_seed(0)
        rows = torch.randn(N_TABLE_ROWS, workload.rows.shape[1], generator=generator)
        workload = replace(workload, rows=rows.to(workload.rows.dtype))
    runs: dict[str, tuple[Run, float]] = {}
    for contender, prepare in CONTENDERS.items():
        counting = CountingModel(workload.module)
        try:
            prepare(replace(workload, module=counting))()
        except NotImplementedError:
            continue
        n_evaluations = counting.n_rows_run / len(workload.background)
        runs[contender] = prepare(workload), n_evaluations
    floors = [floor(workload, size) for size in FLOOR_SIZES]
    seconds = np.empty((1 if options.quick else _ROUNDS, len(floors) + len(runs)))
    for of_round in seconds:
        for index, run in enumerate([*floors, *(run for run, _ in runs.values())]):
            started = time.perf_counter()
            run()
            of_round[index] = time.perf_counter() - started
    medians = np.median(seconds, axis=0)
    each = medians[: len(floors)].min() / workload.budget / len(workload.rows)
    pairs = zip(runs.items(), medians[len(floors) :], strict=True)
    ratios = {name: spent / n_evaluations / each for (name, (_, n_evaluations)), spent in pairs}
    return {LOOP: 1e6 * each, **ratios}


# --- designs and solutions ---


class TimedEstimator:
    """An estimator that tells how long it designs and solves."""

    def __init__(self, estimator: Any) -> None:
        self.estimator, self.design_seconds, self.solve_seconds = estimator, 0.0, 0.0

    def __getattr__(self, name: str) -> Any:
        """Return a member of the estimator, timed where it designs or solves."""
        member = getattr(self.estimator, name)
        if name not in ("design", "solve"):
            return member

        def timed(*arguments: Any) -> Any:
            started = time.perf_counter()
            found = member(*arguments)
            setattr(
                self,
                f"{name}_seconds",
                getattr(self, f"{name}_seconds") + time.perf_counter() - started,
            )
            return found

        return timed


def random_game(n_players: int, n_rows: int) -> CoreGame:
    """Return games with a term for each player and as many of sets of three."""
    rng = np.random.default_rng(n_players)
    slopes, strengths = rng.standard_normal((2, n_rows, n_players))
    sets = rng.integers(0, n_players, size=(n_players, 3))

    def values_of(rows: IntArray, coalitions: BoolArray) -> FloatArray:
        signs = np.where(coalitions, 1.0, -1.0)
        products = signs[:, sets].prod(axis=2)
        return (slopes[rows] * signs + strengths[rows] / 2 * products).sum(axis=1)

    return CoreGame(values_of, n_players, n_rows)


def solving(options: argparse.Namespace) -> None:
    """Report milliseconds to solve, by number of players and of evaluations, the largest first."""
    estimators: dict[str, Callable[[], Any]] = {
        "`oddgp`": lambda: core.OddGP(gradients=False),
        "equal weights": lambda: core.OddGP("equal", gradients=False),
        "least squares": core.LeastSquares,
    }
    n_rows, rows = 2 if options.quick else 20, []
    for n_players, each in product((13, 60, 200)[: 1 if options.quick else None], (4, 16)):
        game, row = random_game(n_players, n_rows), [str(n_players), str(each)]
        for name, make in estimators.items():
            timed: list[Any] = [TimedEstimator(make()) for _ in range(2)]
            first, later = timed
            for seed, estimator in enumerate(timed):
                settings = core.Settings(seed=seed, budget=each * n_players + 2)
                core.estimate(game, estimator, settings)
            row.append(pages.short(1e3 * later.solve_seconds / n_rows))
            print(
                f"{name}, {n_players} players, {each} evaluations each: design "
                f"{first.design_seconds:.2f} s at first, later {later.design_seconds / n_rows:.4f}"
            )
        rows.append(row)
    pages.report(options, "solving", pages.table(["features", "N", *estimators], rows))


PARTS = {"overhead": overhead, "solving": solving}


def main() -> None:
    """Print the tables."""
    options = pages.read_options(__doc__, parts=list(PARTS))
    warnings.simplefilter("ignore")  # of contenders that are not ours
    for part in options.parts:
        PARTS[part](options)


if __name__ == "__main__":
    main()

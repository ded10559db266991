"""How much longer explanations take than the model itself, on six kinds of models.

    python benchmarks/overhead_of_models.py [--quick] [--workloads NAME …]
        [--only WORD …]

The floor is the plainest loop that masks and runs as many evaluations of the same rows, in batches
of the best of four sizes. Each column is a contender's time over the floor's, both for one
evaluation: contenders that use less than their budget, as random orders of whole permutations do,
are not faster for it. Contenders and the floor take turns; medians of the rounds. About four
minutes.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import captum.attr
import numpy as np
import shap
import torch
from workloads import WORKLOADS, Workload

import shap_ext  # noqa: F401 # it makes shap know the algorithms

FLOOR_SIZES = (64, 128, 256, 1024)
"""Evaluations of one call of the floor; the best size counts."""

N_TABLE_ROWS = 200
"""Rows of tables; the other models explain as many rows as they have."""

Run = Callable[[], object]


class CountingModel(torch.nn.Module):
    """A model that counts the rows it is run on."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model
        self.n_rows_run = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the model."""
        self.n_rows_run += len(x)
        output: torch.Tensor = self.model(x)
        return output


def _through_shap(algorithm: str, **options: str) -> Callable[[Workload], Run]:
    def prepare(workload: Workload) -> Run:
        explainer = shap.Explainer(
            workload.predict,
            workload.masker,
            algorithm=algorithm,
            seed=0,
            **workload.options,
            **options,
        )
        return lambda: explainer(workload.table, max_evals=workload.budget, silent=True)

    return prepare


def _shap_permutation(workload: Workload) -> Run:
    """shap's own; it knows no groups, and masks one background row or a function."""
    explainer = shap.PermutationExplainer(workload.predict, workload.masker, seed=0)
    n_columns = workload.table.shape[1]
    if workload.mask is not None or workload.budget < 2 * n_columns + 1:
        raise NotImplementedError
    return lambda: explainer(workload.table, max_evals=workload.budget, silent=True)


def _captum_sampling(workload: Workload) -> Run:
    """captum's sampling of permutations; it takes a single baseline for each row."""
    if len(workload.background) > 1:
        raise NotImplementedError
    attribution = captum.attr.ShapleyValueSampling(workload.module)
    n_players = workload.rows[0].numel() if workload.mask is None else int(workload.mask.max()) + 1
    return lambda: attribution.attribute(
        workload.rows,
        baselines=workload.background,
        feature_mask=workload.mask,
        n_samples=max(1, workload.budget // n_players),
        perturbations_per_eval=max(1, 256 // len(workload.rows)),
    )


CONTENDERS: dict[str, Callable[[Workload], Run]] = {
    "shap randomorder": _through_shap("randomorder"),
    "shap leastsquares": _through_shap("leastsquares"),
    "shap oddgp, equal weights": _through_shap("oddgp", weights="equal"),
    "shap oddgp": _through_shap("oddgp"),
    "shap's permutation": _shap_permutation,
    "captum's ShapleyValueSampling": _captum_sampling,
}


def floor(workload: Workload, size: int) -> Run:
    """Return the plainest loop that masks and runs `budget` evaluations of each row."""
    shape, n_background = workload.rows.shape[1:], len(workload.background)
    mask = torch.arange(workload.rows[0].numel()) if workload.mask is None else workload.mask
    of_cells = mask.flatten()
    generator = torch.Generator().manual_seed(0)
    n_players = int(of_cells.max()) + 1
    present = torch.rand(workload.budget, n_players, generator=generator) < 0.5

    def run() -> None:
        with torch.no_grad():
            for row in workload.rows:
                for some in torch.split(present, size):
                    keep = some[:, of_cells].reshape(-1, 1, *shape)
                    masked = torch.where(keep, row, workload.background)
                    outputs = workload.module(masked.flatten(0, 1))
                    outputs.reshape(len(some), n_background, -1).mean(1)

    return run


def main() -> None:
    """Print a column for each model, and a line for each contender."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    arguments = parser.parse_args()
    names = [name for name in CONTENDERS if any(word in name for word in arguments.only)]
    n_rounds = 2 if arguments.quick else arguments.rounds
    print(
        f"torch {torch.__version__}, Python {platform.python_version()}, "
        f"{torch.get_num_threads()} threads, {n_rounds} rounds. Time over the floor's, for each "
        "evaluation."
    )
    warnings.simplefilter("ignore")  # of contenders that are not ours
    for workload_name in arguments.workloads:
        workload = _with_table_rows(WORKLOADS[workload_name]())
        workload.module.eval()
        micros, ratios = _ratios(workload, names, n_rounds)
        print(f"\n{workload_name}: floor {micros:.2f} µs an evaluation", flush=True)
        for name, ratio in ratios.items():
            print(f"    {name:34}{ratio:>8.2f}", flush=True)


def _with_table_rows(workload: Workload) -> Workload:
    """Return the workload with many rows if one row takes little time."""
    if workload.rows.dim() > 2 or workload.uses_masker or len(workload.background) > 1:
        return workload
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(N_TABLE_ROWS, workload.rows.shape[1], generator=generator)
    return replace(workload, rows=rows.to(workload.rows.dtype))


def _ratios(workload: Workload, names: list[str], n_rounds: int) -> tuple[float, dict[str, float]]:
    """Return the floor's microseconds and the ratios of the contenders that take this workload."""
    n_evaluations = workload.budget * len(workload.rows)
    runs: dict[str, tuple[Run, float]] = {}
    for name in names:
        counting = CountingModel(workload.module)
        try:
            CONTENDERS[name](replace(workload, module=counting))()
        except NotImplementedError:
            continue
        n_run = counting.n_rows_run / len(workload.background)
        runs[name] = CONTENDERS[name](workload), n_run
    floors = [floor(workload, size) for size in FLOOR_SIZES]
    seconds = np.empty((n_rounds, len(floors) + len(runs)))
    for of_round in seconds:
        for index, run in enumerate([*floors, *(run for run, _ in runs.values())]):
            started = time.perf_counter()
            run()
            of_round[index] = time.perf_counter() - started
    medians = np.median(seconds, axis=0)
    of_floor = medians[: len(floors)].min() / n_evaluations
    of_contenders = medians[len(floors) :]
    ratios = {
        name: spent / n_run / of_floor
        for (name, (_, n_run)), spent in zip(runs.items(), of_contenders, strict=True)
    }
    return 1e6 * of_floor, ratios


if __name__ == "__main__":
    main()

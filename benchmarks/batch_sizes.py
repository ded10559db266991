"""Whether the batch size that is found by timing is as fast as the best fixed one.

    python benchmarks/batch_sizes.py [--quick] [--cpu] [--workloads NAME …] [--hosts NAME …]

Six models through both hosts. Fixed sizes and the default take turns, so that a busy machine slows
all of them alike. The median of the rounds counts: the fastest of several sizes and rounds would be
faster by chance than the fastest round of the default. About two minutes.

With --cpu, torch has one thread, and the time of the processor counts in place of the clock's, also
for the rule that finds the size. Other programs change that little.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable

import numpy as np
import shap
import torch
from workloads import WORKLOADS, Workload

import captum_ext
import shap_ext  # noqa: F401 # it makes shap know the algorithms
from shapley_adapters.games import evaluation as batched_evaluation

SIZES = (16, 32, 64, 128, 256, 1024, 4096)
"""Fixed numbers of evaluations of one call."""


def main() -> None:
    """Print a line for each workload and host."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--hosts", nargs="+", choices=HOSTS, default=list(HOSTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--cpu", action="store_true", help="time of the processor, one thread")
    arguments = parser.parse_args()
    n_rounds = 2 if arguments.quick else arguments.rounds
    clock = time.perf_counter
    if arguments.cpu:
        torch.set_num_threads(1)
        clock = time.process_time
        vars(batched_evaluation)["perf_counter"] = clock
    print(
        f"torch {torch.__version__}, Python {platform.python_version()}, "
        f"{torch.get_num_threads()} threads. ms for each row with fixed sizes, with the default, "
        f"and the default over the best; median of {n_rounds} rounds."
    )
    head = "".join(f"{size:>8}" for size in SIZES)
    print(f"{'workload':26}{'host':8}{head}{'default':>9}{'ratio':>7}")
    for name in arguments.workloads:
        workload = WORKLOADS[name]()
        for host in arguments.hosts:
            seconds = _seconds(HOSTS[host](workload), n_rounds, clock)
            per_row = [1e3 * second / len(workload.rows) for second in seconds]
            cells = "".join(f"{ms:>8.2f}" for ms in per_row[:-1])
            ratio = per_row[-1] / min(per_row[:-1])
            print(f"{name:26}{host:8}{cells}{per_row[-1]:>9.2f}{ratio:>7.2f}", flush=True)


def _seconds(
    run: Callable[[int | None], object], n_rounds: int, clock: Callable[[], float]
) -> list[float]:
    """Return the time with each fixed size, then with the default."""
    sizes = [*SIZES, None]
    run(64)  # warm up
    seconds = np.empty((n_rounds, len(sizes)))
    for of_round in seconds:
        for place, size in enumerate(sizes):
            started = clock()
            run(size)
            of_round[place] = clock() - started
    medians: list[float] = np.median(seconds, axis=0).tolist()
    return medians


def _through_shap(workload: Workload) -> Callable[[int | None], object]:
    workload.module.eval()
    explainer = shap.Explainer(
        workload.predict, workload.masker, algorithm="leastsquares", seed=0, **workload.options
    )
    return lambda size: explainer(
        workload.table, max_evals=workload.budget, batch_size=size or "auto", silent=True
    )


def _through_captum(workload: Workload) -> Callable[[int | None], object]:
    method = captum_ext.LeastSquares(workload.module.eval(), seed=0)
    n_rows, n_background = len(workload.rows), len(workload.background)

    def run(size: int | None) -> object:
        # captum counts copies of all examples, with each of their baselines.
        each = None if size is None else max(1, size * n_background // n_rows)
        return method.attribute(
            workload.rows,
            baselines=workload.baselines,
            n_samples=workload.budget,
            feature_mask=workload.mask,
            perturbations_per_eval=each,
        )

    return run


HOSTS = {"shap": _through_shap, "captum": _through_captum}


if __name__ == "__main__":
    main()

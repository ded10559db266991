"""How far networks that explain are from the exact values, by what their training spent.

Adult, 13 players, as in the other benchmarks (SimSHAP, Figure 2 and Tables 4 and 5 to 8 in small):

    python tests/benchmarks/amortized_accuracy.py [--rows 8000] [--epochs 30] [--activation relu]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import shap
import torch
from adult import add_arguments, prepare, training_rows
from coalition_games import FloatArray

import shap_ext
from shap_ext.explainers.trained_networks import AmortizedExplainer


def main() -> None:
    """Train all contenders, and print their errors beside those of estimators row by row."""
    arguments = _arguments()
    torch.set_num_threads(1)
    benchmark = prepare(arguments, arguments.test_rows)
    exact = benchmark.game().shapley_values()
    rows = training_rows(arguments)[: arguments.rows]
    print(
        f"Adult, {arguments.activation} network, {arguments.explain}: {len(rows)} training rows, "
        f"{len(benchmark.rows)} test rows, {arguments.epochs} epochs, one thread.\n"
        f"evaluations: coalitions a training row. l1, l2: mean over test rows of Σ|φ̂ − φ| and of "
        f"√Σ(φ̂ − φ)². Mean Σ|φ|: {np.abs(exact).sum(axis=1).mean():.2f}.\n"
    )
    print(
        f"{'contender':44}{'evaluations':>12}{'l1':>8}{'l2':>8}{'training s':>12}{'µs a row':>10}"
    )
    errors: dict[str, float] = {}
    for name, kind, options in _contenders(arguments):
        if arguments.only and not any(word in name for word in arguments.only):
            continue
        errors[name] = _line(name, kind, options, arguments, benchmark, rows, exact)
    for name, at, wanted in (
        ("SimSHAP, oddgp labels, 1/10", "a tenth of its evaluations", 1.0),
        ("SimSHAP, oddgp labels, crossed rows", "equal evaluations", 0.5),
    ):
        if {name, "FastSHAP"} <= errors.keys():
            _verdict(at, errors[name] / errors["FastSHAP"], wanted)
    print("\nEstimators, one row after the other")
    for name in ("kernel", "shap permutation", "leastsquares", "oddgp"):
        _estimators(name, benchmark, exact)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--test-rows", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="contenders by parts of names")
    return parser.parse_args()


def _contenders(
    arguments: argparse.Namespace,
) -> list[tuple[str, type[AmortizedExplainer], dict[str, Any]]]:
    """Return name, class and options; the first five spend the same."""
    sim, fast = shap_ext.SimShapExplainer, shap_ext.FastShapExplainer
    in_all = 32 * arguments.epochs
    n_crossed = 9 * arguments.rows
    paper = {"targets": "simsemivalue"}
    return [
        ("FastSHAP", fast, {}),
        ("SimSHAP as in the paper", sim, paper),
        ("SimSHAP, control variate", sim, {"targets": "controlled"}),
        ("SimSHAP, oddgp labels", sim, {"evaluations": in_all}),
        (
            "SimSHAP, oddgp labels, crossed rows",
            sim,
            {"evaluations": in_all // 10, "crossed_rows": n_crossed},
        ),
        ("SimSHAP, oddgp labels, 1/10", sim, {"evaluations": in_all // 10}),
        (
            "SimSHAP, least-squares labels, 1/10",
            sim,
            {"evaluations": in_all // 10, "targets": "leastsquares"},
        ),
        ("paper, not in pairs", sim, paper | {"paired": False}),
        ("paper, 8 coalitions a row and epoch", sim, paper | {"evaluations": 8}),
        ("paper, 256 rows a step", sim, paper | {"rows_per_step": 256}),
        ("paper, learning rate 3e-4", sim, paper | {"learning_rate": 3e-4}),
        (
            "labels 1/10, learning rate 3e-4",
            sim,
            {"evaluations": in_all // 10, "learning_rate": 3e-4},
        ),
        (
            "labels 1/10, three layers of 512",
            sim,
            {"evaluations": in_all // 10, "network_options": {"widths": (512,) * 3}},
        ),
    ]


def _line(
    name: str,
    kind: type[AmortizedExplainer],
    options: dict[str, Any],
    arguments: argparse.Namespace,
    benchmark: Any,
    rows: Any,
    exact: FloatArray,
) -> float:
    started = time.perf_counter()
    explainer = kind(
        benchmark.model,
        benchmark.reference,
        feature_names=benchmark.column_names,
        groups=benchmark.groups,
        training_data=rows,
        epochs=arguments.epochs,
        seed=0,
        **options,
    ).fit()
    seconds = time.perf_counter() - started
    values = explainer(benchmark.rows, silent=True).values
    pace = _seconds_a_row(lambda: explainer.stream(benchmark.rows, silent=True), len(exact))
    spent = explainer.trained.trained.evaluations / len(rows)
    l1, l2 = _errors(values, exact)
    print(f"{name:44}{spent:12.0f}{l1:8.3f}{l2:8.3f}{seconds:12.0f}{pace * 1e6:10.1f}", flush=True)
    return l1


def _estimators(name: str, benchmark: Any, exact: FloatArray) -> None:
    """Print errors and times of an estimator over budgets."""
    for per_player in (4, 8, 16, 32):
        budget = per_player * benchmark.n_players + 2
        started = time.perf_counter()
        if name in ("kernel", "shap permutation"):
            values = _shap_s_own(name, benchmark, budget)
        else:
            values = _ours(name, benchmark, budget)
        seconds = (time.perf_counter() - started) / len(exact)
        l1, l2 = _errors(values, exact)
        print(f"{name:44}{budget:12d}{l1:8.3f}{l2:8.3f}{'':12}{seconds * 1e6:10.1f}", flush=True)


def _ours(name: str, benchmark: Any, budget: int) -> FloatArray:
    explainer = shap.Explainer(
        benchmark.model,
        benchmark.reference,
        algorithm=name,
        feature_names=benchmark.column_names,
        groups=benchmark.groups,
        seed=0,
    )
    values: FloatArray = explainer(benchmark.rows, max_evals=budget, silent=True).values
    return values


def _shap_s_own(name: str, benchmark: Any, budget: int) -> FloatArray:
    """Explain with shap's explainers, which know no groups: of a table of row numbers."""
    numbers = np.arange(1.0, len(benchmark.rows) + 1)[:, None]
    table = np.tile(numbers, (1, benchmark.n_players))

    def model(x: FloatArray) -> FloatArray:
        present = x > 0
        row = np.maximum(x.max(axis=1).astype(int) - 1, 0)
        columns = present[:, benchmark.player_of_column]
        masked = np.where(columns, benchmark.rows[row], benchmark.reference)
        return benchmark.model.predict(masked.astype(np.float32)).reshape(len(x), -1)[:, 0]

    background = np.zeros((1, benchmark.n_players))
    if name == "kernel":
        np.random.seed(0)  # noqa: NPY002  it draws from the global generator
        explainer = shap.KernelExplainer(model, background)
        return explainer.shap_values(table, nsamples=budget - 2, l1_reg=False, silent=True)
    masker = shap.maskers.Independent(background)
    explainer = shap.PermutationExplainer(model, masker, seed=0)
    return explainer(table, max_evals=budget, silent=True).values


def _errors(values: FloatArray, exact: FloatArray) -> tuple[float, float]:
    gap = values - exact
    return float(np.abs(gap).sum(axis=1).mean()), float(np.sqrt((gap**2).sum(axis=1)).mean())


def _seconds_a_row(explain: Callable[[], object], n_rows: int) -> float:
    times = []
    for _ in range(7):
        started = time.perf_counter()
        explain()
        times.append(time.perf_counter() - started)
    return float(np.median(times)) / n_rows


def _verdict(at: str, ratio: float, wanted: float) -> None:
    verdict = "met" if ratio <= wanted else "MISSED"
    print(f"Error over FastSHAP's at {at}: {ratio:.2f}, at most {wanted}: {verdict}.")


if __name__ == "__main__":
    main()

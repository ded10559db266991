"""Measure an explainer on a few rows, and print what all rows cost on a cluster.

    python docs/examples/cost_of_rows.py [--rows 1e9] [--cores 2 64 1000] [--per-feature 8 16 64]
                                         [--explainer my_module:make] [--network]
                                         [--model-seconds 1e-6 5e-5 5e-3] [--algorithm oddgp]
                                         [--option weights=equal] [--cpu]

Without further options, it explains a random forest on scikit-learn's breast-cancer data. With
`--explainer`, it explains your model: `make()` in my_module.py returns an explainer of shap_ext and
some rows, the more the better. With `--network`, it also trains a network on these rows, and
measures the passes of the network. With `--model-seconds`, it prints a table for models of these
costs per evaluation instead, with 13 features.

A cost is that of one core: all libraries have one thread. The wall time assumes that the cores are
busy all the time. With `--cpu`, the time of the processor is measured, which other programs change
little, but which leaves out the time of GPUs and of waiting.
"""

import argparse
import importlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

import shap_ext

N_FEATURES, N_ROWS = 13, 1000
"""Of the table for models of given costs."""

clock = time.perf_counter


@dataclass(frozen=True)
class RowCost:
    """What a row costs.

    Attributes
    ----------
    name : str
        How the row is explained.
    seconds : float
        The time of one core.
    error : float
        The mean standard error, as a share of the mean magnitude of the attributions.
    """

    name: str
    seconds: float
    error: float = math.nan


def main() -> None:
    arguments = parsed_arguments()
    if arguments.cpu:
        globals()["clock"] = time.process_time
    with threadpool_limits(1):
        if arguments.model_seconds:
            print_table_of_models(arguments)
        else:
            print_plan(arguments)


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e9, help="rows to explain")
    parser.add_argument("--cores", type=int, nargs="+", default=[2, 64, 1000])
    parser.add_argument("--per-feature", type=int, nargs="+", default=[8, 16, 64])
    parser.add_argument("--explainer", help="module:function that returns an explainer and rows")
    parser.add_argument("--network", action="store_true", help="train a network, too")
    parser.add_argument("--model-seconds", type=float, nargs="+", help="costs of an evaluation")
    parser.add_argument("--cpu", action="store_true", help="measure the time of the processor")
    parser.add_argument("--algorithm", default="oddgp")
    parser.add_argument("--option", nargs="+", default=[], help="of the algorithm: name=value")
    parser.add_argument("--output", type=Path, default=Path("cost_output"))
    return parser.parse_args()


def print_plan(arguments: argparse.Namespace) -> None:
    """Print what the rows cost with each budget."""
    explainer, rows = made_explainer(arguments)
    costs = [
        measured_cost(explainer, rows, n_evaluations * rows.shape[1] + 2)
        for n_evaluations in arguments.per_feature
    ]
    if arguments.network:
        costs.append(measured_network(explainer, rows))
    print(f"{len(rows)} rows of {rows.shape[1]} features measured, on one core.\n")
    lines = [plan_line(cost, arguments.rows, arguments.cores) for cost in costs]
    text = "\n".join([plan_head(arguments.rows, arguments.cores), *lines])
    print(text)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "cost_of_rows.md").write_text(text + "\n")


def made_explainer(arguments: argparse.Namespace):
    """Return the explainer, and the rows that it is measured on."""
    if arguments.explainer:
        module, _, function = arguments.explainer.partition(":")
        return getattr(importlib.import_module(module), function)()
    data, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    data = data.iloc[:, :10]
    forest = RandomForestClassifier(20, random_state=0).fit(data, classes)

    def probability(X):
        return forest.predict_proba(X)[:, 1]

    rows, background = data.iloc[:100], data.iloc[300:301]
    return explainer_of(probability, background, arguments), rows


def explainer_of(model, background, arguments: argparse.Namespace):
    """Return an explainer with the algorithm and the options of the command."""
    options = dict(option.split("=") for option in arguments.option)
    return shap.Explainer(model, background, algorithm=arguments.algorithm, seed=0, **options)


def measured_cost(explainer, rows, budget: int) -> RowCost:
    """Explain the rows with a budget, after a first call that is not measured."""
    explainer(rows[:2], max_evals=budget, silent=True)
    started = clock()
    explainer(rows, max_evals=budget, silent=True)
    seconds = (clock() - started) / len(rows)
    estimate = explainer.last_estimate
    error = np.nanmean(estimate.standard_errors) / max(np.abs(estimate.values).mean(), 1e-300)
    return RowCost(f"{estimate.evaluations.mean():,.0f} evaluations", seconds, float(error))


def measured_network(explainer, rows) -> RowCost:
    """Train a network on the rows, and let it explain each of them many times."""
    network = shap_ext.SimShapExplainer(
        explainer.model, explainer.masker, training_data=rows, seed=0
    )
    network.fit(silent=True)
    table = np.concatenate([np.asarray(rows)] * max(1, 20_000 // len(rows)))
    network.stream(table[: len(rows)], silent=True)
    started = clock()
    network.stream(table, silent=True)
    return RowCost("a pass of a network", (clock() - started) / len(table))


def plan_head(n_rows: float, cores: Sequence[int]) -> str:
    """Return the first two lines of the plan."""
    times = " | ".join(f"{n:,} cores" for n in cores)
    rules = "|".join(["---"] * (4 + len(cores)))
    return f"| {n_rows:,.0f} rows | ms per row | relative error | core hours | {times} |\n|{rules}|"


def plan_line(cost: RowCost, n_rows: float, cores: Sequence[int]) -> str:
    """Return a line of the plan."""
    core_seconds = cost.seconds * n_rows
    error = "" if math.isnan(cost.error) else f"{cost.error:.2g}"
    cells = [cost.name, rounded(1e3 * cost.seconds), error, rounded(core_seconds / 3600)]
    return "| " + " | ".join([*cells, *(duration(core_seconds / n) for n in cores)]) + " |"


def print_table_of_models(arguments: argparse.Namespace) -> None:
    """Print what rows cost for models of given costs, by the formula of the page."""
    name = " ".join([arguments.algorithm, *arguments.option])
    print(f"{name}, {N_FEATURES} features; own time measured on {N_ROWS} rows.\n")
    times = " | ".join(f"{n:,} cores" for n in arguments.cores)
    print(f"| an evaluation | budget | own ms per row | ms per row | core hours | {times} |")
    print("|" + "|".join(["---"] * (5 + len(arguments.cores))) + "|")
    own = {n: own_seconds(arguments, n) for n in arguments.per_feature}
    for model_seconds in arguments.model_seconds:
        for n_evaluations, of_row in own.items():
            budget = n_evaluations * N_FEATURES + 2
            seconds = budget * model_seconds + of_row
            core_seconds = seconds * arguments.rows
            cells = [
                duration(model_seconds),
                f"{budget}",
                rounded(1e3 * of_row),
                rounded(1e3 * seconds),
                rounded(core_seconds / 3600),
                *(duration(core_seconds / n) for n in arguments.cores),
            ]
            print("| " + " | ".join(cells) + " |")


def own_seconds(arguments: argparse.Namespace, n_evaluations: int) -> float:
    """Return our own time for a row: that of a call without the time in a cheap model."""
    rng = np.random.default_rng(0)
    rows, background = rng.normal(size=(N_ROWS, N_FEATURES)), np.zeros((1, N_FEATURES))
    model = CheapModel(rng.normal(size=N_FEATURES))
    explainer = explainer_of(model, background, arguments)
    budget = n_evaluations * N_FEATURES + 2
    explainer(rows[:2], max_evals=budget, silent=True)
    model.seconds, started = 0.0, clock()
    explainer(rows, max_evals=budget, silent=True)
    return (clock() - started - model.seconds) / N_ROWS


class CheapModel:
    """A model that measures its own time."""

    def __init__(self, weights) -> None:
        self.weights, self.seconds = weights, 0.0

    def __call__(self, X):
        started = clock()
        outputs = X @ self.weights
        outputs += outputs**2
        self.seconds += clock() - started
        return outputs


def duration(seconds: float) -> str:
    """Return a time in the unit in which it is easy to read."""
    units = {"years": 365 * 86400, "days": 86400, "h": 3600, "min": 60, "s": 1, "ms": 1e-3}
    for unit, size in units.items():
        if seconds >= (2 * size if unit in ("years", "days") else size):
            return f"{rounded(seconds / size)} {unit}"
    return f"{rounded(seconds / 1e-6)} µs"


def rounded(number: float) -> str:
    """Return a number with two digits, and separators of thousands."""
    if number == 0:
        return "0"
    digits = 1 - math.floor(math.log10(abs(number)))
    number = round(number, digits)
    return f"{number:,.0f}" if digits <= 0 else f"{number:.{digits}f}"


if __name__ == "__main__":
    main()

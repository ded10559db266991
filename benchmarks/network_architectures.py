"""What learns attributions best: errors of students on the same rows and labels.

    python benchmarks/network_architectures.py [--only WORD …] [--mixed 0]

Each contender learns the same labels, by `oddgp` with equal weights, of 8 evaluations per feature
of each training row. The last two models, boosted trees with 57 and 94 features, are those of
`amortized_accuracy.py`; the others need no data. With `--mixed 9`, there are nine mixed rows for
each training row. `--rows` bounds the training rows.

The last columns compare with `oddgp` with equal weights, row by row, at the same error: its
evaluations per row, and the numbers of rows from which on the student has cost fewer evaluations
and less time of the processor, with its training. A dash means never. "> 160" means that `oddgp`
needs more evaluations than eight per feature.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from amortized_cases import NormalScores
from coalition_games import FloatArray
from data_files import add_folder_arguments
from refined_networks import Task, fitted_task, tasks, truth
from sklearn.datasets import load_breast_cancer, make_classification, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from table_models import table_trees
from tables import Table, companies, news

import shap_ext

_TEST_ROWS = 60

_TIMED_ROWS = 512

_PER_PLAYER = (1, 1.5, 2, 3, 4, 6, 8)
"""Evaluations of `oddgp` per feature, between which its errors and times are interpolated."""


@dataclass(frozen=True)
class Case:
    """A model, the rows to learn from, and test rows with their values.

    Attributes
    ----------
    features : callable, optional
        Makes the network's inputs of rows.
    """

    task: Task
    reference: FloatArray
    values: FloatArray
    features: Callable[[FloatArray], npt.NDArray[Any]] | None = None


@dataclass(frozen=True)
class Contender:
    """A student, by name."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


def main() -> None:
    """Print the errors of all contenders on all models."""
    arguments = _arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    print(f"{'':32}{'error':>8}{'over mlp':>10}{'fit, s':>8}{'a row, µs':>11}", end="")
    print(f"{'oddgp':>8}{'rows, evaluations':>19}{'rows, time':>12}")
    for case in _cases(arguments):
        _report(case, arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="words of the names of models")
    parser.add_argument("--contenders", nargs="*", help="their names")
    parser.add_argument("--mixed", type=int, default=0, help="mixed rows per training row")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--rows", type=int, help="training rows at most; all by default")
    add_folder_arguments(parser)
    return parser.parse_args()


def _cases(arguments: argparse.Namespace) -> Iterator[Case]:
    def is_wanted(name: str) -> bool:
        return not arguments.only or any(word in name for word in arguments.only)

    for task in (*tasks(), *_further_tasks()):
        if is_wanted(task.name):
            training = task.training[: arguments.rows]
            reference = task.training.mean(axis=0, keepdims=True)
            rows = Task(task.name, task.model, training, task.rows[:_TEST_ROWS])
            yield Case(rows, reference, truth(task.model, reference, rows.rows))
    tables: tuple[tuple[str, Callable[[Path], Table]], ...] = (
        ("news, boosted trees, 57", news),
        ("companies, boosted trees, 94", companies),
    )
    for name, read in tables:
        if is_wanted(name):
            yield _of_table(name, read(arguments.data), arguments.rows)


def _further_tasks() -> Iterator[Task]:
    """Yield support vectors, networks and trees on further tables that need no data."""
    numbers, level = make_friedman1(3000, 10, random_state=0)
    wide = make_classification(4000, 40, n_informative=20, random_state=2)
    perceptron = MLPClassifier((64, 64), max_iter=60, random_state=0)
    boosted = HistGradientBoostingClassifier(max_depth=4, random_state=0)
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
    support = SVC(probability=True, random_state=0)
    classes = make_classification(3000, 15, n_informative=8, random_state=1)
    kinds: list[tuple[str, Any, Any, Any]] = [
        ("friedman, forest, 10", forest, numbers, level > level.mean()),
        ("support vectors, 15", make_pipeline(StandardScaler(), support), *classes),
        ("breast cancer, network, 30", make_pipeline(StandardScaler(), perceptron),
         *load_breast_cancer(return_X_y=True)),
        ("boosted trees, 40", boosted, *wide),
        ("network, 40", make_pipeline(StandardScaler(), perceptron), *wide),
    ]  # fmt: skip
    for kind in kinds:
        yield fitted_task(*kind)


def _of_table(name: str, table: Table, n_rows: int | None) -> Case:
    explained, shapley = table_trees(table, _TEST_ROWS)
    task = Task(name, explained.model.predict, table.training[:n_rows], explained.rows)
    return Case(task, explained.reference, shapley.values, NormalScores(table.training))


def _contenders(n_inputs: int) -> list[Contender]:
    return [
        Contender("mlp", {"student": "mlp"}),
        Contender("mlp, three of 512", {"student_options": {"widths": (512,) * 3}}),
        Contender("embeddings", {"student": "embeddings"}),
        Contender(
            "embeddings, 9 knots", {"student": "embeddings", "student_options": {"knots": 9}}
        ),
        Contender("trees", {"student": "trees"}),
    ]


def _report(case: Case, arguments: argparse.Namespace) -> None:
    task = case.task
    size = np.abs(case.values).sum(axis=1).mean()
    print(f"\n{task.name}: {len(task.training)} training rows, mean Σ|φ| {size:.2f}")
    of_mlp, row_by_row = np.nan, _row_by_row(case)
    for contender in _contenders(task.rows.shape[1]):
        if arguments.contenders and contender.name not in arguments.contenders:
            continue
        started = time.process_time()
        explainer = _fitted(contender, case, arguments)
        seconds = time.process_time() - started
        explained = explainer(task.rows, silent=True).values
        error = float(np.abs(explained - case.values).sum(axis=1).mean())
        of_mlp = error if contender.name == "mlp" else of_mlp
        pace = _seconds_per_row(partial(explainer.stream, silent=True), task)
        with_model = _seconds_per_row(partial(explainer, silent=True), task)
        cost = Cost(explainer.trained.evaluations, seconds, 1, with_model)
        print(
            f"{contender.name:32}{error / size:8.3f}{error / of_mlp:10.2f}{seconds:8.0f}"
            f"{pace * 1e6:11.0f}{row_by_row.compared(error, cost)}",
            flush=True,
        )


@dataclass(frozen=True)
class Cost:
    """Evaluations and seconds of the processor, for the training and for each row."""

    training_evaluations: int
    training_seconds: float
    evaluations: float
    seconds: float


@dataclass(frozen=True)
class RowByRow:
    """Evaluations, errors and seconds per row of `oddgp` with equal weights, by its budgets."""

    evaluations: FloatArray
    errors: FloatArray
    seconds: FloatArray

    def compared(self, error: float, cost: Cost) -> str:
        """Return the evaluations for the same error, and the rows from which training pays."""
        if error < self.errors[-1]:
            return f"{'> ' + format(self.evaluations[-1], '.0f'):>8}{'-':>19}{'-':>12}"
        order = np.argsort(self.errors)
        log_error, log_errors = np.log(error), np.log(self.errors[order])
        evaluations, seconds = (
            float(np.exp(np.interp(log_error, log_errors, np.log(costs[order]))))
            for costs in (self.evaluations, self.seconds)
        )
        saved = evaluations - cost.evaluations, seconds - cost.seconds
        spent = cost.training_evaluations, cost.training_seconds
        rows = [f"{n / s:,.0f}" if s > 0 else "-" for n, s in zip(spent, saved, strict=True)]
        return f"{evaluations:8.0f}{rows[0]:>19}{rows[1]:>12}"


def _row_by_row(case: Case) -> RowByRow:
    """Measure `oddgp` with equal weights on the test rows."""
    task = case.task
    explainer = shap_ext.OddGPExplainer(task.model, case.reference, weights="equal", seed=0)
    budgets = [round(per * task.rows.shape[1]) for per in _PER_PLAYER]
    calls = [partial(explainer, max_evals=budget, silent=True) for budget in budgets]
    errors = [np.abs(call(task.rows).values - case.values).sum(axis=1).mean() for call in calls]
    seconds = [_seconds_per_row(call, task) for call in calls]
    return RowByRow(np.array(budgets, dtype=float), np.array(errors), np.array(seconds))


def _seconds_per_row(explain: Callable[[FloatArray], object], task: Task) -> float:
    many = np.resize(task.training, (_TIMED_ROWS, task.training.shape[1]))
    started = time.process_time()
    explain(many)
    return (time.process_time() - started) / len(many)


def _fitted(contender: Contender, case: Case, arguments: argparse.Namespace) -> Any:
    """Return the explainer with the trained student."""
    task = case.task
    options = dict(contender.options)
    if callable(options.get("student")):
        torch.manual_seed(0)
        options["student"] = options["student"]()
    return shap_ext.SimShapExplainer(
        task.model,
        case.reference,
        training_data=task.training,
        n_mixed_rows=arguments.mixed * len(task.training),
        features=case.features,
        seed=0,
        **({"epochs": arguments.epochs} | options),
    ).fit(silent=True)


if __name__ == "__main__":
    main()

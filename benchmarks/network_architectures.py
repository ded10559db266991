"""What learns attributions best: errors of students on the same rows and labels.

    python benchmarks/network_architectures.py [--only WORD …] [--rows 1000]

Each student learns the same labels, by `oddgp` with equal weights, of 8 evaluations per feature of
each training row, of which there are at most `--rows`. Needs no data.

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
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from coalition_games import FloatArray
from refined_networks import Task, fitted_task, tasks, truth
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import shap_ext

STUDENTS = ("mlp", "embeddings", "trees")

_TEST_ROWS = 60

_TIMED_ROWS = 512

_PER_PLAYER = (1, 1.5, 2, 3, 4, 6, 8)
"""Evaluations of `oddgp` per feature, between which its errors and times are interpolated."""


@dataclass(frozen=True)
class Case:
    """A model, the rows to learn from, and test rows with their values."""

    task: Task
    reference: FloatArray
    values: FloatArray


def main() -> None:
    """Print the errors of all contenders on all models."""
    arguments = _arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    print(f"{'':32}{'error':>8}{'over mlp':>10}{'fit, s':>8}{'a row, µs':>11}", end="")
    print(f"{'oddgp':>8}{'rows, evaluations':>19}{'rows, time':>12}")
    for case in _cases(arguments):
        _report(case)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="words of the names of models")
    parser.add_argument("--rows", type=int, help="training rows at most; all by default")
    return parser.parse_args()


def _cases(arguments: argparse.Namespace) -> Iterator[Case]:
    for task in (*tasks(), *_further_tasks()):
        if not arguments.only or any(word in task.name for word in arguments.only):
            training = task.training[: arguments.rows]
            reference = task.training.mean(axis=0, keepdims=True)
            rows = Task(task.name, task.model, training, task.rows[:_TEST_ROWS])
            yield Case(rows, reference, truth(task.model, reference, rows.rows))


def _further_tasks() -> Iterator[Task]:
    """Yield a forest and support vectors."""
    numbers, level = make_friedman1(3000, 10, random_state=0)
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
    yield fitted_task("friedman, forest, 10", forest, numbers, level > level.mean())
    classes = make_classification(3000, 15, n_informative=8, random_state=1)
    support = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0))
    yield fitted_task("support vectors, 15", support, *classes)


def _report(case: Case) -> None:
    task = case.task
    size = np.abs(case.values).sum(axis=1).mean()
    print(f"\n{task.name}: {len(task.training)} training rows, mean Σ|φ| {size:.2f}")
    of_mlp, row_by_row = np.nan, _row_by_row(case)
    for student in STUDENTS:
        started = time.process_time()
        explainer = shap_ext.SimShapExplainer(
            task.model, case.reference, training_data=task.training, student=student, epochs=30,
            seed=0,
        ).fit(silent=True)  # fmt: skip
        seconds = time.process_time() - started
        explained = explainer(task.rows, silent=True).values
        error = float(np.abs(explained - case.values).sum(axis=1).mean())
        of_mlp = error if student == "mlp" else of_mlp
        pace = _seconds_per_row(partial(explainer.stream, silent=True), task)
        with_model = _seconds_per_row(partial(explainer, silent=True), task)
        cost = Cost(explainer.trained.evaluations, seconds, 1, with_model)
        print(
            f"{student:32}{error / size:8.3f}{error / of_mlp:10.2f}{seconds:8.0f}"
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


if __name__ == "__main__":
    main()

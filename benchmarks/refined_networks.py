"""How well a network knows its own errors, and what evaluations add to its attributions.

    python benchmarks/refined_networks.py [--rows 40] [--only WORD …]

The first table has the share of exact values inside 95 and 68 % intervals of the network alone,
for rows like the training rows and for shifted ones. The second table has the error of the network
refined by some evaluations per player, beside `oddgp` with the same budget.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import shap
import torch
from coalition_games import FloatArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shap_ext
from shapley_adapters import Estimate

_PER_PLAYER = (0.25, 0.5, 1, 2, 3, 4)
_TRUTH_PER_PLAYER = 64


@dataclass(frozen=True)
class Task:
    """A model, the rows that networks are trained on, and the rows to explain."""

    name: str
    model: Callable[[FloatArray], FloatArray]
    training: FloatArray
    rows: FloatArray


def main() -> None:
    """Train a network for each model, and print both tables."""
    arguments = _arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    for task in tasks():
        if arguments.only and not any(word in task.name for word in arguments.only):
            continue
        _report(task, arguments.rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40, help="rows to explain")
    parser.add_argument("--only", nargs="*", help="words of the names of models")
    return parser.parse_args()


def tasks() -> list[Task]:
    """Return the models, fitted."""
    made = make_classification(6000, 20, n_informative=12, random_state=0)
    trees = HistGradientBoostingClassifier(max_depth=5, random_state=0)
    network = make_pipeline(StandardScaler(), MLPClassifier((64, 64), max_iter=60, random_state=0))
    digits = load_digits(return_X_y=True)
    return [
        fitted_task("boosted trees, 20 features", trees, *made),
        fitted_task("network, 20 features", network, *made),
        fitted_task(
            "breast cancer, boosted trees, 30", trees, *load_breast_cancer(return_X_y=True)
        ),
        fitted_task("digits, network, 64 pixels", network, digits[0], digits[1] % 2),
    ]


def fitted_task(name: str, estimator: object, x: FloatArray, y: FloatArray) -> Task:
    """Return the log-odds of a classifier that is fitted to four fifths of the rows."""
    half = int(0.8 * len(x))
    fitted = clone(estimator).fit(x[:half], y[:half])

    def log_odds(rows: FloatArray) -> FloatArray:
        probabilities = np.clip(fitted.predict_proba(rows), 1e-6, 1)
        odds: FloatArray = np.log(probabilities[:, 1]) - np.log(probabilities[:, 0])
        return odds

    return Task(name, log_odds, x[:half].astype(float), x[half:].astype(float))


def _report(task: Task, n_rows: int) -> None:
    reference = task.training.mean(axis=0, keepdims=True)
    network = shap_ext.SimShapExplainer(
        task.model,
        reference,
        training_data=task.training,
        student="mlp",
        epochs=30,
        seed=0,
    ).fit(silent=True)
    n_players = reference.shape[1]
    trained = network.trained
    print(
        f"\n{task.name}: {len(task.training)} training rows, {trained.evaluations:,} evaluations, "
        f"{trained.validation_evaluations:,} of them for validation"
    )
    print(f"{'rows':24}{'error':>8}{'stated':>8}{'95 %':>7}{'68 %':>7}")
    shifts = _shifts(task, n_rows)
    truths = {name: truth(task.model, reference, rows) for name, rows in shifts.items()}
    for name, rows in shifts.items():
        explained = network(rows, error_bounds=True, silent=True)
        _print_intervals(name, explained, network.last_estimate, truths[name])
    header = "".join(f"{per:>8}" for per in _PER_PLAYER)
    print(f"{'evaluations per player':46}{header}")
    oddgp = shap_ext.OddGPExplainer(task.model, reference, seed=0)
    equal = shap_ext.OddGPExplainer(task.model, reference, weights="equal", seed=0)
    contenders = {"refined network": network, "oddgp": oddgp, "oddgp, equal weights": equal}
    for name in ("like the training rows", "doubled"):
        for label, explainer in contenders.items():
            cells = [
                explainer(shifts[name], max_evals=max(4, int(per * n_players)), silent=True)
                for per in _PER_PLAYER
            ]
            errors = "".join(f"{_error(cell, truths[name]):8.3f}" for cell in cells)
            print(f"{name + ', ' + label:46}{errors}", flush=True)


def _shifts(task: Task, n_rows: int) -> dict[str, FloatArray]:
    rng = np.random.default_rng(1)
    rows, spread = task.rows[:n_rows], task.training.std(axis=0)
    varied = np.flatnonzero(spread)
    moved = rows.copy()
    moved[:, varied[:3]] += 3 * spread[varied[:3]]
    noise = rng.normal(size=rows.shape) * spread
    return {
        "like the training rows": rows,
        "doubled": 2 * rows,
        "three columns + 3 sd": moved,
        "noise of 1 sd": rows + noise,
    }


def truth(
    model: Callable[[FloatArray], FloatArray], reference: FloatArray, rows: FloatArray
) -> FloatArray:
    """Return converged values of rows."""
    explainer = shap_ext.OddGPExplainer(model, reference, weights="equal", seed=7)
    values: FloatArray = explainer(
        rows, max_evals=_TRUTH_PER_PLAYER * rows.shape[1], silent=True
    ).values
    return values


def _error(explained: shap.Explanation, truth: FloatArray) -> float:
    """Return the sum of absolute errors, relative to that of the values."""
    return float(np.abs(explained.values - truth).sum() / np.abs(truth).sum())


def _print_intervals(
    name: str, explained: shap.Explanation, estimate: Estimate, truth: FloatArray
) -> None:
    shares = []
    for confidence in (0.95, 0.68):
        lower, upper = (bound[:, :, 0] for bound in estimate.interval(confidence))
        shares.append(((lower <= truth) & (truth <= upper)).mean())
    stated = explained.error_std * np.sqrt(2 / np.pi)  # the mean absolute error of a normal
    relative = stated.sum() / np.abs(truth).sum()
    print(
        f"{name:24}{_error(explained, truth):8.3f}{relative:8.3f}"
        + "".join(f"{100 * share:7.1f}" for share in shares)
    )


if __name__ == "__main__":
    main()

"""Errors of global importance, for equal numbers of evaluations.

    python benchmarks/global_accuracy.py [--seeds 10] [--rows 2000] [--quick]

Three questions, on boosted trees for eight features of scikit-learn's breast-cancer data and on a
network of eight features:

- the mean absolute attribution: `global_importance` with random orders and odd GP and 30
  evaluations per row, beside the mean |φ| of shap's permutation explainer, which its bar plot
  draws;
- SAGE values for the cross entropy: `global_importance(kind="loss")`, beside the permutation
  estimator of the package `sage-importance` (pip install sage-importance; left out where it is not
  installed);
- how often 95 % intervals hold the exact value.

The exact values are those of all rows by enumeration. Each seed draws rows with replacement, so
that they are a sample. An evaluation is one coalition of one row, for all background rows together.
Errors are Σ|estimate − exact| over the features, divided by Σ|exact|.
"""

import argparse
import importlib
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import shap
from sklearn.datasets import load_breast_cancer, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier

import shap_ext  # noqa: F401 - registers the algorithms

sage: Any = importlib.import_module("sage") if importlib.util.find_spec("sage") else None

N_ROWS, N_FEATURES, N_BACKGROUND = 300, 8, 8
PER_ROW = 30  # two orders of the features, and their reverses

OURS: dict[str, dict[str, Any]] = {
    "ours, random orders": {"algorithm": "randomorder"},
    "ours, single orders": {"algorithm": "randomorder", "antithetic": False},
    "ours, oddgp": {"algorithm": "oddgp"},
}

Array: TypeAlias = Any
Answer: TypeAlias = tuple[Array, tuple[Array, Array] | None, int]
"""Values, the ends of their 95 % intervals if there are any, and evaluations."""


@dataclass(frozen=True)
class Case:
    """A model of 8 features with its rows and labels."""

    name: str
    predict: Callable[[Any], Any]
    rows: Array
    labels: Array
    background: Array


def cases() -> Iterator[Case]:
    """Yield the models; each takes 8 features and returns the probability of class 1."""
    rows, labels = load_breast_cancer(return_X_y=True)
    rows, labels = rows[:N_ROWS, :N_FEATURES], labels[:N_ROWS]
    trees = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(rows, labels)
    yield _case("boosted trees", trees, rows, labels)
    rows, targets = make_friedman1(N_ROWS, N_FEATURES, noise=2.0, random_state=0)
    labels = (targets > np.median(targets)).astype(int)
    network = MLPClassifier(hidden_layer_sizes=(30, 30), max_iter=500, random_state=0).fit(
        rows, labels
    )
    yield _case("network", network, rows, labels)


def _case(name: str, model: Any, rows: Array, labels: Array) -> Case:
    background = rows[np.random.default_rng(0).integers(len(rows), size=N_BACKGROUND)]
    return Case(name, lambda x: model.predict_proba(x)[:, 1], rows, labels, background)


# --- contenders: each returns values, standard errors or None, and evaluations ---


def ours(
    case: Case, options: Any, kind: str, total: int, sample: Array, labels: Array, seed: int
) -> Answer:
    """Return the result of `global_importance`."""
    explainer = shap.Explainer(case.predict, case.background, seed=seed, **options)
    of_loss = {"y": labels, "loss": "cross_entropy"} if kind == "loss" else {}
    found = explainer.global_importance(
        sample, kind=kind, n_rows=total // PER_ROW, max_evals=PER_ROW, silent=True, **of_loss
    )
    return found.values, found.interval(), found.evaluations


def shap_permutation(case: Case, total: int, sample: Array, seed: int) -> Answer:
    """Return mean |φ| of shap's permutation explainer with its default evaluations per row."""
    per_row = 10 * (2 * sample.shape[1] + 1)  # its default
    explainer = shap.PermutationExplainer(case.predict, case.background, seed=seed)
    few = sample[: max(1, total // per_row)]
    values = explainer(few, max_evals=per_row, silent=True).values
    return np.abs(values).mean(axis=0), None, len(few) * per_row


def shap_cheapest(case: Case, total: int, sample: Array, seed: int) -> Answer:
    """Return the same with one pair of orders for each row."""
    per_row = 2 * sample.shape[1] + 1
    explainer = shap.PermutationExplainer(case.predict, case.background, seed=seed)
    few = sample[: max(1, total // per_row)]
    values = explainer(few, max_evals=per_row, silent=True).values
    return np.abs(values).mean(axis=0), None, len(few) * per_row


def sage_permutation(case: Case, total: int, sample: Array, labels: Array, seed: int) -> Answer:
    """Return the SAGE values of the package's permutation estimator."""
    np.random.seed(seed)  # noqa: NPY002 - the only way to seed the package
    two = lambda x: np.stack([1 - case.predict(x), case.predict(x)], axis=1)  # noqa: E731
    imputer = sage.MarginalImputer(two, case.background)
    estimator = sage.PermutationEstimator(imputer, "cross entropy")
    n_orders = total // sample.shape[1]
    found = estimator(
        sample,
        labels,
        batch_size=64,
        n_permutations=n_orders,
        detect_convergence=False,
        bar=False,
        verbose=False,
    )
    half = 1.96 * found.std
    ends = (found.values - half, found.values + half)
    return found.values, ends, n_orders * sample.shape[1]


def contenders(kind: str) -> dict[str, Callable[..., Answer]]:
    """Return the contenders of a kind by name: functions of case, total, sample, labels, seed."""
    found: dict[str, Callable[..., Answer]] = {
        name: lambda c, t, s, y, r, o=options: ours(c, o, kind, t, s, y, r)
        for name, options in OURS.items()
    }
    if kind == "mean_absolute":
        found["shap permutation, default"] = lambda c, t, s, y, r: shap_permutation(c, t, s, r)
        found["shap permutation, 1 pair"] = lambda c, t, s, y, r: shap_cheapest(c, t, s, r)
    elif sage is not None:
        found["sage permutation"] = lambda c, t, s, y, r: sage_permutation(c, t, s, y, r)
    return found


def exact_values(case: Case, kind: str) -> Array:
    """Return the exact values over all rows."""
    explainer = shap.Explainer(case.predict, case.background, algorithm="enumeration")
    of_loss = {"y": case.labels, "loss": "cross_entropy"} if kind == "loss" else {}
    found = explainer.global_importance(
        case.rows, kind=kind, population=True, silent=True, **of_loss
    )
    return found.values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=2000, help="rows in a sample")
    parser.add_argument("--totals", type=int, nargs="+", default=[1000, 4000, 16000])
    parser.add_argument("--kinds", nargs="+", default=["mean_absolute", "loss"])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    seeds, totals = (2, [1000]) if options.quick else (options.seeds, options.totals)
    warnings.simplefilter("ignore")
    print(
        f"sage-importance {'is not installed' if sage is None else 'is installed'}; {seeds} seeds"
    )
    for case in cases():
        for kind in options.kinds:
            report(case, kind, totals, seeds, options.rows)


def report(case: Case, kind: str, totals: Sequence[int], seeds: int, n_rows: int) -> None:
    """Print the errors of all contenders."""
    exact = exact_values(case, kind)
    print(f"\n{case.name}, {kind}: error, intervals that hold, seconds per call")
    print(f"{'':28s}" + "".join(f"{total:>22,}" for total in totals))
    for name, contender in contenders(kind).items():
        cells = []
        for total in totals:
            errors, held, spent = [], [], []
            started = time.perf_counter()
            for seed in range(seeds):
                indices = np.random.default_rng(seed).integers(len(case.rows), size=n_rows)
                values, ends, evaluations = contender(
                    case, total, case.rows[indices], case.labels[indices], seed
                )
                errors.append(np.abs(values - exact).sum() / np.abs(exact).sum())
                spent.append(evaluations)
                if ends is not None:
                    held.append((ends[0] <= exact) & (exact <= ends[1]))
            seconds = (time.perf_counter() - started) / seeds
            share = f"{np.mean(held):.2f}" if held else "   –"
            cells.append(f"{np.mean(errors):10.3f} {share} {seconds:5.1f}s")
            if max(spent) > 1.05 * total:
                cells[-1] += "!"
        print(f"{name:28s}" + "".join(f"{cell:>22s}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()

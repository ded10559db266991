"""How exact, honest and costly networks are that explain: errors of each, the largest first.

    python benchmarks/networks.py [--parts labels students intervals] [--quick] [--docs]

*labels*: on Adult, companies and articles, SimSHAP with labels of `oddgp`, and FastSHAP, as ours
and as its authors train it (`fastshap_recipe.py`). All spend as many evaluations, validation
included, except *a tenth* and *all defaults*. *students*: which student learns best from the same
labels, and from which number of rows on it has cost fewer evaluations and less time of the
processor than `oddgp` with equal weights at the same error, with its training. *intervals*: the
share of exact values in 95 and 68 % intervals of a network for rows like the training rows and
others, and the error of the network refined by some evaluations a player, over that of `oddgp` with
equal weights.

Errors are Σ|φ̂ − φ| over Σ|φ|. The values of fitted models, which need no data, are those of 64
evaluations a player.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pages
import pandas as pd
import torch
from data_files import FOLDERS
from fastshap_recipe import LEARNING_RATES, table_network, train_recipe
from games import FloatArray, ModelGame, relative_error
from models import adult_rows, companies, news, normal_scores, prepare
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import shap_ext

CASES = {
    "adult-elu": ("Adult, 13", 8000, 400),
    "news": ("articles, trees, 57", 1000, 200),
    "table": ("companies, trees, 94", 1000, 64),
    "table-net": ("companies, network, 94", 1000, 40),
}
"""Models of tables, their titles, and how many rows are learned from and judged."""

WITH_INTERVALS = (
    "network, 20 features", "breast cancer, boosted trees, 30", "boosted trees, 20",
    "digits, network, 64 pixels",
)  # fmt: skip
_FAR_TOO_NARROW = 80
"""Per cent of values in 95 % intervals."""

STUDENTS = ("mlp", "embeddings", "trees")
_TEST_ROWS, _TIMED_ROWS, _DEFAULT_EPOCHS = 40, 512, 100
_REFINED = (0.25, 0.5, 1, 2, 3)
_PER_PLAYER = (1, 1.5, 2, 3, 4, 6, 8)
"""Evaluations of `oddgp` per feature, between which its errors and times are interpolated."""


@dataclass(frozen=True)
class Task:
    """A model, rows to learn from, rows to explain, and their values.

    Attributes
    ----------
    model : callable
        Rows to the output that is explained; a module where it is a network.
    training, rows : arrays, (n, D) and (R, D)
        Rows of the training and of the test part.
    reference : array, (1, D)
        Values of absent columns.
    options : dict
        What explainers have to know of the columns.
    values : array, (R, M), optional
        The Shapley values; by default those of many evaluations.
    """

    name: str
    model: Any
    training: npt.NDArray[Any]
    rows: npt.NDArray[Any]
    reference: npt.NDArray[Any]
    options: dict[str, Any] = field(default_factory=dict)
    values: FloatArray | None = None

    def exact(self, rows: FloatArray) -> FloatArray:
        """Return the values of rows: the known ones of the task's own."""
        if rows is self.rows and self.values is not None:
            return self.values
        return self.oddgp(7)(rows, max_evals=64 * rows.shape[1], silent=True).values

    def oddgp(self, seed: int = 0) -> Any:
        """Return `oddgp` with equal weights."""
        options = {name: one for name, one in self.options.items() if name != "features"}
        return shap_ext.OddGPExplainer(
            self.model, self.reference, weights="equal", seed=seed, **options
        )

    def trained(self, kind: Any = shap_ext.SimShapExplainer, **options: Any) -> Any:
        """Return a network that is trained on the rows."""
        given = {"training_data": self.training, "seed": 0, **self.options, **options}
        return kind(self.model, self.reference, **given).fit(silent=True)


def seconds_of(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return the answer of a call, and its seconds of the processor."""
    started = time.process_time()
    return run(), time.process_time() - started


def pace(explain: Callable[[Any], object], rows: npt.NDArray[Any]) -> float:
    """Return the seconds for a row of many."""
    many = np.resize(rows, (_TIMED_ROWS, rows.shape[1]))
    return float(np.median([seconds_of(partial(explain, many))[1] for _ in range(3)])) / len(many)


# --- models ---


def fitted_tasks(n_training: int | None, names: Sequence[str]) -> Iterator[Task]:
    """Yield the log-odds of classifiers that are fitted to four fifths of their rows."""
    made = make_classification(6000, 20, n_informative=12, random_state=0)
    trees = HistGradientBoostingClassifier(max_depth=5, random_state=0)
    network = make_pipeline(StandardScaler(), MLPClassifier((64, 64), max_iter=60, random_state=0))
    digits, parity = load_digits(return_X_y=True)
    numbers, level = make_friedman1(3000, 10, random_state=0)
    waves = make_classification(3000, 15, n_informative=8, random_state=1)
    support = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0))
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
    models = {
        "network, 20 features": (network, *made),
        "breast cancer, boosted trees, 30": (trees, *load_breast_cancer(return_X_y=True)),
        "boosted trees, 20": (trees, *made),
        "digits, network, 64 pixels": (network, digits, parity % 2),
        "friedman, forest, 10": (forest, numbers, level > level.mean()),
        "support vectors, 15": (support, *waves),
    }
    for name in names or models:
        estimator, x, y = models[name]
        part = int(0.8 * len(x))
        fitted, x = clone(estimator).fit(x[:part], y[:part]), x.astype(float)
        mean, test = x[:part].mean(axis=0, keepdims=True), x[part : part + _TEST_ROWS]
        yield Task(name, partial(_log_odds, fitted), x[:part][:n_training], test, mean)


def _log_odds(fitted: Any, rows: FloatArray) -> FloatArray:
    probabilities = np.clip(fitted.predict_proba(rows), 1e-6, 1)
    return np.log(probabilities[:, 1]) - np.log(probabilities[:, 0])


def table_task(name: str, options: argparse.Namespace) -> Task:
    """Return a model of a table with known Shapley values."""
    title, n_training, n_rows = (name, 200, 8) if options.quick else CASES[name]
    case = prepare(name, options.data, options.cache, n_rows)
    explained, read = case.explained, {}
    if name.startswith("adult"):
        rows = adult_rows(options.data)
    else:
        table = (news if name.startswith("news") else companies)(options.data)
        rows = (table.scores if name.endswith("net") else table.values)[table.parts["training"]]
        read = {} if name.endswith("net") else {"features": normal_scores(rows)}
    return Task(
        title, explained.model, rows[:n_training], explained.rows, explained.reference,
        {"feature_names": explained.column_names, "groups": explained.groups, **read}, case.exact,
    )  # fmt: skip


# --- tables ---


def labels(task: Task, epochs: int) -> pd.DataFrame:
    """Return errors and costs of labels of several kinds, and of FastSHAP."""
    exact = task.exact(task.rows)
    # 32, or as many as make a tenth of all enough for least squares.
    per_epoch = max(32, -(-10 * (2 * exact.shape[1] + 4) // epochs))
    tenth = {"evaluations": per_epoch * epochs // 10}
    sim = shap_ext.SimShapExplainer
    ours: dict[str, tuple[Any, dict[str, int]]] = {
        "FastSHAP, ours": (shap_ext.FastShapExplainer, {"evaluations": per_epoch}),
        "oddgp labels, mixed rows": (sim, {**tenth, "n_mixed_rows": 8 * len(task.training)}),
        "oddgp labels, a tenth": (sim, tenth),
        "SimSHAP, all defaults": (sim, {"epochs": _DEFAULT_EPOCHS}),
    }
    lines = {}
    for name, (kind, options) in ours.items():
        network = task.trained(kind, student="mlp", **{"epochs": epochs, **options})
        error = relative_error(network(task.rows, silent=True).values, exact)
        lines[name] = error, network.trained.evaluations
    for rate in LEARNING_RATES:
        found, spent = by_recipe(task, rate, len(task.training) * per_epoch * epochs)
        lines[f"FastSHAP, authors' recipe, {rate:g}"] = relative_error(found, exact), spent
    return pd.DataFrame(lines, index=["error", "evaluations"]).T


def by_recipe(task: Task, learning_rate: float, n_evaluations: int) -> tuple[FloatArray, int]:
    """Train the authors' network, which sees columns of mean 0 and spread 1; explain the rows."""
    features, predict = task.options.get("features", np.asarray), task.model.predict
    inputs = np.asarray(features(task.training), dtype=np.float64)
    scaler = StandardScaler().fit(inputs)

    def read(some: Any) -> torch.Tensor:
        return torch.as_tensor(scaler.transform(features(some)), dtype=torch.float32)

    sizes = [len(group) for group in task.options["groups"].values()]
    player_of_column = np.repeat(np.arange(len(sizes)), sizes)
    recipe = train_recipe(
        ModelGame(predict, task.training, task.reference, player_of_column), read(task.training),
        lambda: table_network(inputs.shape[1], len(sizes)),
        learning_rate=learning_rate, n_evaluations=n_evaluations, seed=0,
    )  # fmt: skip
    rises = predict(task.rows) - predict(task.reference)
    return recipe.explain(read(task.rows), rises.reshape(-1)), recipe.evaluations


def students(task: Task, epochs: int) -> pd.DataFrame:
    """Return errors and costs of students of the same labels, beside `oddgp` row by row."""
    n_players, exact, lines = task.rows.shape[1], task.exact(task.rows), {}
    oddgp = task.oddgp()
    calls = [partial(oddgp, max_evals=round(per * n_players), silent=True) for per in _PER_PLAYER]
    errors = np.array([relative_error(call(task.rows).values, exact) for call in calls])
    paces = np.array([pace(call, task.training) for call in calls])
    order = np.argsort(errors)

    def of_oddgp(reached: float, costs: Any) -> float:
        """Return what `oddgp` costs for a row with an error; NaN below its errors."""
        logs = np.log(reached), np.log(errors[order]), np.log(np.asarray(costs)[order])
        return float(np.exp(np.interp(*logs))) if reached >= errors[order[0]] else np.nan

    for student in STUDENTS:
        network, seconds = seconds_of(partial(task.trained, student=student, epochs=epochs))
        reached = relative_error(network(task.rows, silent=True).values, exact)
        own = pace(partial(network, silent=True), task.training)
        evaluations = of_oddgp(reached, np.array(_PER_PLAYER) * n_players)
        saved = np.array([evaluations - 1, of_oddgp(reached, paces) - own])
        spent = np.array([network.trained.evaluations, seconds])
        rows = np.where(saved > 0, spent / saved, np.nan)
        lines[student] = {
            "error": reached, "rows, evaluations": rows[0], "rows, time": rows[1],
        }  # fmt: skip
    return pd.DataFrame(lines).T


def intervals(task: Task, epochs: int) -> pd.DataFrame:
    """Return what intervals hold of a network alone, and errors of the refined one."""
    network = task.trained(student="mlp", epochs=epochs)
    rng, spread = np.random.default_rng(1), task.training.std(axis=0)
    moved = task.rows.copy()
    moved[:, np.flatnonzero(spread)[:3]] += 3 * spread[np.flatnonzero(spread)[:3]]
    shifts = {
        "like the training rows": task.rows,
        "three columns moved by 3 standard deviations": moved,
        "noise of one standard deviation": task.rows + rng.normal(size=task.rows.shape) * spread,
    }
    lines = {}
    for name, rows in shifts.items():
        exact = task.exact(rows)
        explained = network(rows, error_bounds=True, silent=True)
        line = {"error": relative_error(explained.values, exact)}
        for confidence in (0.95, 0.68):
            lower, upper = (one[:, :, 0] for one in network.last_estimate.interval(confidence))
            line[f"in {confidence:.0%}"] = ((lower <= exact) & (exact <= upper)).mean()
        for per in _REFINED:
            budget = max(4, int(per * rows.shape[1]))
            refined, alone = (
                relative_error(one(rows, max_evals=budget, silent=True).values, exact)
                for one in (network, task.oddgp())
            )
            line[f"refined by {per:g}"] = refined / alone
        lines[name] = line
    return pd.DataFrame(lines).T


def table_of_labels(found: dict[str, pd.DataFrame]) -> str:
    """Return the errors of networks, the least of each model in bold."""
    errors = pd.DataFrame({name: table["error"] for name, table in found.items()})
    errors = errors.sort_values(errors.columns[-1], ascending=False)
    errors.index = errors.index.str.replace("oddgp", "`oddgp`")
    return pages.table(["", *errors], pages.bold_least(errors, 3).itertuples())


def table_of_students(found: dict[str, pd.DataFrame]) -> str:
    """Return errors, the least in bold; and thousands of rows from which on students pay."""
    errors = pd.DataFrame({name: table["error"] for name, table in found.items()})
    texts = pages.bold_least(errors, 3)
    for name, table in found.items():
        pays = (table[["rows, evaluations", "rows, time"]] / 1000).map(pages.short)
        joined = "; " + pays.agg(" / ".join, axis=1)
        texts[name] += joined.where(pays.ne("").any(axis=1), "")
    texts = texts.T[list(STUDENTS)]
    return pages.table(["", *(f'`"{student}"`' for student in texts)], texts.itertuples())


def table_of_intervals(found: dict[str, pd.DataFrame]) -> str:
    """Return per cent of values in 95 and 68 % intervals, the least honest rows first."""
    shares = {name: (100 * table).round().fillna(0).astype(int) for name, table in found.items()}
    wide = pd.DataFrame({name: share["in 95%"] for name, share in shares.items()})
    order = wide.mean(axis=1).sort_values().index
    narrow = pd.DataFrame({name: share["in 68%"] for name, share in shares.items()}).loc[order]
    texts = wide.loc[order].astype(str)
    # Far too narrow ones are in bold.
    texts = texts.mask(wide <= _FAR_TOO_NARROW, "**" + texts + "**") + " / " + narrow.astype(str)
    first, *others = texts
    return pages.table(["rows", f"{first}: 95 % / 68 %", *others], texts.itertuples())


PARTS: dict[str, tuple[Callable[[Task, int], pd.DataFrame], Callable[..., str]]] = {
    "labels": (labels, table_of_labels),
    "students": (students, table_of_students),
    "intervals": (intervals, table_of_intervals),
}


def main() -> None:
    """Print a table for each model, and those of the page."""
    options = pages.read_options(__doc__, parts=list(PARTS), **FOLDERS)
    n_rows, epochs = (200, 3) if options.quick else (1000, 30)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    for part in options.parts:
        measure, shaped = PARTS[part]
        tasks = {
            "labels": (table_task(case, options) for case in CASES),
            "students": fitted_tasks(n_rows, ()),
            "intervals": fitted_tasks(None, WITH_INTERVALS),
        }[part]
        found = {}
        for task in [next(tasks)] if options.quick else tasks:
            table = measure(task, epochs).sort_values("error", ascending=False)
            print(
                f"\n{task.name}: {len(task.training)} training rows\n{table.round(3).to_string()}"
            )
            found[task.name] = table
        pages.report(options, f"networks-{part}", shaped(found))


if __name__ == "__main__":
    main()

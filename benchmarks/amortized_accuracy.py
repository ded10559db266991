"""How far networks that explain are from the exact values, by what their training spent.

    python benchmarks/amortized_accuracy.py [--model table] [--rows 1000] [--epochs 30]
        [--only WORD …] [--quick]

On Adult (13 players), companies (94) and articles of a news site (57), as trees and as networks.
FastSHAP takes part twice: as ours, and as its authors train it (`fastshap_recipe.py`). Contenders
without a share in their name spend the same number of evaluations, validation included, except the
one with all defaults. Then come estimators that explain row by row, over budgets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import shap
import torch
from adult import training_rows
from cases import prepare
from coalition_games import FloatArray, ModelGame
from data_files import add_folder_arguments
from explained_models import Case, ExplainedModel
from fastshap_recipe import LEARNING_RATES, table_network, train_recipe
from scipy.stats import norm
from tables import companies, news

import shap_ext
from shap_ext.explainers.amortized_explainer import AmortizedExplainer

TEST_ROWS = {
    "adult-elu": 400, "adult-relu": 400, "table": 64, "table-net": 40, "news": 200, "news-net": 40,
}  # fmt: skip
"""Models, and how many rows are judged."""

FASTSHAP = "FastSHAP"
_PER_PLAYER = (3, 4, 6, 8, 16, 32)
_MANY = 4096
"""Rows of which the time of a pass is measured."""

_DEFAULT_EPOCHS = 100
"""Of our trainings; those with labels evaluate as much in 30."""

_QUICK = {"rows": 300, "test_rows": 8, "epochs": 3}


@dataclass(frozen=True)
class Amortized:
    """What networks are trained and judged on.

    Attributes
    ----------
    case : Case
        The model, the test rows and their values.
    rows : array, (R, D)
        Rows to train on.
    features : callable, optional
        Rows to what networks see of them.
    """

    case: Case
    rows: npt.NDArray[Any]
    features: Callable[[Any], npt.NDArray[Any]] | None


@dataclass(frozen=True)
class Learned:
    """A trained network.

    Attributes
    ----------
    explain, stream : callable
        Attributions of the test rows, and of many training rows by the network alone.
    evaluations, validation_evaluations : int
        All evaluations of the training, and those of them that validation took.
    """

    explain: Callable[[], FloatArray]
    stream: Callable[[], object]
    evaluations: int
    validation_evaluations: int


Trainer = Callable[[Amortized, int], Learned]
"""A case and a seed to a trained network."""


@dataclass(frozen=True)
class Line:
    """Errors and costs of a network; seconds are of its training, and for a row."""

    name: str
    seed: int
    l1: float
    l2: float
    evaluations: int
    validation_evaluations: int
    training_seconds: float
    seconds: float


def main() -> None:
    """Train all contenders, and print their errors beside those of estimators row by row."""
    arguments = _arguments()
    torch.set_num_threads(1)
    amortized = _prepared(arguments)
    case = amortized.case
    exact = case.shapley.values
    size = float(np.abs(exact).sum(axis=1).mean())
    print(
        f"{case.title}: {case.explained.n_players} players, {len(amortized.rows)} training rows, "
        f"{len(exact)} test rows ({case.shapley.source}), {arguments.epochs} epochs, one thread.\n"
        f"l1, l2: mean over test rows of Σ|φ̂ − φ| and of √Σ(φ̂ − φ)². Mean Σ|φ|: {size:.2f}; "
        "relative: l1 divided by it.\n"
        "evaluations: all of them, and how many validation took. seconds: of the processor."
    )
    if case.shapley.absolute_error > 0:
        print(f"The values themselves are known to a Σ of {case.shapley.absolute_error:.3f}.")
    trainers = {
        name: train
        for name, train in _contenders(amortized, arguments.epochs).items()
        if not arguments.only or any(word in name for word in arguments.only)
    }
    lines = [
        _line(name, train, amortized, seed)
        for seed in arguments.seeds
        for name, train in trainers.items()
    ]
    _print_lines(lines, size)
    if arguments.networks_only:
        return
    print(f"\n{'one row after the other':42}{'evaluations':>13}{'relative':>9}{'µs a row':>10}")
    for name, explain in (("oddgp, equal weights", _by_oddgp), ("shap permutation", _by_shap)):
        explain(case.explained, 4 * case.explained.n_players)  # what the first call compiles
        for per_player in _PER_PLAYER[: 2 if arguments.quick else None]:
            budget = per_player * case.explained.n_players + 2
            started = time.perf_counter()
            values = explain(case.explained, budget)
            pace = 1e6 * (time.perf_counter() - started) / len(exact)
            error = _errors(values, exact)[0] / size
            print(f"{name:42}{budget:13,}{error:9.3f}{pace:10.0f}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=tuple(TEST_ROWS), default="adult-elu")
    add_folder_arguments(parser)
    parser.add_argument("--rows", type=int, help="training rows; 8000 of Adult, else all")
    parser.add_argument("--test-rows", type=int)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of training")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="contenders by parts of names")
    parser.add_argument("--networks-only", action="store_true", help="no estimators row by row")
    parser.add_argument("--quick", action="store_true", help="few rows and epochs, to try it out")
    arguments = parser.parse_args()
    if arguments.quick:
        vars(arguments).update(_QUICK)
    if arguments.rows is None and arguments.model.startswith("adult"):
        arguments.rows = 8000
    return arguments


def _prepared(arguments: argparse.Namespace) -> Amortized:
    name = arguments.model
    n_test = arguments.test_rows or TEST_ROWS[name]
    case = prepare(name, arguments.data, arguments.cache, n_test)
    features = None
    if name.startswith("adult"):
        rows = training_rows(arguments.data)
    else:
        table = (news if name.startswith("news") else companies)(arguments.data)
        rows = table.training_scores if name.endswith("net") else table.training
        features = None if name.endswith("net") else NormalScores(rows)
    return Amortized(case, rows[: arguments.rows], features)


class NormalScores:
    """Normal scores of ranks: trees see no more, and networks cannot learn from heavy tails.

    Interpolated between 200 quantiles, in a few microseconds a row.
    """

    def __init__(self, rows: npt.NDArray[Any]) -> None:
        at = np.linspace(0, 1, 200)
        of_ranks = np.clip(norm.ppf(at), -3, 3)
        self.knots = []
        for quantiles in np.quantile(rows, at, axis=0).T:  # equal ones have their mean score
            different, place = np.unique(quantiles, return_inverse=True)
            self.knots.append((different, np.bincount(place, of_ranks) / np.bincount(place)))

    def __call__(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return the scores, at most 3 in size."""
        scores = np.empty(rows.shape, dtype=np.float32)
        for column, (quantiles, of_ranks) in enumerate(self.knots):
            scores[:, column] = np.interp(rows[:, column], quantiles, of_ranks)
        return scores


def _contenders(amortized: Amortized, epochs: int) -> dict[str, Trainer]:
    """Return the contenders by their names; all are dense layers."""
    least = 2 * amortized.case.explained.n_players + 4
    # 32, or as many as make a tenth of all enough for least squares.
    per_epoch = max(32, -(-10 * least // epochs))
    tenth = {"evaluations": per_epoch * epochs // 10}
    sim = shap_ext.SimShapExplainer
    ours: dict[str, tuple[type[AmortizedExplainer], dict[str, Any]]] = {
        FASTSHAP: (shap_ext.FastShapExplainer, {"evaluations": per_epoch}),
        "SimSHAP, oddgp labels, mixed rows": (
            sim,
            tenth | {"n_mixed_rows": 8 * len(amortized.rows)},
        ),
        "SimSHAP, oddgp labels, 1/10": (sim, tenth),
        "SimSHAP, all defaults": (sim, {"epochs": _DEFAULT_EPOCHS}),
    }
    n_evaluations = len(amortized.rows) * per_epoch * epochs
    theirs: dict[str, Trainer] = {
        f"{FASTSHAP}, authors' recipe, {rate:g}": partial(
            _by_recipe, learning_rate=rate, n_evaluations=n_evaluations
        )
        for rate in LEARNING_RATES
    }
    return theirs | {
        name: partial(_by_ours, kind=kind, options={"epochs": epochs} | options)
        for name, (kind, options) in ours.items()
    }


def _by_ours(
    amortized: Amortized, seed: int, *, kind: type[AmortizedExplainer], options: dict[str, Any]
) -> Learned:
    explained = amortized.case.explained
    explainer = kind(
        explained.model,
        explained.reference,
        feature_names=explained.column_names,
        groups=explained.groups,
        training_data=amortized.rows,
        features=amortized.features,
        student="mlp",
        seed=seed,
        **options,
    ).fit(silent=True)
    return Learned(
        lambda: explainer(explained.rows, silent=True).values,
        lambda: explainer.stream(amortized.rows[:_MANY], silent=True),
        explainer.trained.evaluations,
        explainer.trained.validation_evaluations,
    )


def _by_recipe(
    amortized: Amortized, seed: int, *, learning_rate: float, n_evaluations: int
) -> Learned:
    """Train the authors' network, which sees columns of mean 0 and spread 1."""
    explained, rows = amortized.case.explained, amortized.rows
    features = amortized.features or np.asarray
    inputs = np.asarray(features(rows), dtype=np.float64)
    centre, spread = inputs.mean(axis=0), inputs.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)

    def read(some: Any) -> torch.Tensor:
        scaled = (np.asarray(features(some), dtype=np.float64) - centre) / np.where(
            spread > 0, spread, 1.0
        )
        return torch.as_tensor(scaled, dtype=torch.float32)

    predict = explained.model.predict
    recipe = train_recipe(
        ModelGame(predict, rows, explained.reference, explained.player_of_column), read(rows),
        lambda: table_network(inputs.shape[1], explained.n_players),
        learning_rate=learning_rate, n_evaluations=n_evaluations, seed=seed,
    )  # fmt: skip

    def explain() -> FloatArray:
        rises = predict(explained.rows) - predict(explained.reference)
        return recipe.explain(read(explained.rows), rises.reshape(-1))

    return Learned(
        explain,
        lambda: recipe.network(read(rows[:_MANY])),
        recipe.evaluations,
        recipe.validation_evaluations,
    )


def _line(name: str, train: Trainer, amortized: Amortized, seed: int) -> Line:
    """Train a contender, and measure its errors on the test rows, and its times."""
    started = time.process_time()
    learned = train(amortized, seed)
    seconds = time.process_time() - started
    times = []
    for _ in range(7):
        started = time.perf_counter()
        learned.stream()
        times.append(time.perf_counter() - started)
    return Line(
        name,
        seed,
        *_errors(learned.explain(), amortized.case.shapley.values),
        learned.evaluations,
        learned.validation_evaluations,
        seconds,
        float(np.median(times)) / min(len(amortized.rows), _MANY),
    )


def _errors(values: FloatArray, exact: FloatArray) -> tuple[float, float]:
    gap = values - exact
    return float(np.abs(gap).sum(axis=1).mean()), float(np.sqrt((gap**2).sum(axis=1)).mean())


def _print_lines(lines: list[Line], size: float) -> None:
    """Print costs and errors of all trainings, and errors over that of the best FastSHAP."""
    print(
        f"\n{'contender':42}{'seed':>5}{'l1':>8}{'relative':>9}{'over best FastSHAP':>19}{'l2':>8}"
        f"{'evaluations':>13}{'validation':>12}{'seconds':>9}{'µs a row':>10}"
    )
    for one in sorted(lines, key=lambda one: -one.l1):
        rivals = [rival.l1 for rival in lines if rival.name.startswith(FASTSHAP)
                  and rival.seed == one.seed]  # fmt: skip
        print(
            f"{one.name:42}{one.seed:5d}{one.l1:8.3f}{one.l1 / size:9.3f}"
            f"{one.l1 / min(rivals, default=np.nan):19.2f}{one.l2:8.3f}{one.evaluations:13,}"
            f"{one.validation_evaluations:12,}{one.training_seconds:9.1f}{one.seconds * 1e6:10.1f}"
        )


def _by_oddgp(explained: ExplainedModel, budget: int) -> FloatArray:
    explainer = explained.explainer("oddgp", 0, weights="equal")
    values: FloatArray = explainer(explained.rows, max_evals=budget, silent=True).values
    return values


def _by_shap(explained: ExplainedModel, budget: int) -> FloatArray:
    """Explain by shap's permutations, which know no groups: of a table of row numbers."""
    numbers = np.arange(1.0, len(explained.rows) + 1)[:, None]
    table = np.tile(numbers, (1, explained.n_players))

    def model(x: FloatArray) -> FloatArray:
        present = x > 0
        row = np.maximum(x.max(axis=1).astype(int) - 1, 0)
        columns = present[:, explained.player_of_column]
        masked = np.where(columns, explained.rows[row], explained.reference)
        values: FloatArray = explained.model.predict(masked).reshape(len(x), -1)[:, 0]
        return values

    masker = shap.maskers.Independent(np.zeros((1, explained.n_players)))
    explainer = shap.PermutationExplainer(model, masker, seed=0)
    values = explainer(table, max_evals=budget, silent=True).values
    return np.asarray(values, dtype=np.float64)


if __name__ == "__main__":
    main()

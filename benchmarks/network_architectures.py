"""What limits networks that explain: errors of architectures on the same rows and labels.

    python benchmarks/network_architectures.py [--only WORD …] [--mixed 0]

Each contender learns the same labels, by `oddgp` with equal weights, of 8 evaluations per feature
of each training row. The first four models need no data; the last two, boosted trees with 57 and
94 features, are those of `amortized_accuracy.py`. With `--mixed 9`, there are nine mixed rows for
each training row.
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
from network_contenders import BoostedLabels, LittleDecay, Transformer
from refined_networks import Task, tasks, truth
from tables import Table, companies, news
from tree_models import table_trees

import shap_ext

_TEST_ROWS = 60


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

    @property
    def inputs(self) -> Callable[[FloatArray], npt.NDArray[Any]]:
        """What makes the inputs of rows."""
        return self.features or np.asarray


@dataclass(frozen=True)
class Contender:
    """A network or another regression, by name."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


def main() -> None:
    """Print the errors of all contenders on all models."""
    arguments = _arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    print(f"{'':32}{'error':>8}{'over mlp':>10}{'fit, s':>8}{'a row, µs':>11}")
    for case in _cases(arguments):
        _report(case, arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="words of the names of models")
    parser.add_argument("--contenders", nargs="*", help="their names")
    parser.add_argument("--mixed", type=int, default=0, help="mixed rows per training row")
    parser.add_argument("--epochs", type=int, default=30)
    add_folder_arguments(parser)
    return parser.parse_args()


def _cases(arguments: argparse.Namespace) -> Iterator[Case]:
    def is_wanted(name: str) -> bool:
        return not arguments.only or any(word in name for word in arguments.only)

    for task in tasks():
        if is_wanted(task.name):
            reference = task.training.mean(axis=0, keepdims=True)
            rows = Task(task.name, task.model, task.training, task.rows[:_TEST_ROWS])
            yield Case(rows, reference, truth(task.model, reference, rows.rows))
    tables: tuple[tuple[str, Callable[[Path], Table]], ...] = (
        ("news, boosted trees, 57", news),
        ("companies, boosted trees, 94", companies),
    )
    for name, read in tables:
        if is_wanted(name):
            yield _of_table(name, read(arguments.data))


def _of_table(name: str, table: Table) -> Case:
    explained, shapley = table_trees(table, _TEST_ROWS)
    task = Task(name, explained.model.predict, table.training, explained.rows)
    return Case(task, explained.reference, shapley.values, NormalScores(table.training))


def _contenders(n_inputs: int) -> list[Contender]:
    transformer = partial(Transformer, n_inputs)
    less_decay = partial(LittleDecay, (n_inputs,), n_inputs, 1)
    return [
        Contender("mlp", {"network": "mlp"}),
        Contender("mlp, three of 512", {"network_options": {"widths": (512,) * 3}}),
        Contender("attention over features", {"network": transformer}),
        Contender("embeddings", {"network": "embeddings"}),
        Contender(
            "embeddings, 9 knots", {"network": "embeddings", "network_options": {"knots": 9}}
        ),
        Contender("embeddings, less weight decay", {"network": less_decay}),
        Contender("trees on labels"),
    ]


def _report(case: Case, arguments: argparse.Namespace) -> None:
    task = case.task
    size = np.abs(case.values).sum(axis=1).mean()
    print(f"\n{task.name}: {len(task.training)} training rows, mean Σ|φ| {size:.2f}")
    of_mlp = np.nan
    for contender in _contenders(task.rows.shape[1]):
        if arguments.contenders and contender.name not in arguments.contenders:
            continue
        started = time.process_time()
        explain, pace = _fitted(contender, case, arguments)
        seconds = time.process_time() - started
        error = float(np.abs(explain(task.rows) - case.values).sum(axis=1).mean())
        of_mlp = error if contender.name == "mlp" else of_mlp
        print(
            f"{contender.name:32}{error / size:8.3f}{error / of_mlp:10.2f}{seconds:8.0f}"
            f"{pace() * 1e6:11.0f}",
            flush=True,
        )


def _fitted(
    contender: Contender, case: Case, arguments: argparse.Namespace
) -> tuple[Callable[[FloatArray], FloatArray], Callable[[], float]]:
    """Return what explains rows, and what times it."""
    task = case.task
    many = np.resize(task.training, (2048, task.training.shape[1]))
    if not contender.options:
        boosted = BoostedLabels(task.model, case.reference, case.inputs)
        boosted.fit(task.training, arguments.mixed * len(task.training))
        return boosted.explain, lambda: _seconds(lambda: boosted.predicted(many)) / len(many)
    options = dict(contender.options)
    if callable(options.get("network")):
        torch.manual_seed(0)
        options["network"] = options["network"]()
    explainer = shap_ext.SimShapExplainer(
        task.model,
        case.reference,
        training_data=task.training,
        n_mixed_rows=arguments.mixed * len(task.training),
        features=case.features,
        seed=0,
        **({"epochs": arguments.epochs} | options),
    ).fit(silent=True)

    def explain(rows: FloatArray) -> FloatArray:
        values: FloatArray = explainer(rows, silent=True).values
        return values

    return explain, lambda: _seconds(lambda: explainer.stream(many, silent=True)) / len(many)


def _seconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


if __name__ == "__main__":
    main()

"""What a graph of the players adds to `oddgp`: molecules, digits and texts, losing cells first.

    python benchmarks/near_players.py [--quick] [--tasks molecules digits texts]

Errors are root mean squares over the players, over the spread of their Shapley values, which a
regression over 2,000 evaluations a player gives; the variance of these is taken off. Ratios are
geometric means over the inputs. Curves are the mean log-odds that the predicted class loses while
the players of the largest attributions are taken away, up to half of them, beside L- and C-Shapley
and Myerson values at equal evaluations.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import shap
import torch
from coalition_games import FloatArray
from data_files import add_folder_arguments
from large_games import LargeGame, converged
from neighbour_contenders import log_odds
from neighbour_models import Item, build
from torch import nn

from shap_ext import PlayerGraph

sys.path.append(str(Path(__file__).resolve().parents[1] / "docs" / "examples"))
import molecules

BUDGETS = (2, 4, 8, 16)
_TEXTS = {"AG's News": "ag_news", "Yahoo! Answers": "yahoo"}
_MOST_WORDS = 60
_SQUARE = 4
_OF_CURVES = 8
_METHODS = {
    "`oddgp`": ("oddgp", False),
    "`oddgp`, graph": ("oddgp", True),
    "L-Shapley": ("lshapley", True),
    "C-Shapley": ("cshapley", True),
    "Myerson": ("myerson", True),
}
"""Algorithms, and whether they get the graph."""


@dataclass(frozen=True)
class Task:
    """A game, and the graph of its players."""

    values: Callable[[Any], FloatArray]
    graph: PlayerGraph

    @property
    def n_players(self) -> int:
        """M."""
        return self.graph.n_players

    def explain(self, algorithm: str, budget: int, seed: int, has_graph: bool) -> Any:
        """Return the estimate of an algorithm of ours."""
        background, row = np.zeros((1, self.n_players)), np.ones((1, self.n_players))
        given: dict[str, Any] = {"graph": self.graph} if has_graph else {}
        explainer = shap.Explainer(self.values, background, algorithm=algorithm, seed=seed, **given)
        explainer(row, max_evals=budget, silent=True)
        return explainer.last_estimate


def main() -> None:
    """Measure all tasks and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_folder_arguments(parser)
    parser.add_argument("--tasks", nargs="+", default=["molecules", "digits", "texts"])
    parser.add_argument("--inputs", type=int, default=12, help="of each task")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="2 inputs")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.inputs = 2
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # small budgets
    cells, curves = [], {}
    for kind in arguments.tasks:
        for name, tasks in _TASKS[kind](arguments):
            started = time.perf_counter()
            truths = [converged(task.values, task.n_players) for task in tasks]
            cells += [
                {"task": name, "evaluations": each, **_errors(task, truth, each, arguments.seed)}
                for each in BUDGETS
                for task, truth in zip(tasks, truths, strict=True)
            ]
            curves[name] = _curves(tasks, arguments.seed)
            print(f"{name}: {len(tasks)} inputs, {time.perf_counter() - started:.0f} s", flush=True)
    _print_errors(pd.DataFrame(cells))
    print(f"\nFall of the log-odds at {_OF_CURVES} evaluations a player, larger is better\n")
    print(pd.DataFrame(curves).T.round(2).to_string())


def _errors(task: Task, truth: LargeGame, per_player: int, seed: int) -> dict[str, float]:
    """Return squared errors and times without and with the graph, and what its intervals hold."""
    exact, own_errors, found = truth.exact, truth.standard_errors, {}
    spread, own = ((exact - exact.mean()) ** 2).sum(), (own_errors**2).sum()
    for name, has_graph in (("without", False), ("with", True)):
        started = time.process_time()
        estimate = task.explain("oddgp", per_player * task.n_players, seed, has_graph)
        found[f"seconds {name}"] = time.process_time() - started
        square = ((estimate.values[0, :, 0] - exact) ** 2).sum() - own
        found[f"square {name}"] = max(square, own) / spread
    lower, upper = (ends[0, :, 0] for ends in estimate.interval())
    slack = 2 * own_errors
    found["inside"] = float(((lower - slack <= exact) & (exact <= upper + slack)).mean())
    found["log ratio"] = float(np.log(found["square with"] / found["square without"]) / 2)
    return found


def _curves(tasks: list[Task], seed: int) -> dict[str, float]:
    """Return the mean fall of the log-odds of each method."""
    falls: dict[str, list[float]] = {name: [] for name in _METHODS}
    for task in tasks:
        for name, (algorithm, has_graph) in _METHODS.items():
            estimate = task.explain(algorithm, _OF_CURVES * task.n_players, seed, has_graph)
            ranks = np.argsort(np.argsort(-estimate.values[0, :, 0], kind="stable"))
            n_taken = np.arange(task.n_players // 2 + 1)
            values = task.values(ranks >= n_taken[:, None])
            falls[name].append(float((values[0] - values[1:]).mean()))
    return {name: float(np.mean(of_tasks)) for name, of_tasks in falls.items()}


def _print_errors(cells: pd.DataFrame) -> None:
    """Print the cells, those with the largest ratio first."""
    groups = cells.groupby(["task", "evaluations"])
    means = groups.mean()
    shown = pd.DataFrame(
        {
            "error": np.sqrt(means["square without"]),
            "with the graph": np.sqrt(means["square with"]),
            "ratio": np.exp(means["log ratio"]),
            "±": groups["log ratio"].sem(),
            "intervals": means["inside"],
            "time": means["seconds with"] / means["seconds without"],
        }
    )
    print(f"\n{shown.sort_values('ratio', ascending=False).round(3).to_string()}")


# --- tasks ---


def _of_item(model: nn.Module, item: Item, graph: PlayerGraph) -> Task:
    """Return the game of an input."""
    with torch.no_grad():
        predicted = int(model(item.inputs).argmax())
    return Task(lambda present: log_odds(model, item, present > 0.5, predicted), graph)


def _texts(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Task]]]:
    for name, key in _TEXTS.items():
        case = build(key, arguments.data, arguments.cache, 200)
        items = [item for item in case.items if 20 <= item.n_players <= _MOST_WORDS]
        yield (
            name,
            [
                _of_item(case.model, item, PlayerGraph.line(item.n_players))
                for item in items[: arguments.inputs]
            ],
        )


def _digits(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Task]]]:
    case = build("mnist", arguments.data, arguments.cache, arguments.inputs)
    side = case.items[0].shape[0]
    squares = torch.arange(side) // _SQUARE
    players = (squares[:, None] * (side // _SQUARE) + squares).reshape(-1)
    graph = PlayerGraph.grid((side // _SQUARE, side // _SQUARE))
    items = [
        replace(item, mask=players[item.mask], n_players=graph.n_players) for item in case.items
    ]
    yield "digits", [_of_item(case.model, item, graph) for item in items]


def _molecules(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Task]]]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        all_molecules = molecules.from_mutag(arguments.data / "mutag" / "mutag.npz")
        order = np.random.default_rng(3).permutation(len(all_molecules)).tolist()
        network = molecules.train([all_molecules[place] for place in order[40:]])
    held_out = [all_molecules[place] for place in order[:40]]
    held_out = [one for one in held_out if 14 <= len(one.elements) <= 24]
    yield "molecules", [_of_molecule(network, one) for one in held_out[: arguments.inputs]]


def _of_molecule(network: nn.Module, molecule: molecules.Molecule) -> Task:
    n_atoms = len(molecule.elements)
    sign = 1.0 if float(network(*molecules.together([molecule]))) > 0 else -1.0

    def values(present: Any) -> FloatArray:
        atoms = molecule.atoms[None] * torch.from_numpy(present > 0.5).float()[:, :, None]
        starts = n_atoms * torch.arange(len(present))
        bonds = (molecule.edge_index[:, None] + starts[:, None]).reshape(2, -1)
        numbers = torch.arange(len(present)).repeat_interleave(n_atoms)
        logits = network(atoms.reshape(-1, atoms.shape[2]), bonds, numbers)
        found: FloatArray = sign * logits.double().numpy()
        return found

    edges = molecule.edge_index.numpy().T
    return Task(values, PlayerGraph.from_edges(n_atoms, edges))


_TASKS = {"molecules": _molecules, "digits": _digits, "texts": _texts}

if __name__ == "__main__":
    main()

"""What a graph of the players adds to `oddgp`: molecules, digits and texts, losing cells first.

    python benchmarks/near_players.py [--quick] [--tasks molecules digits texts]

Errors are root mean squares over the players, over the spread of their Shapley values, which 400
random orders and their reverses give; the variance of these is taken off. Ratios are geometric
means over the inputs. Curves are the mean log-odds that the predicted class loses while the players
of the largest attributions are taken away, up to half of them, beside L- and C-Shapley and Myerson
values at equal evaluations.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shap
import torch
from coalition_games import FloatArray, IntArray
from data_files import add_folder_arguments
from neighbour_models import Item, build
from torch import Tensor, nn

from shap_ext import PlayerGraph

sys.path.append(str(Path(__file__).resolve().parents[1] / "docs" / "examples"))
import molecules

BUDGETS = (2, 4, 8, 16)
_TEXTS = {"AG's News": "ag_news", "Yahoo! Answers": "yahoo", "IMDB": "imdb"}
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

    name: str
    values: Callable[[FloatArray], FloatArray]
    graph: PlayerGraph

    @property
    def n_players(self) -> int:
        """M."""
        return self.graph.n_players


def main() -> None:
    """Measure all tasks and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_folder_arguments(parser)
    parser.add_argument("--tasks", nargs="+", default=["molecules", "digits", "texts"])
    parser.add_argument("--inputs", type=int, default=12, help="of each task")
    parser.add_argument("--orders", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="2 inputs, 100 orders")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.inputs, arguments.orders = 2, 100
    torch.set_num_threads(1)
    errors, curves = [], []
    for kind in arguments.tasks:
        for name, tasks in _TASKS[kind](arguments):
            started = time.perf_counter()
            truths = [by_orders(task, arguments.orders) for task in tasks]
            for per_player in BUDGETS:
                measured = [
                    _errors(task, truth, per_player, arguments.seed)
                    for task, truth in zip(tasks, truths, strict=True)
                ]
                errors.append((name, per_player, np.array(measured)))
            curves.append((name, _curves(tasks, arguments.seed)))
            print(f"{name}: {len(tasks)} inputs, {time.perf_counter() - started:.0f} s", flush=True)
    _print_errors(errors)
    _print_curves(curves)


def by_orders(task: Task, n_orders: int) -> tuple[FloatArray, FloatArray]:
    """Return Shapley values and their standard errors, from orders and their reverses."""
    rng, found = np.random.default_rng(1), []
    for _ in range(n_orders):
        order, halves = rng.permutation(task.n_players), []
        for one in (order, order[::-1]):
            present = np.zeros((task.n_players + 1, task.n_players))
            for place, player in enumerate(one):
                present[place + 1 :, player] = 1
            contributions = np.empty(task.n_players)
            contributions[one] = np.diff(task.values(present))
            halves.append(contributions)
        found.append(np.mean(halves, axis=0))
    return np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(n_orders)


def _explainer(task: Task, algorithm: str, seed: int, **options: Any) -> Any:
    background = np.zeros((1, task.n_players))
    return shap.Explainer(task.values, background, algorithm=algorithm, seed=seed, **options)


def _errors(
    task: Task, truth: tuple[FloatArray, FloatArray], per_player: int, seed: int
) -> list[float]:
    """Return the error without and with the graph, the time of both, and what intervals hold."""
    means, own_errors = truth
    found, seconds, inside = [], [], 0.0
    spread = ((means - means.mean()) ** 2).sum()
    options: list[dict[str, Any]] = [{}, {"graph": task.graph}]
    for given in options:
        explainer = _explainer(task, "oddgp", seed, **given)
        started = time.process_time()
        explainer(np.ones((1, task.n_players)), max_evals=per_player * task.n_players)
        seconds.append(time.process_time() - started)
        estimate = explainer.last_estimate
        square = ((estimate.values[0, :, 0] - means) ** 2).sum() - (own_errors**2).sum()
        found.append(float(np.sqrt(max(square, (own_errors**2).sum()) / spread)))
        lower, upper = (ends[0, :, 0] for ends in estimate.interval())
        slack = 2 * own_errors
        inside = float(((lower - slack <= means) & (means <= upper + slack)).mean())
    return [*found, *seconds, inside]


def _curves(tasks: list[Task], seed: int) -> dict[str, FloatArray]:
    """Return the mean fall of the log-odds of each method for each task, (tasks,)."""
    curves: dict[str, list[float]] = {}
    for task in tasks:
        for name, (algorithm, has_graph) in _METHODS.items():
            given: dict[str, Any] = {"graph": task.graph} if has_graph else {}
            explainer = _explainer(task, algorithm, seed, **given)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values = explainer(
                    np.ones((1, task.n_players)), max_evals=_OF_CURVES * task.n_players
                ).values[0]
            order = np.argsort(-values, kind="stable")[: task.n_players // 2]
            present = np.ones((len(order) + 1, task.n_players))
            for place, player in enumerate(order):
                present[place + 1 :, player] = 0
            falls = task.values(present)
            curves.setdefault(name, []).append(float((falls[0] - falls[1:]).mean()))
    return {name: np.array(falls) for name, falls in curves.items()}


def _print_errors(rows: list[tuple[str, int, FloatArray]]) -> None:
    """Print the cells, those with the largest ratio first."""
    lines = []
    for name, per_player, measured in rows:
        ratios = np.log(measured[:, 1] / measured[:, 0])
        spread = ratios.std(ddof=1) / np.sqrt(len(ratios))
        without, with_graph = np.sqrt((measured[:, :2] ** 2).mean(axis=0))
        times = measured[:, 2:4].sum(axis=0)
        lines.append(
            (
                np.exp(ratios.mean()),
                f"| {name} | {per_player} | {without:.3f} | {with_graph:.3f} "
                f"| {np.exp(ratios.mean()):.2f} ± {spread:.2f} | {measured[:, 4].mean():.2f} "
                f"| {times[1] / times[0]:.2f} |",
            )
        )
    print("\n| task | evaluations a player | error | with the graph | ratio | intervals | time |")
    print("|---|---|---|---|---|---|---|")
    for _, line in sorted(lines, key=lambda pair: -pair[0]):
        print(line)


def _print_curves(rows: list[tuple[str, dict[str, FloatArray]]]) -> None:
    print(f"\nFall of the log-odds at {_OF_CURVES} evaluations a player, larger is better\n")
    print("| task | " + " | ".join(_METHODS) + " |\n|---|" + "---|" * len(_METHODS))
    for name, curves in rows:
        print(f"| {name} | " + " | ".join(f"{curves[one].mean():.2f}" for one in _METHODS) + " |")


# --- tasks ---


def _log_odds(logits: Tensor, predicted: int) -> FloatArray:
    logs = logits.log_softmax(1)
    others = torch.cat([logs[:, :predicted], logs[:, predicted + 1 :]], 1).logsumexp(1)
    odds: FloatArray = (logs[:, predicted] - others).double().numpy()
    return odds


def _of_item(name: str, model: nn.Module, item: Item, players: IntArray) -> Task:
    """Return the game of an input; `players` are those of the item's own players."""
    own = torch.from_numpy(players)[item.mask[0]]
    with torch.no_grad():
        predicted = int(model(item.inputs).argmax())

    def values(present: FloatArray) -> FloatArray:
        found = []
        for part in np.array_split(present > 0.5, -(-len(present) // 256)):
            keeps = torch.from_numpy(part)[:, own.reshape(-1)].reshape(len(part), *own.shape)
            inputs = torch.where(keeps, item.inputs, item.baseline)
            with torch.no_grad():
                found.append(_log_odds(model(inputs), predicted))
        return np.concatenate(found)

    if len(item.shape) == 1:
        return Task(name, values, PlayerGraph.line(item.n_players))
    return Task(name, values, PlayerGraph.grid(tuple(side // _SQUARE for side in item.shape)))


def _texts(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Task]]]:
    for name, key in _TEXTS.items():
        case = build(key, arguments.data, arguments.cache, 200)
        items = [item for item in case.items if 20 <= item.n_players <= _MOST_WORDS]
        yield (
            name,
            [
                _of_item(name, case.model, item, np.arange(item.n_players))
                for item in items[: arguments.inputs]
            ],
        )


def _digits(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Task]]]:
    case = build("mnist", arguments.data, arguments.cache, arguments.inputs)
    side = case.items[0].shape[0]
    squares = np.arange(side) // _SQUARE
    players = (squares[:, None] * (side // _SQUARE) + squares).reshape(-1)
    yield "digits", [_of_item("digits", case.model, item, players) for item in case.items]


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

    def values(present: FloatArray) -> FloatArray:
        atoms = molecule.atoms[None] * torch.from_numpy(present).float()[:, :, None]
        starts = n_atoms * torch.arange(len(present))
        bonds = (molecule.edge_index[:, None] + starts[:, None]).reshape(2, -1)
        numbers = torch.arange(len(present)).repeat_interleave(n_atoms)
        logits = network(atoms.reshape(-1, atoms.shape[2]), bonds, numbers)
        found: FloatArray = sign * logits.double().numpy()
        return found

    edges = molecule.edge_index.numpy().T
    return Task("molecules", values, PlayerGraph.from_edges(n_atoms, edges))


_TASKS = {"molecules": _molecules, "digits": _digits, "texts": _texts}

if __name__ == "__main__":
    main()

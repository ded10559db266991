"""Time of designing and solving beside that of the model's evaluations, and of enumerating sets.

A design is made once for all inputs of one graph, and kept: the share is told for the first call
with one input, for the next, and for a first one with ten inputs. A last table has graphs of 1,000
nodes, most of which have too many connected sets or too large neighbourhoods to be enumerated.

    python benchmarks/neighbours_speed.py [--quick]

Needs no data: what a forward pass takes does not depend on what the weights were trained for.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import networkx as nx
import numpy as np
import torch
from neighbour_models import WordCNN, image_network
from torch import Tensor, nn

import captum_ext
from shapley_adapters import LShapley, Myerson, PlayerGraph, Settings, estimate
from shapley_adapters.estimators.graph.c_shapley import CShapley
from shapley_adapters.estimators.graph.c_shapley_regression import ConnectedRegression
from shapley_adapters.games.evaluation import rows_per_batch
from shapley_adapters.graphs.connected_sets import all_connected_sets
from shapley_adapters.pipeline.designs import design_cache


@dataclass(frozen=True)
class Task:
    """One model, one input and one method."""

    title: str
    model: nn.Module
    inputs: Tensor
    options: dict[str, Any]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round and a short text")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    n_rounds, n_words = (1, 100) if arguments.quick else (3, 500)
    print(
        f"{'':52}{'inputs':>8}{'call':>7}{'evaluations':>12}{'ours, ms':>10}{'model, ms':>11}"
        f"{'share':>8}{'in all':>8}"
    )
    for task in _tasks(n_words):
        for n_inputs, is_first in ((1, True), (1, False), (10, True)):
            _measure(task, n_inputs, is_first, n_rounds)
    print()
    _print_enumeration(n_rounds)
    print()
    _print_large_graphs(n_rounds)


def _tasks(n_words: int) -> list[Task]:
    generator = torch.Generator().manual_seed(0)
    text = torch.randint(1, 5000, (1, n_words), generator=generator)
    words = WordCNN(5000, 2).eval()
    digit = torch.rand(1, 1, 28, 28, generator=generator)
    digits = image_network((1, 28, 28), (8, 16)).eval()
    line, grid = f"line of {n_words} words", "grid of 28 x 28 pixels"
    regression = {"variant": "regression", "order": 4}
    return [
        Task(f"C-Shapley of order 4, {line}", words, text, {"order": 4}),
        Task(f"regression, runs up to 4, {line}", words, text, regression),
        Task(f"regression, squares up to 4, {grid}", digits, digit, regression),
        Task(
            f"regression, shapes up to 4, {grid}",
            digits,
            digit,
            {**regression, "shapes": "connected"},
        ),
    ]


def _measure(task: Task, n_inputs: int, is_first: bool, n_rounds: int) -> None:
    """Time design and solution, the plainest loop of forward passes, and the whole; print them."""
    spent: dict[str, list[float]] = {"ours": [], "model": [], "all": []}
    n_evaluations = 0
    inputs = task.inputs.repeat(n_inputs, *[1] * (task.inputs.dim() - 1))
    for _ in range(n_rounds):
        clock = _Clock()
        attribution = captum_ext.CShapley(task.model, **task.options)
        design_cache.clear()
        if not is_first:
            attribution.attribute(inputs, target=0)
        with clock.watching(CShapley, ConnectedRegression):
            started = time.perf_counter()
            attribution.attribute(inputs, target=0)
            spent["all"].append(time.perf_counter() - started)
        spent["ours"].append(clock.seconds)
        assert attribution.last_estimate is not None
        n_evaluations = int(attribution.last_estimate.evaluations[0])
        spent["model"].append(_forward_seconds(task, n_inputs * n_evaluations))
    ours, model, whole = (min(spent[name]) for name in ("ours", "model", "all"))
    call = "first" if is_first else "next"
    print(
        f"{task.title:52}{n_inputs:>8}{call:>7}{n_evaluations:>12}{1e3 * ours:>10.0f}"
        f"{1e3 * model:>11.0f}{ours / model:>8.1%}{whole / model:>8.2f}",
        flush=True,
    )


class _Clock:
    """Adds up the time in designs and solutions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def watching(self, *kinds: type) -> Any:
        """Return a context in which designs and solutions of these estimators are timed."""
        from contextlib import ExitStack
        from unittest.mock import patch

        stack = ExitStack()
        for kind in kinds:
            for phase in ("design", "solve"):
                stack.enter_context(patch.object(kind, phase, self._timed(getattr(kind, phase))))
        return stack

    def _timed(self, phase: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            started = time.perf_counter()
            made = phase(*args)
            self.seconds += time.perf_counter() - started
            return made

        return run


def _forward_seconds(task: Task, n_evaluations: int) -> float:
    """Return the time of as many forward passes in the batches that we make, without masking."""
    size = rows_per_batch(task.inputs[0].numel() * task.inputs.element_size())
    batch = task.inputs.repeat(size, *[1] * (task.inputs.dim() - 1))
    left, started = n_evaluations, time.perf_counter()
    with torch.no_grad():
        while left > 0:
            task.model(batch[: min(size, left)])
            left -= size
    return time.perf_counter() - started


def _print_enumeration(n_rounds: int) -> None:
    """Print the time for a connected set of up to four nodes on grids of growing size."""
    print(f"{'grid':>12}{'sets':>10}{'µs a set':>10}")
    for side in (14, 28, 56, 112, 224):
        grid = PlayerGraph.grid((side, side))
        grid.neighbours  # noqa: B018 # made once for each graph
        rounds = []
        for _ in range(n_rounds):
            started = time.perf_counter()
            count = sum(1 for _, sets in islice(all_connected_sets(grid, 4), 2000) for _ in sets)
            rounds.append((time.perf_counter() - started) / count)
        print(f"{side:>6} x {side:<3}{count:>10}{1e6 * np.min(rounds):>10.2f}")


class _Sums:
    """A game that costs next to nothing: what is timed is the design and its solution."""

    n_rows, n_players, evaluations_per_batch = 1, 1000, 1000

    def active_players(self) -> Any:
        return np.ones((1, self.n_players), dtype=bool)

    def __call__(self, rows: Any, coalitions: Any) -> Any:
        del rows
        return coalitions.sum(axis=1, keepdims=True) * 1.0


def _print_large_graphs(n_rounds: int) -> None:
    """Print the time of a first call and of the next, on graphs of 1,000 nodes."""
    hubs = nx.barabasi_albert_graph(1000, 3, seed=0)
    graphs = {
        "path": PlayerGraph.line(1000),
        "grid of 25 x 40": PlayerGraph.grid((25, 40)),
        "hubs (Barabási–Albert)": PlayerGraph.from_networkx(hubs, range(1000)),
    }
    print(f"{'1,000 nodes':44}{'order':>6}{'evaluations':>12}{'first, s':>10}{'next, s':>10}")
    for estimator in (LShapley(), CShapley(), Myerson()):
        for title, graph in graphs.items():
            settings = Settings(seed=0, graph=graph)
            seconds = []
            for _ in range(n_rounds):
                design_cache.clear()
                for _ in range(2):
                    started = time.process_time()
                    found = estimate(_Sums(), estimator, settings)
                    seconds.append(time.process_time() - started)
            method = f"{type(estimator).__name__}, {title}"
            order = found.orders[0] if found.orders[0] >= 0 else ""
            print(
                f"{method:44}{order:>6}{found.evaluations[0]:>12}{min(seconds[::2]):>10.2f}"
                f"{min(seconds[1::2]):>10.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

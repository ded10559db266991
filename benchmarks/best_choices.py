"""Whether `best` is as exact and as fast as the best fixed choice, losing cells first.

    python benchmarks/best_choices.py [--seed 0] [--features 8 13 20 30 60 200] [--outputs 1]
        [--speeds 1 5 50 1000 20000] [--milliseconds 0 1 10 100] [--each 0] [--rows 20] [--models 2]

Models are sums of waves of few features, whose weights and features are drawn from the seed; their
exact attributions are known by enumeration of each wave. An evaluation takes so many microseconds
of a clock that the model moves on, so that slow models cost nothing here; our own work takes the
seconds that it takes. With 0 milliseconds a row, the budget is so many evaluations for each feature
or, with 0 of them, that of all explainers by default; otherwise the time is `max_seconds`. "shap"
is what shap takes by default.

`best` loses a cell if a fixed choice has less than 1/1.1 of its error and takes at most 1.1 times
its time, or the other way round; time within `max_seconds` counts as `max_seconds`. Errors are
Σ|φ̂ − φ| over Σ|φ|, times the sum of processor and model, both over all models of a cell. Choices
that refuse a cell are left out.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import shap
from coalition_games import TabulatedGame
from threadpoolctl import threadpool_limits
from zoo_models import all_coalitions

import shap_ext  # noqa: F401  registers the algorithms
from shapley_adapters.errors import BudgetError, InvalidArgumentError
from shapley_adapters.games import evaluation, value_memory
from shapley_adapters.pipeline import costs, estimate, one_round

CHOICES: dict[str, dict[str, Any]] = {
    "best": {"algorithm": "best"},
    "shap": {},
    "enumeration": {"algorithm": "enumeration"},
    "oddgp": {"algorithm": "oddgp"},
    "least squares": {"algorithm": "leastsquares"},
    "random order": {"algorithm": "randomorder"},
}

_MOST_ENUMERATED, _SLACK, _EXACT = 14, 1.1, 1e-9


class Waves:
    """A model with known attributions, and a clock that its evaluations move on."""

    def __init__(
        self, n_features: int, n_outputs: int, seconds: float, rng: np.random.Generator
    ) -> None:
        n_waves, order = 12 + n_features // 2, 4
        self.columns = np.array(
            [rng.choice(n_features, order, replace=False) for _ in range(n_waves)]
        )
        self.slopes = rng.normal(size=(n_waves, order)) * rng.uniform(0.3, 1.5, (n_waves, 1))
        self.heights = rng.normal(size=(n_waves, n_outputs))
        self.mixing = np.zeros((n_features, n_waves))
        np.put_along_axis(self.mixing.T, self.columns, self.slopes, axis=1)
        self.seconds, self.moved = seconds, 0.0

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        started = time.perf_counter()
        values = np.tanh(rows @ self.mixing + 0.3) @ self.heights
        self.moved += self.seconds * len(rows) - (time.perf_counter() - started)
        return values if values.shape[1] > 1 else values[:, 0]

    def now(self) -> float:
        """Return the seconds of a clock on which an evaluation takes its seconds exactly."""
        return time.perf_counter() + self.moved

    def attributions(self, rows: np.ndarray) -> np.ndarray:
        """Return the exact attributions, wave by wave."""
        order = self.columns.shape[1]
        values = np.zeros((*rows.shape, self.heights.shape[1]))
        for columns, slopes, heights in zip(self.columns, self.slopes, self.heights, strict=True):
            games = np.tanh(all_coalitions(order) @ (rows[:, columns] * slopes).T + 0.3).T
            exact = TabulatedGame(games, order).shapley_values()
            values[:, columns] += exact[:, :, None] * heights
        return values if values.shape[2] > 1 else values[:, :, 0]


@dataclass(frozen=True)
class Result:
    """The error of a choice in a cell, its seconds, and what `best` chose."""

    error: float
    seconds: float
    choice: str = ""

    def beats(self, other: Result, limit: float) -> bool:
        """Return whether it errs less in about the same time, or the other way round.

        With a limit in seconds, time within it is there to be used.
        """
        mine, others = max(self.error, _EXACT), max(other.error, _EXACT)
        my_time, time_of_other = max(self.seconds, limit), max(other.seconds, limit)
        is_better = mine * _SLACK < others and my_time <= _SLACK * time_of_other
        is_faster = my_time * _SLACK < time_of_other and mine <= _SLACK * others
        return is_better or is_faster


def result_of(
    options: dict[str, Any],
    models: list[Waves],
    rows: np.ndarray,
    milliseconds: float,
    each: float = 0,
) -> Result | None:
    """Return the result of a choice; None if it refuses."""
    error = scale = seconds = 0.0
    choice = ""
    for model in models:
        for module in (evaluation, value_memory, costs, estimate, one_round):
            module.perf_counter = model.now  # type: ignore[attr-defined]
        explainer = shap.Explainer(model, 0 * rows[:1], seed=0, **options)
        call: dict[str, Any] = {"silent": True}
        if milliseconds:
            call["max_seconds"] = milliseconds * 1e-3 * len(rows)
        if each:
            call["max_evals"] = int(each * rows.shape[1])
        if not options and milliseconds:
            return None
        started = model.now()
        try:
            values = explainer(rows, **call).values
        except (BudgetError, InvalidArgumentError, ValueError):
            return None
        seconds += model.now() - started
        exact = model.attributions(rows)
        error, scale = error + np.abs(values - exact).sum(), scale + np.abs(exact).sum()
        choice = explainer.last_estimate.choice if options else ""
    return Result(error / scale, seconds, choice)


def main() -> None:
    """Print all cells, those that are lost first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--features", type=int, nargs="+", default=[8, 13, 20, 30, 60, 200])
    parser.add_argument("--outputs", type=int, nargs="+", default=[1])
    parser.add_argument("--each", type=float, nargs="+", default=[0])
    parser.add_argument("--speeds", type=float, nargs="+", default=[1, 5, 50, 1000, 20000])
    parser.add_argument("--milliseconds", type=float, nargs="+", default=[0, 1, 10, 100])
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--models", type=int, default=2)
    arguments = parser.parse_args()
    cells = []
    small = Waves(8, 1, 1e-6, np.random.default_rng(0))
    for options in CHOICES.values():  # loads and compiles what is needed on demand
        result_of(options, [small], np.ones((2, 8)), 0)
    for n_features, n_outputs, speed, milliseconds, each in product(
        arguments.features,
        arguments.outputs,
        arguments.speeds,
        arguments.milliseconds,
        arguments.each,
    ):
        if milliseconds and each:
            continue
        rng = np.random.default_rng([arguments.seed, n_features])
        models = [Waves(n_features, n_outputs, 1e-6 * speed, rng) for _ in range(arguments.models)]
        rows = rng.normal(size=(arguments.rows, n_features))
        results = {}
        with threadpool_limits(1):
            for name, options in CHOICES.items():
                if name == "enumeration" and n_features > _MOST_ENUMERATED:
                    continue
                result = result_of(options, models, rows, milliseconds, each)
                if result is not None:
                    results[name] = result
        if "best" in results:
            limit = milliseconds * 1e-3 * arguments.rows * arguments.models
            budget = (
                f"{milliseconds:g} ms" if milliseconds else f"{each:g} each" if each else "default"
            )
            cells.append((_excess(results, limit), n_features, n_outputs, speed, budget, results))
            print(".", end="", flush=True)
    cells.sort(key=lambda cell: -cell[0])
    n_lost = sum(cell[0] > 1 for cell in cells)
    print(f"\n{n_lost} of {len(cells)} cells lost (seed {arguments.seed})\n")
    names = [name for name in CHOICES if name != "best"]
    print("| lost by | features | outputs | µs | budget of a row | best | ", end="")
    print(" | ".join(names) + " | chosen |")
    print("|---" * (len(names) + 7) + "|")
    for excess, n_features, n_outputs, speed, budget, results in cells:
        texts = [_text(results.get(name)) for name in ("best", *names)]
        first = f"{excess:.2g}" if excess > 1 else ""
        head = f"| {first} | {n_features} | {n_outputs} | {speed:g} | {budget} | "
        print(head + " | ".join(texts) + f" | {results['best'].choice.split(':')[0]} |")


def _excess(results: dict[str, Result], limit: float) -> float:
    """Return by which factor the worst rival is better in the one of error and time; 1 if none."""
    best, factors = results["best"], [1.0]
    for rival in results.values():
        if rival.beats(best, limit):
            error = max(best.error, _EXACT) / max(rival.error, _EXACT)
            factors.append(max(error, max(best.seconds, limit) / max(rival.seconds, limit)))
    return max(factors)


def _text(result: Result | None) -> str:
    if result is None:
        return "–"
    return f"{result.error:.1e}, {result.seconds:.2g} s"


if __name__ == "__main__":
    main()

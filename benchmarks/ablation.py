"""What each mechanism of an estimator is worth, on fitted models that a seed draws.

    python -m ablation oddgp --seed 3 [--features 10 13 30 60 94] [--per-player 4 16 64]
        [--rows 4] [--kinds network forest] [--mechanisms "second look"] [--processes 1]

For each mechanism: its lines of code and numeric constants; the error without it over the error
with it, as geometric means over models and rows (errors below 1e-5 count as 1e-5); the share of
values in 95 % intervals without it; and the processor time of our own work without it over that
with it. A ratio near 1 says that the mechanism can leave. The first line is the estimator as it
is: its lines, the error relative to the attributions, the coverage, milliseconds a row.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import textwrap
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import shap
from fitted_models import KINDS, FittedModel, FloatArray, fitted_model
from odd_gp_mechanisms import CACHES, MECHANISMS, PACKAGE, Mechanism
from scipy import stats

import shap_ext  # noqa: F401  registers the algorithms

_MOST_EVALUATIONS = 2000
_LEAST_ERROR = 1e-5
_LEVEL = 0.95


@dataclass(frozen=True)
class Measured:
    """Errors of the rows, the shares inside of intervals, and seconds a row."""

    errors: FloatArray
    inside: FloatArray
    seconds: float


@dataclass
class Clock:
    """A model that counts its own processor time."""

    model: Any
    seconds: float = field(default=0.0)

    def __call__(self, rows: FloatArray) -> FloatArray:
        started = time.process_time()
        values = self.model(rows)
        self.seconds += time.process_time() - started
        return values


def measured(fitted: FittedModel, per_player: int) -> Measured:
    """Explain all rows."""
    n_features = fitted.rows.shape[1]
    clock = Clock(fitted.model)
    explainer = shap.Explainer(clock, fitted.background, algorithm="oddgp", seed=0)
    started = time.process_time()
    values = explainer(fitted.rows, max_evals=per_player * n_features, silent=True).values
    seconds = time.process_time() - started - clock.seconds
    estimate = explainer.last_estimate
    freedom = np.asarray(estimate.degrees_of_freedom).reshape(len(values), -1)
    bounds = stats.t.ppf((1 + _LEVEL) / 2, freedom) * estimate.standard_errors[..., 0]
    off = np.abs(values - fitted.values)
    scale = np.abs(fitted.values).sum(axis=1)
    is_inside = off <= bounds + 1e-9 * scale[:, None]
    return Measured(off.sum(axis=1) / scale, is_inside.mean(axis=1), seconds / len(values))


@contextmanager
def without(names: Sequence[str]) -> Iterator[None]:
    """Switch mechanisms off."""
    for cache in CACHES:
        cache()
    patches = [mock.patch.object(*patch) for name in names for patch in MECHANISMS[name].patches]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()
        for cache in CACHES:
            cache()


def cell(
    kind: str,
    n_features: int,
    per_players: list[int],
    n_rows: int,
    seed: int,
    left_out: dict[str, list[str]],
) -> dict[tuple[int, str], Measured]:
    """Return what was measured with a model: by evaluations a player, and mechanism left out."""
    warnings.simplefilter("ignore")
    fitted = fitted_model(kind, n_features, n_rows, seed)
    found = {}
    for per_player in per_players:
        n_all = 2.0**n_features
        if per_player * n_features > min(_MOST_EVALUATIONS, n_all / 2):
            continue
        measured(fitted, per_player)  # designs that are kept for later calls
        found[per_player, ""] = measured(fitted, per_player)
        for name, names in left_out.items():
            with without(names):
                measured(
                    replace(fitted, rows=fitted.rows[:1], values=fitted.values[:1]), per_player
                )
                found[per_player, name] = measured(fitted, per_player)
    return found


def lines_and_numbers(source: Any) -> tuple[int, int]:
    """Return the lines of code of a module, function or class, and its numeric constants."""
    text = textwrap.dedent(inspect.getsource(source))
    tree = ast.parse(text)
    documented = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documented |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = text.splitlines()
    n_lines = sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in documented
        for number, line in enumerate(lines, 1)
    )
    top = tree.body if isinstance(source, ModuleType) else []
    numbers = [
        node
        for statement in top
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    ]
    return n_lines, len(numbers)


def _size(mechanism: Mechanism) -> tuple[int, int]:
    sizes = [lines_and_numbers(source) for source in mechanism.sources]
    n_named = sum(len(np.ravel(number)) for number in mechanism.numbers)
    return sum(size[0] for size in sizes), sum(size[1] for size in sizes) + n_named


def _ratio(found: list[dict[tuple[int, str], Measured]], name: str, per_player: int) -> str:
    logs = [
        np.log(np.maximum(one[per_player, name].errors, _LEAST_ERROR))
        - np.log(np.maximum(one[per_player, ""].errors, _LEAST_ERROR))
        for one in found
        if (per_player, name) in one
    ]
    return f"{np.exp(np.mean(np.concatenate(logs))):.2f}" if logs else "–"


def _coverage(found: list[dict[tuple[int, str], Measured]], name: str) -> str:
    shares = [of.inside.mean() for one in found for key, of in one.items() if key[1] == name]
    return f"{np.mean(shares):.3f}"


def _seconds(found: list[dict[tuple[int, str], Measured]], name: str) -> float:
    logs = [np.log(of.seconds) for one in found for key, of in one.items() if key[1] == name]
    return float(np.exp(np.mean(logs)))


def main() -> None:
    """Print a line for each mechanism."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("estimator", choices=["oddgp"])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--features", type=int, nargs="+", default=[10, 13, 30, 60, 94])
    parser.add_argument("--per-player", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--mechanisms", nargs="*", choices=MECHANISMS, default=[*MECHANISMS])
    parser.add_argument("--together", action="store_true", help="also leave all of them out")
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    left_out = {name: [name] for name in arguments.mechanisms}
    if arguments.together:
        left_out["all of these"] = arguments.mechanisms
    jobs = list(product(arguments.kinds, arguments.features))
    with ProcessPoolExecutor(arguments.processes) as pool:
        futures = [
            pool.submit(
                cell,
                kind,
                n_features,
                arguments.per_player,
                arguments.rows,
                arguments.seed,
                left_out,
            )
            for kind, n_features in sorted(jobs, key=lambda job: -job[1])
        ]
        found = [future.result() for future in futures]
    by_size = {
        n_features: [
            one
            for one, (_, of_job) in zip(found, sorted(jobs, key=lambda job: -job[1]), strict=True)
            if of_job == n_features
        ]
        for n_features in arguments.features
    }
    heads = [
        f"{n_features}: {per_player}"
        for n_features in arguments.features
        for per_player in arguments.per_player
        if any((per_player, "") in one for one in by_size[n_features])
    ]
    print("| without | lines | numbers | " + " | ".join(heads) + " | in 95 % | time |")
    print("|---" * (len(heads) + 5) + "|")
    sizes = [lines_and_numbers(module) for module in PACKAGE]
    print(f"| – | {sum(s[0] for s in sizes)} | {sum(s[1] for s in sizes)} |", end="")
    for n_features in arguments.features:
        for per_player in arguments.per_player:
            errors = [
                one[per_player, ""].errors for one in by_size[n_features] if (per_player, "") in one
            ]
            if errors:
                logs = np.log(np.maximum(np.concatenate(errors), _LEAST_ERROR))
                print(f" {np.exp(logs.mean()):.1e} |", end="")
    print(f" {_coverage(found, '')} | {1e3 * _seconds(found, ''):.1f} ms |")
    for name, names in left_out.items():
        n_lines, n_numbers = np.sum([_size(MECHANISMS[of]) for of in names], axis=0)
        ratios = [
            _ratio(by_size[n_features], name, per_player)
            for n_features in arguments.features
            for per_player in arguments.per_player
            if any((per_player, "") in one for one in by_size[n_features])
        ]
        times = _seconds(found, name) / _seconds(found, "")
        print(
            f"| {name} | {n_lines} | {n_numbers} | "
            + " | ".join(ratios)
            + f" | {_coverage(found, name)} | {times:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

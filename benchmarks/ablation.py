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
from odd_gp_mechanisms import CACHES, MECHANISMS, PACKAGE
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
        values: FloatArray = self.model(rows)
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


Key = tuple[int, int, str]
"""Features, evaluations a player, and what is left out: "" for nothing."""


def cells_of_model(
    kind: str,
    n_features: int,
    arguments: argparse.Namespace,
    left_out: dict[str, list[str]],
) -> dict[Key, Measured]:
    """Fit a model, and measure it with and without mechanisms."""
    warnings.simplefilter("ignore")
    fitted = fitted_model(kind, n_features, arguments.rows, arguments.seed)
    one_row = replace(fitted, rows=fitted.rows[:1], values=fitted.values[:1])
    found = {}
    for per_player in arguments.per_player:
        if per_player * n_features > min(_MOST_EVALUATIONS, 2.0**n_features / 2):
            continue
        for name, names in {"": [], **left_out}.items():
            with without(names):
                measured(one_row, per_player)  # designs are kept for later calls
                found[n_features, per_player, name] = measured(fitted, per_player)
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


def size_of(names: Sequence[str]) -> tuple[int, int]:
    """Return the lines of code and the numeric constants of mechanisms, or of all for none."""
    if not names:
        sizes = [lines_and_numbers(module) for module in PACKAGE]
    else:
        mechanisms = [MECHANISMS[name] for name in names]
        sizes = [lines_and_numbers(source) for one in mechanisms for source in one.sources]
        sizes += [(0, np.size(number)) for one in mechanisms for number in one.numbers]
    n_lines, n_numbers = np.sum([(0, 0), *sizes], axis=0).tolist()
    return n_lines, n_numbers


def line(name: str, names: Sequence[str], cells: dict[Key, list[Measured]]) -> str:
    """Return a line of the table."""
    own = {key[:2]: found for key, found in cells.items() if key[2] == name}
    texts = [name or "–", *map(str, size_of(names))]
    for key, found in own.items():
        with_all = cells[(*key, "")]
        ratio = _geometric_mean([one.errors for one in found])
        if name:
            ratio /= _geometric_mean([one.errors for one in with_all])
        texts.append(f"{ratio:.2f}" if name else f"{ratio:.1e}")
    all_found = [one for found in own.values() for one in found]
    texts.append(f"{np.mean([one.inside.mean() for one in all_found]):.3f}")
    seconds = _geometric_mean([np.array([one.seconds]) for one in all_found])
    if name:
        of_all = [one for key, found in cells.items() if not key[2] for one in found]
        seconds /= _geometric_mean([np.array([one.seconds]) for one in of_all])
    texts.append(f"{seconds:.2f}" if name else f"{1e3 * seconds:.1f} ms")
    return f"| {' | '.join(texts)} |"


def _geometric_mean(parts: list[FloatArray]) -> float:
    numbers = np.maximum(np.concatenate(parts), _LEAST_ERROR)
    return float(np.exp(np.log(numbers).mean()))


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
    cells: dict[Key, list[Measured]] = {}
    with ProcessPoolExecutor(arguments.processes) as pool:
        futures = [
            pool.submit(cells_of_model, kind, n_features, arguments, left_out)
            for n_features, kind in product(arguments.features, arguments.kinds)
        ]
        for future in futures:
            for key, found in future.result().items():
                cells.setdefault(key, []).append(found)
    heads = [f"{n_features}: {each}" for n_features, each, name in cells if not name]
    print("| without | lines | numbers | " + " | ".join(heads) + " | in 95 % | time |")
    print("|---" * (len(heads) + 5) + "|")
    for name, names in {"": [], **left_out}.items():
        print(line(name, names, cells))


if __name__ == "__main__":
    main()

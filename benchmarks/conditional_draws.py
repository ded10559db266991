"""Draws of absent features from conditional normal distributions: their errors, bars and time.

    python benchmarks/conditional_draws.py [--quick] [--shapiq-python PYTHON]

Three tables. The error of the mean of K draws over that of K independent ones, as a root mean
square over coalitions, for a quadratic function, a network and steps. How often 95 % intervals hold
the exact conditional Shapley values of quadratic functions of 8 features, with the standard error
over games. And the seconds of 13 features and 1,000 rows with the default budget, without the
model's own time. Needs no data.

With a Python that has shapiq (`requirements-shapiq.txt`), a fourth table beside its imputers: the
error of the values of all coalitions against the conditional means of the known distribution, over
their spread, and the processor's time without fitting.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import shap

sys.path.insert(0, str(Path(__file__).parents[1]))
from shap_ext.maskers import Copula, Empirical, Forest, Gaussian
from tests.helpers.conditional_games import (
    Quadratic,
    correlated_rows,
    normal_game,
    normal_shapley_values,
)

METHODS: dict[str, dict[str, Any]] = {
    "enumeration": {},
    "oddgp": {},
    "oddgp, unbiased": {"unbiased": True},
    "leastsquares": {},
    "randomorder": {},
}


def relative_errors(n_features: int, n_draws: int, n_repeats: int) -> dict[str, float]:
    """Return the error of means of draws over that of independent ones, for each function."""
    rng = np.random.default_rng(1)
    inner, outer = rng.normal(size=(n_features, 8)), rng.normal(size=8)
    functions: dict[str, Any] = {
        "quadratic": Quadratic(n_features, seed=0),
        "network": lambda x: np.tanh(x @ inner / 2) @ outer,
        "steps": lambda x: (x[..., :2] > 0).all(axis=-1) + 1.0 * (x[..., 2] > 1),
    }
    data = correlated_rows(500, n_features, seed=0)
    masks = rng.random((40, n_features)) < 0.5
    masks[:, 0] = False
    row = Gaussian(data, draws=n_draws).draws.of_row(data[0])
    drawn = np.array([row.repeated(repeat)(masks) for repeat in range(n_repeats)])
    found = {}
    for name, function in functions.items():
        outputs = function(drawn)
        of_means, of_one = outputs.mean(axis=2).var(axis=0), outputs.var(axis=(0, 2))
        found[name] = float(np.sqrt(of_means.mean() / (of_one.mean() / n_draws)))
    return found


def coverage(method: str, n_draws: int, n_games: int) -> tuple[float, float, float]:
    """Return the share of values in their intervals, its standard error, and the relative error."""
    inside, errors = [], []
    for seed in range(n_games):
        data, model = correlated_rows(300, 8, seed), Quadratic(8, seed)
        masker = Gaussian(data, draws=n_draws, seed=seed)
        name = method.partition(",")[0]
        explainer = shap.Explainer(model, masker, algorithm=name, seed=seed, **METHODS[method])
        budget = 1000 if name == "enumeration" else 100
        explainer(data[:2], max_evals=budget, silent=True)
        estimate = explainer.last_estimate
        low, high = estimate.interval()
        exact = normal_shapley_values(data[:2], data.mean(axis=0), np.cov(data.T), model.expected)
        inside.append(((low[..., 0] <= exact) & (exact <= high[..., 0])).mean())
        errors.append(np.abs(estimate.values[..., 0] - exact).sum() / np.abs(exact).sum())
    return np.mean(inside), np.std(inside) / np.sqrt(n_games), np.mean(errors)


def seconds(n_rows: int) -> tuple[float, float]:
    """Return the seconds of a call without those of the model, and its rows of the model."""
    data, weights = correlated_rows(1000, 13, seed=0), np.random.default_rng(0).normal(size=13)
    n_evaluated, of_model = 0, 0.0

    def model(x: Any) -> Any:
        nonlocal n_evaluated, of_model
        start = time.process_time()
        outputs = np.tanh(x @ weights)
        n_evaluated, of_model = n_evaluated + len(x), of_model + time.process_time() - start
        return outputs

    explainer = shap.Explainer(model, Gaussian(data), algorithm="oddgp", seed=0)
    start = time.process_time()
    explainer(data[:n_rows], silent=True)
    return time.process_time() - start - of_model, n_evaluated


_N_FEATURES = 8
_SPREAD = 0.5
"""Standard deviation of the logarithm of a log-normal feature."""

OURS: dict[str, Any] = {
    "Gaussian": Gaussian,
    "Copula": Copula,
    "Empirical": Empirical,
    "Empirical, sigma=.1 as shapr": partial(Empirical, sigma=0.1),
    "Forest": Forest,
}


def known_distribution(is_log_normal: bool, n_rows: int, seed: int) -> dict[str, Any]:
    """Return rows of a known distribution, rows to explain, a model, and exact conditional means.

    Of a log-normal distribution with the logarithms' mean m and covariance C, features have the
    mean exp(m + C_ii / 2), and products exp(m_i + m_j + (C_ii + C_jj) / 2 + C_ij).
    """
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(_N_FEATURES, _N_FEATURES))
    root /= np.sqrt((root**2).sum(axis=1, keepdims=True))
    covariance = root @ root.T * (_SPREAD**2 if is_log_normal else 1.0)
    drawn = rng.multivariate_normal(np.zeros(_N_FEATURES), covariance, n_rows + 10)
    model = Quadratic(_N_FEATURES, seed)

    def expected(means: Any, covariances: Any) -> Any:
        if not is_log_normal:
            return model.expected(means, covariances)
        half = means + np.diag(covariances) / 2
        products = np.exp(half[:, None] + half + covariances)
        return np.exp(half) @ model.weights + (model.matrix * products).sum()

    masks = (np.arange(2**_N_FEATURES)[:, None] >> np.arange(_N_FEATURES)) % 2 == 1
    games = [normal_game(r, np.zeros(_N_FEATURES), covariance, expected) for r in drawn[n_rows:]]
    exact = [[game(frozenset(np.flatnonzero(mask))) for mask in masks] for game in games]
    table = np.exp(drawn) if is_log_normal else drawn
    return {
        "data": table[:n_rows], "rows": table[n_rows:], "masks": masks, "exact": np.array(exact),
        "weights": model.weights, "matrix": model.matrix,
    }  # fmt: skip


def our_values(kind: Any, case: dict[str, Any], n_draws: int) -> tuple[Any, float, float]:
    """Return the values of all coalitions, (rows, coalitions), and seconds to fit and to draw."""
    start = time.process_time()
    masker = kind(case["data"], draws=n_draws)
    masker.draws.of_row(case["rows"][0])(case["masks"])  # fits trees and factors of coalitions
    fitted = time.process_time()
    values = []
    for row in case["rows"]:
        x = masker.draws.of_row(row)(case["masks"])
        values.append((x @ case["weights"] + ((x @ case["matrix"]) * x).sum(axis=-1)).mean(axis=1))
    return np.array(values), fitted - start, time.process_time() - fitted


def shapiq_values(python: Path, case: dict[str, Any], n_draws: int) -> Any:
    """Return what `shapiq_imputers.py` writes."""
    script = Path(__file__).with_name("shapiq_imputers.py")
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "given.npz"), Path(folder, "found.npz")
        np.savez(given, n_draws=n_draws, **case)
        subprocess.run([python, script, given, found], check=True)
        return dict(np.load(found))


def print_imputers(python: Path, is_quick: bool) -> None:
    """Print errors and time beside those of shapiq."""
    for name, is_log_normal in (("normal", False), ("log-normal", True)):
        case = known_distribution(is_log_normal, 200 if is_quick else 1000, seed=0)
        spread = case["exact"].std()

        def line(method: str, n_draws: int, values: Any, fit: float, draw: float) -> None:
            error = np.sqrt(((values - case["exact"]) ** 2).mean()) / spread  # noqa: B023
            print(f"{method:38} {n_draws:5} {error:8.4f} {fit:8.2f} {draw:8.3f}", flush=True)

        print(f"\n{name}: draws, error, seconds to fit, seconds of 10 rows x 256 coalitions")
        for n_draws in (10, 100) if is_quick else (10, 100, 1000):
            for method, kind in OURS.items():
                line(method, n_draws, *our_values(kind, case, n_draws))
            found = shapiq_values(python, case, n_draws)
            for place, method in enumerate(found["names"]):
                seconds = found["fitting"][place], found["drawing"][place]
                line(
                    f"shapiq {found['version']} {method}", n_draws, found["values"][place], *seconds
                )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--shapiq-python", type=Path, default=None)
    parser.add_argument("--only-shapiq", action="store_true", help="the fourth table alone")
    arguments = parser.parse_args()
    is_quick = arguments.quick
    if arguments.shapiq_python is not None:
        print_imputers(arguments.shapiq_python, is_quick)
        if arguments.only_shapiq:
            return
    print("error over that of independent draws")
    for n_features in (6, 13):
        for n_draws in (4, 16, 64):
            found = relative_errors(n_features, n_draws, 10 if is_quick else 40)
            cells = "  ".join(f"{name} {share:.2f}" for name, share in found.items())
            print(f"{n_features:3} features  {n_draws:3} draws  {cells}", flush=True)
    print("\n95 % intervals hold, standard error, relative error")
    for method in METHODS:
        for n_draws in (4, 16, 64):
            held, error, relative = coverage(method, n_draws, 3 if is_quick else 60)
            print(
                f"{method:16} {n_draws:3} draws  {held:.3f} ± {error:.3f}  {relative:.3f}",
                flush=True,
            )
    own, n_evaluated = seconds(20 if is_quick else 1000)
    print(f"\n{own:.1f} s beside the model, which gets {n_evaluated:,} rows")


if __name__ == "__main__":
    main()

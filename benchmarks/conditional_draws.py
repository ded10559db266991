"""Draws of absent features from conditional normal distributions: their errors and bars.

    python benchmarks/conditional_draws.py [--quick] [--docs]

Three tables. The error of the mean of K draws over that of K independent ones, as a root mean
square over coalitions, for a quadratic function, a network and steps. The error of distributions
fitted to 300 rows of 3 columns, independent or not, with how often intervals hold the values of the
distribution that the rows come from. How often 95 % intervals hold the exact conditional Shapley
values of quadratic functions of 8 features, with the standard error over games. Needs no data.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pages
import shap

sys.path.insert(0, str(Path(__file__).parents[1]))
from shap_ext.maskers import Copula, Empirical, Forest, Gaussian
from tests.helpers.conditional_games import Quadratic, correlated_rows, normal_shapley_values

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "`oddgp`": ("oddgp", {}),
    "`oddgp`, `unbiased=True`": ("oddgp", {"unbiased": True}),
    "`leastsquares`": ("leastsquares", {}),
    "`randomorder`": ("randomorder", {}),
    "`enumeration`": ("enumeration", {}),
}


DRAWS = (4, 16, 64)


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
        name, options = METHODS[method]
        explainer = shap.Explainer(model, masker, algorithm=name, seed=seed, **options)
        budget = 1000 if name == "enumeration" else 100
        explainer(data[:2], max_evals=budget, silent=True)
        estimate = explainer.last_estimate
        low, high = estimate.interval()
        exact = normal_shapley_values(data[:2], data.mean(axis=0), np.cov(data.T), model.expected)
        inside.append(((low[..., 0] <= exact) & (exact <= high[..., 0])).mean())
        errors.append(np.abs(estimate.values[..., 0] - exact).sum() / np.abs(exact).sum())
    return np.mean(inside), np.std(inside) / np.sqrt(n_games), np.mean(errors)


def errors_of_fits(masker: Any, correlation: float, n_games: int) -> tuple[float, float]:
    """Return the relative error of a fit, and the share of values in their intervals."""
    covariance = np.where(np.eye(3), 1.0, correlation)
    inside, off, total = [], 0.0, 0.0
    for seed in range(n_games):
        rng, model = np.random.default_rng(seed), Quadratic(3, seed)
        data = rng.multivariate_normal(np.zeros(3), covariance, size=310)
        explainer = shap.Explainer(model, masker(data[:300]), algorithm="enumeration", seed=seed)
        found = explainer(data[300:], silent=True)
        low, high = explainer.last_estimate.interval()
        exact = normal_shapley_values(data[300:], np.zeros(3), covariance, model.expected)
        inside.append(((low[..., 0] <= exact) & (exact <= high[..., 0])).mean())
        off, total = off + np.abs(found.values - exact).sum(), total + np.abs(exact).sum()
    return off / total, float(np.mean(inside))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    options = pages.read_options(parser)
    print("error over that of independent draws")
    for n_features in (6, 13):
        for n_draws in DRAWS:
            found = relative_errors(n_features, n_draws, 10 if options.quick else 40)
            cells = "  ".join(f"{name} {share:.2f}" for name, share in found.items())
            print(f"{n_features:3} features  {n_draws:3} draws  {cells}", flush=True)
    print("\nerror of fits, 95 % intervals hold the values of their source")
    for masker in (Gaussian, Copula, Empirical, Forest):
        for correlation in (0.0, 0.3, 0.8):
            error, held = errors_of_fits(masker, correlation, 3 if options.quick else 20)
            print(
                f"{masker.__name__:9}  correlation {correlation}  {error:.3f}  {held:.2f}",
                flush=True,
            )
    print(
        "\nstandard errors of the shares in 95 % intervals, and the table of the page", flush=True
    )
    lines = []
    for method in METHODS:
        found = [coverage(method, n_draws, 3 if options.quick else 60) for n_draws in DRAWS]
        print(f"{method:28}", *(f"{error:.3f}" for _, error, _ in found), flush=True)
        lines.append(
            [method, *(pages.short(one, 2) for one in (*(held for held, *_ in found), found[1][2]))]
        )
    lines.sort(key=lambda line: min(line[1:-1]))
    heads = [f"{n_draws} draws" for n_draws in DRAWS]
    table = pages.table(["", *heads, f"relative error, {heads[1]}"], lines)
    pages.report(options, "conditional-draws", table)


if __name__ == "__main__":
    main()

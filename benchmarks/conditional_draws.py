"""How often intervals hold the values of features that are drawn from conditional distributions.

    python benchmarks/conditional_draws.py [--quick] [--docs]

For each estimator and number of draws: how often 95 % intervals hold the conditional Shapley
values of quadratic functions of 8 features, by the distribution that 300 rows are drawn from, with
the standard error over games, and the relative error; and where other distributions are fitted to
these rows. Needs no data.
"""

# mypy: allow-untyped-calls

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pages
import shap
from games import relative_error, share_inside

sys.path.insert(0, str(Path(__file__).parents[1]))
from shap_ext.maskers import Copula, Empirical, Gaussian
from tests.helpers.conditional_games import Quadratic, normal_shapley_values

METHODS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "`oddgp`": (Gaussian, "oddgp", {}),
    "`oddgp`, `unbiased=True`": (Gaussian, "oddgp", {"unbiased": True}),
    "`leastsquares`": (Gaussian, "leastsquares", {}),
    "`randomorder`": (Gaussian, "randomorder", {}),
    "`enumeration`": (Gaussian, "enumeration", {}),
    "`enumeration`, `Copula`": (Copula, "enumeration", {}),
    "`enumeration`, `Empirical`": (Empirical, "enumeration", {}),
}


DRAWS = (4, 16, 64)


def coverage(method: str, n_draws: int, n_games: int) -> tuple[float, float, float]:
    """Return the share of values in their intervals, its standard error, and the relative error."""
    inside, errors = [], []
    for seed in range(n_games):
        rng, model = np.random.default_rng(seed), Quadratic(8, seed)
        mixing = rng.normal(size=(8, 8)) / 2
        data = rng.normal(size=(300, 8)) @ mixing
        of, name, options = METHODS[method]
        masker = of(data, draws=n_draws, seed=seed)
        explainer = shap.Explainer(model, masker, algorithm=name, seed=seed, **options)
        budget = 1000 if name == "enumeration" else 100
        explainer(data[:2], max_evals=budget, silent=True)
        estimate = explainer.last_estimate
        exact = normal_shapley_values(data[:2], np.zeros(8), mixing.T @ mixing, model.expected)
        inside.append(share_inside(estimate, exact, slack=0))
        errors.append(relative_error(estimate.values[..., 0], exact))
    spread = np.std(inside) / np.sqrt(n_games)
    return float(np.mean(inside)), float(spread), float(np.mean(errors))


def main() -> None:
    """Print the table, the least honest estimators first."""
    options = pages.read_options(__doc__)
    n_games, lines = 3 if options.quick else 60, []
    for method in METHODS:
        found = [coverage(method, n_draws, n_games) for n_draws in DRAWS]
        print(f"{method:28} ±", *(f"{error:.3f}" for _, error, _ in found), flush=True)
        shown = (*(held for held, *_ in found), found[1][2])
        lines.append([method, *(pages.short(one, 2) for one in shown)])
    lines.sort(key=lambda line: min(line[1:-1]))
    heads = [f"{n_draws} draws" for n_draws in DRAWS]
    table = pages.table(["", *heads, f"relative error, {heads[1]}"], lines)
    pages.report(options, "conditional-draws", table)


if __name__ == "__main__":
    main()

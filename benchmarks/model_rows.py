"""Error against rows of the model: backgrounds of 1 to 1,000 rows, cells that miss a goal first.

    python benchmarks/model_rows.py [--quick] [--shapiq-python NAME/bin/python] [--docs] [--kept]

Boosted trees, a forest, two networks and a support vector machine with 12, 30 and 60 features are
explained by shap's permutation and kernel explainers, captum's sampling, four estimators of
shapiq, our `oddgp` with all background rows for each coalition, and our `oddgp` with
`max_model_rows`. Data are drawn anew for each model: correlated features; main effects,
products and steps. shapiq's values of coalitions are means over all background rows, as those of
its imputer with a sample of that size; without `--shapiq-python` it takes no part.

Errors are Σ |φ̂ − φ| / Σ |φ|, means over explained rows, each with a seed of its own. Truth:
interventional TreeSHAP for trees, integrals of products for support vectors; for networks all
coalitions of 12 features, or 128 evaluations per feature on all background rows by `oddgp`, whose
error is less than the last digit here. A cell is a model, a number of features and a background:

- *rows for the same error* as another estimator at the same budget, read from our curve by
  interpolation of logarithms, and divided by the rows of the other: geometric mean over budgets.
- *error at equal rows*, divided by that with all background rows: the largest over budgets.
- *coverage* of 95 % intervals, over all budgets and rows.

`--docs` writes results and picture, too; `--kept` reads the results that it wrote last, rather
than measuring.
Needs LightGBM. About ten minutes on one core: 4 explained rows, 2 with more than 12 features or
100 background rows.
"""

import contextlib
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import lightgbm
import numpy as np
import numpy.typing as npt
import pages
import pandas as pd
import shap
import torch
from captum.attr import ShapleyValueSampling
from games import LargeGame, share_inside
from matplotlib.figure import Figure
from peers import APPROXIMATORS, PEERS, Explain, ShapiqWorker, by_shapiq, explain
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

import shap_ext  # noqa: F401 # it registers our algorithms

FloatArray = npt.NDArray[np.float64]
Answer = tuple[FloatArray, float]
"""Attributions, (R, M), and the share of the true ones in intervals, if there are any."""

PANELS = ((12, 1), (12, 10), (12, 100), (12, 1000), (30, 100), (60, 100))
"""Features and background rows."""

ROWS_PER_FEATURE = {
    1: (2, 4, 8, 16, 32, 64),
    10: (5, 10, 25, 50, 100, 200),
    100: (20, 60, 120, 250, 500, 1000),
    1000: (100, 300, 600, 1250, 2500),
}

KINDS: dict[str, Callable[[int], object]] = {
    "boosted trees": lambda seed: lightgbm.LGBMRegressor(
        n_estimators=100, verbose=-1, n_jobs=1, random_state=seed
    ),
    "forest": lambda seed: RandomForestRegressor(
        30, min_samples_leaf=5, n_jobs=1, random_state=seed
    ),
    "network (ReLU)": lambda seed: MLPRegressor(
        hidden_layer_sizes=(50, 50), max_iter=200, random_state=seed
    ),
    "network (tanh)": lambda seed: MLPRegressor(
        hidden_layer_sizes=(64,), activation="tanh", max_iter=200, random_state=seed
    ),
    "support vectors": lambda seed: SVR(C=3.0),
}


def drawn_data(n_features: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return 2,000 rows of correlated features, and a target of variance 1."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(n_features) + 0.4 * rng.normal(size=(n_features, n_features))
    x = rng.normal(size=(2000, n_features)) @ mixing / np.sqrt(1 + 0.16 * n_features)
    y = x @ rng.normal(size=n_features) + 2 * np.sin(2 * x[:, 0]) + 2 * (x[:, 1] > 0) * x[:, 2]
    for first, second in rng.integers(n_features, size=(n_features, 2)):
        y += 2 * rng.normal() * np.tanh(x[:, first] * x[:, second])
    return x, (y - y.mean()) / y.std()


class Task:
    """A fitted model with rows to explain, a background, and the true attributions."""

    def __init__(self, kind: str, n_features: int, n_background: int, n_explained: int) -> None:
        seed = 7 + n_features
        x, y = drawn_data(n_features, seed)
        self.fitted = KINDS[kind](seed).fit(x, y)  # type: ignore[attr-defined]
        self.background = x[:n_background]
        # shap takes 100 rows of an array.
        self.masker = shap.maskers.Independent(self.background, n_background)
        self.rows = x[-n_explained:]
        self.n_features, self.n_background, self.kind = n_features, n_background, kind
        self.truth = self._truth()

    def predict(self, x: FloatArray) -> FloatArray:
        """Return the predictions for rows."""
        model = self.fitted
        if isinstance(model, SVR):  # its own loop over support vectors is ten times slower
            kernel = rbf_kernel(x, model.support_vectors_, gamma=model._gamma)
            return np.asarray(kernel @ model.dual_coef_[0] + model.intercept_[0])
        return np.asarray(model.predict(x), dtype=float)

    def coalition_values(self, row: FloatArray, coalitions: npt.NDArray[np.bool_]) -> FloatArray:
        """Return the mean prediction over the background for each coalition."""
        x = np.where(coalitions[:, None], row, self.background)  # (C, B, M)
        predicted = self.predict(x.reshape(-1, self.n_features))
        return predicted.reshape(len(x), -1).mean(axis=1)

    def _truth(self) -> FloatArray:
        if self.kind in ("boosted trees", "forest"):
            explainer = shap.TreeExplainer(
                self.fitted, self.masker, feature_perturbation="interventional"
            )
            return np.asarray(explainer.shap_values(self.rows, check_additivity=False))
        if isinstance(self.fitted, SVR):
            return np.array([self._integrals(row) for row in self.rows])
        n_evaluations = 2**12 if self.n_features == 12 else 128 * self.n_features
        found = shap.Explainer(self.predict, self.masker, algorithm="oddgp", seed=99)
        return np.asarray(found(self.rows, max_evals=n_evaluations, silent=True).values)

    def _integrals(self, row: FloatArray) -> FloatArray:
        """Return the exact attributions of a sum of products, one factor for each feature.

        With factors a of the row and b of a background row, those of a product are
        (a_i − b_i) ∫ Π_{l ≠ i} (t a_l + (1 − t) b_l) dt, for t from 0 to 1. The integrand is a
        polynomial of degree M − 1, for which M / 2 nodes of Gauss and Legendre are exact.
        """
        vectors, gamma = self.fitted.support_vectors_, self.fitted._gamma
        nodes, weights = np.polynomial.legendre.leggauss(self.n_features // 2 + 1)
        of_row = np.exp(-gamma * (row - vectors) ** 2)  # (V, M)
        total = np.zeros(self.n_features)
        for background_row in self.background:
            of_background = np.exp(-gamma * (background_row - vectors) ** 2)
            for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
                factors = t * of_row + (1 - t) * of_background
                products = self.fitted.dual_coef_[0] * factors.prod(axis=1)
                total += weight * products @ ((of_row - of_background) / factors)
        return total / self.n_background

    def error(self, found: FloatArray) -> float:
        """Return the error of attributions."""
        off = np.abs(found - self.truth).sum(axis=1) / np.abs(self.truth).sum(axis=1)
        return float(off.mean())


def by_peer(peer: Explain) -> Callable[[Task, int], Answer]:
    """Return an estimator of games of coalitions, whose values are means over the background."""

    def explain_rows(task: Task, n_rows: int) -> Answer:
        found = []
        for seed, (row, truth) in enumerate(zip(task.rows, task.truth, strict=True)):
            game = LargeGame(partial(task.coalition_values, row), truth)
            answer = explain(peer, game, n_rows // task.n_background, seed)
            if answer is None:
                raise ValueError("the budget is refused")
            found.append(answer.values)
        return np.array(found), np.nan

    return explain_rows


def by_sampling(task: Task, n_rows: int) -> Answer:
    """Explain by captum's sampling, whose baselines are one row: permutations share the rows."""
    each = n_rows // task.n_background
    n_samples = each // task.n_features
    if n_samples < 1:
        raise ValueError("fewer than one permutation for each background row")
    torch.manual_seed(0)

    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(task.predict(x.numpy()))

    sampling, rows = ShapleyValueSampling(forward), torch.as_tensor(task.rows)
    total = np.zeros(task.rows.shape)
    for baseline in torch.as_tensor(task.background):
        total += sampling.attribute(
            rows, baselines=baseline[None], n_samples=n_samples, perturbations_per_eval=64
        ).numpy()
    return total / task.n_background, np.nan


def by_oddgp(*, on_all: bool) -> Callable[[Task, int], Answer]:
    """Return `oddgp` with a budget of coalitions, or of rows of the model."""

    def explain(task: Task, n_rows: int) -> Answer:
        explainer = shap.Explainer(task.predict, task.masker, algorithm="oddgp", seed=0)
        budget: dict[str, int] = {"max_model_rows": n_rows}
        if on_all:
            budget = {"max_evals": n_rows // task.n_background}
        found = np.asarray(explainer(task.rows, silent=True, **budget).values)
        estimate = explainer.last_estimate
        if estimate.model_rows.max() > n_rows:
            raise RuntimeError(f"{estimate.model_rows.max()} rows of the model, not {n_rows}")
        return found, share_inside(estimate, task.truth)

    return explain


OURS = "oddgp, max_model_rows"
ON_ALL = "oddgp, all background rows"
PERMUTATION = "shap, permutation"

SHAPIQ = ("LeverageSHAP", "RegressionMSR linear", "OddSHAP factor 5", "PermutationSamplingSV")
"""Each is shapiq's best at some budget, of all but SPEX and ShaplEIG with 12 features."""

METHODS: dict[str, Callable[[Task, int], Answer]] = {
    PERMUTATION: by_peer(PEERS[PERMUTATION]),
    "shap, kernel": by_peer(PEERS["shap, kernel, default"]),
    "captum, sampling": by_sampling,
    ON_ALL: by_oddgp(on_all=True),
    OURS: by_oddgp(on_all=False),
}

KEPT = pages.RESULTS / "model_rows.csv"
CELL = ["features", "background", "model"]
GOALS = {"rows / permutation": 0.1, "rows / all": 0.5, "error / all": 1.05}
"""At most; and coverage within .03 of .95. Rows have goals from 100 background rows on."""


def measure(
    methods: dict[str, Callable[[Task, int], Answer]],
    panels: Sequence[tuple[int, int]],
    kinds: list[str],
    n_budgets: int,
) -> pd.DataFrame:
    """Return a line for each model, budget and method; errors are NaN where it refuses."""
    lines = []
    for (n_features, n_background), kind in product(panels, kinds):
        task = Task(kind, n_features, n_background, 4 if n_features * n_background < 2000 else 2)
        budgets = ROWS_PER_FEATURE[n_background][:n_budgets]
        for per_feature, (name, method) in product(budgets, methods.items()):
            error = coverage = np.nan
            # Refused: the budget is too small for the method.
            with contextlib.suppress(ValueError):
                found, coverage = method(task, per_feature * n_features)
                error = task.error(found)
            cell = (n_features, n_background, kind)
            lines.append((*cell, per_feature, name, error, coverage))
        print(f"{kind}, {n_features} features, {n_background:,} background rows", flush=True)
    return pd.DataFrame(lines, columns=[*CELL, "per feature", "method", "error", "coverage"])


def share_of_rows(errors: pd.DataFrame, other: str) -> float:
    """Return the rows of ours for the same error, divided by those of the other."""
    rows = errors.index.to_numpy(dtype=float)
    ours = np.minimum.accumulate(errors[OURS].to_numpy())
    shares = []
    for rows_of_other, error in errors[other].dropna().items():
        needed = np.exp(np.interp(-np.log(error), -np.log(ours), np.log(rows)))
        # Beyond the largest budget, errors fall with the root of the rows, as those of any mean.
        shares.append(needed * max(1.0, ours[-1] / error) ** 2 / rows_of_other)
    return float(np.exp(np.mean(np.log(shares))))


def judge(results: pd.DataFrame) -> pd.DataFrame:
    """Return what has goals for each cell, and by which factor it misses the worst of them."""
    cells = []
    for cell, lines in results.groupby(CELL, sort=False):
        errors = lines.pivot(index="per feature", columns="method", values="error")
        shares = [np.nan, np.nan]
        if cell[1] >= 100:
            shares = [share_of_rows(errors, other) for other in (PERMUTATION, ON_ALL)]
        found = [*shares, (errors[OURS] / errors[ON_ALL]).max()]
        coverage = lines.loc[lines["method"] == OURS, "coverage"].mean()
        misses = [one / goal for one, goal in zip(found, GOALS.values(), strict=True)]
        miss = np.nanmax([*misses, abs(coverage - 0.95) / 0.03])
        cells.append((*cell, *found, coverage, miss))
    return pd.DataFrame(cells, columns=[*CELL, *GOALS, "coverage", "miss"])


def losing_table(cells: pd.DataFrame) -> str:
    """Return how many cells hold each goal, and a line for each that misses one, worst first."""
    held = [
        f"{name} <= {goal:g}: {(cells[name] <= goal).sum()} of {cells[name].notna().sum()}, "
        f"median {cells[name].median():.2f}"
        for name, goal in GOALS.items()
    ]
    honest = cells["coverage"].between(0.92, 0.98)
    held.append(f"coverage .92 to .98: {honest.sum()} of {len(cells)}")
    held.append(f"all of these: {(cells['miss'] <= 1).sum()} of {len(cells)}")
    rows = (
        [cell[1], f"{cell[2]:,}", cell[3], *(f"{value:.2f}" for value in cell[4:])]
        for cell in cells[cells["miss"] > 1].nlargest(6, "miss").itertuples()
    )
    return f"Cells that hold. {'; '.join(held)}.\n\n{pages.table(cells.columns, rows)}"


def sentence(cells: pd.DataFrame) -> str:
    """Return what the picture shows, for the README."""
    many = cells[cells["background"] >= 100]
    fewer = 1 / many[["rows / permutation", "rows / all"]].median()
    return (
        "With 100 or 1,000 background rows, `oddgp` with `max_model_rows` reaches the error of "
        f"shap's permutation explainer by running the model on {fewer.iloc[0]:.0f} times fewer "
        f"rows. Compared with `oddgp` on all background rows, it needs {fewer.iloc[1]:.1f} times "
        f"fewer (medians over {len(many)} cases)."
    )


SHAPIQ_BEST = "shapiq, best of four"
STYLES = {
    PERMUTATION: ("#4c8bf5", "-"),
    "shap, kernel": ("#8a8f98", "-"),
    "captum, sampling": ("#9c6ade", "-"),
    SHAPIQ_BEST: ("#2f9e6e", "-"),
    ON_ALL: ("#e8590c", ":"),
    OURS: ("#e8590c", "-"),
}


def draw(results: pd.DataFrame) -> Figure:
    """Draw mean errors over models against rows, a panel for each background and size.

    Of shapiq's estimators, the one with the least mean error at the budget is drawn.
    """
    axes = [*CELL[:2], "per feature", "method"]
    means = results.groupby(axes)["error"].agg(lambda values: values.mean(skipna=False))
    best = {f"shapiq, {name}": SHAPIQ_BEST for name in SHAPIQ}
    least = means.reset_index().replace({"method": best}).groupby(axes)["error"].min().unstack()
    tables = {
        f"{background:,} background row{'s' * (background > 1)}, {n} features": (
            least.loc[n, background]
        )
        for n, background in PANELS
    }
    xlabel = "rows of the model, per feature"
    return pages.draw_errors(
        tables, STYLES, strongest=OURS, xlabel=xlabel, n_columns=2, lowest=0.0008
    )


def main() -> None:
    """Measure, or read what was measured, and print the tables."""
    documented = "--shapiq-python ENVIRONMENT/bin/python"
    options = pages.read_options(__doc__, documented, shapiq_python=None, kept=False)
    warnings.simplefilter("ignore")  # small budgets, and networks that have not converged
    worker = ShapiqWorker(options.shapiq_python) if options.shapiq_python else None
    methods = dict(METHODS)
    for approximator in APPROXIMATORS:
        name = approximator.name.removeprefix("shapiq ")
        if worker is not None and name in SHAPIQ:
            methods[f"shapiq, {name}"] = by_peer(partial(by_shapiq, worker, approximator))
    if options.quick:
        results = measure(methods, PANELS[1:3], list(KINDS)[:2], 4)
    else:
        results = pd.read_csv(KEPT) if options.kept else measure(methods, PANELS, list(KINDS), 6)
    cells = judge(results)
    pages.report(options, "model-rows", losing_table(cells))
    pages.report(options, "model-rows-in-short", sentence(cells))
    if options.docs:
        results.to_csv(KEPT, index=False, float_format="%.6g")
        pages.save_picture("model_rows", partial(draw, results))


if __name__ == "__main__":
    main()

"""Error against rows of the model: backgrounds of 10 to 1,000 rows.

    python benchmarks/model_rows.py [--quick] [--picture PATH] [--out PATH]

Boosted trees, a forest, two networks and a support vector machine with 12, 30 and 60 features are
explained by shap's permutation and kernel explainers, captum's sampling, our `oddgp` with all
background rows for each coalition, and our `oddgp` and `leastsquares` with `max_model_rows`. Data
are drawn anew for each model: correlated features; main effects, products and steps.

Errors are Σ |φ̂ − φ| / Σ |φ|, means over models, explained rows and seeds. Truth: interventional
TreeSHAP for trees; elsewhere all coalitions of 12 features, or 128 evaluations per feature on all
background rows by `oddgp`, whose error is less than the last digit here. Needs LightGBM.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import shap
import torch
from captum.attr import ShapleyValueSampling
from sklearn.ensemble import RandomForestRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

import shap_ext  # noqa: F401 # it registers our algorithms

FloatArray = npt.NDArray[np.float64]
Answer = tuple[FloatArray, FloatArray | None]
"""Attributions, (R, M), and whether intervals hold the true ones, if there are any."""

ROWS_PER_FEATURE = (20, 60, 120, 250, 400, 800, 1600)
N_EXPLAINED = 2

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

    def __init__(self, kind: str, n_features: int, n_background: int, seed: int) -> None:
        x, y = drawn_data(n_features, seed)
        warnings.simplefilter("ignore")
        self.fitted = KINDS[kind](seed).fit(x, y)  # type: ignore[attr-defined]
        self.background = x[:n_background]
        # shap takes 100 rows of an array.
        self.masker = shap.maskers.Independent(self.background, n_background)
        self.rows = x[-N_EXPLAINED:]
        self.n_features, self.n_background, self.kind = n_features, n_background, kind
        self.truth = self._truth()

    def predict(self, x: FloatArray) -> FloatArray:
        """Return the predictions for rows."""
        predicted: FloatArray = np.asarray(self.fitted.predict(x), dtype=float)
        return predicted

    def _truth(self) -> FloatArray:
        if self.kind in ("boosted trees", "forest"):
            explainer = shap.TreeExplainer(
                self.fitted, self.masker, feature_perturbation="interventional"
            )
            return np.asarray(explainer.shap_values(self.rows, check_additivity=False))
        n_evaluations = 2**12 if self.n_features == 12 else 128 * self.n_features
        found = shap.Explainer(self.predict, self.masker, algorithm="oddgp", seed=99)
        return np.asarray(found(self.rows, max_evals=n_evaluations, silent=True).values)

    def error(self, found: FloatArray) -> float:
        """Return the error of attributions."""
        off = np.abs(found - self.truth).sum(axis=1) / np.abs(self.truth).sum(axis=1)
        return float(off.mean())


def by_permutation(task: Task, n_rows: int, seed: int) -> Answer:
    """Explain by shap's default for tables."""
    n_evaluations = n_rows // task.n_background
    if n_evaluations < 2 * task.n_features + 1:
        raise ValueError("fewer than one permutation")
    explainer = shap.PermutationExplainer(task.predict, task.masker, seed=seed)
    return np.asarray(explainer(task.rows, max_evals=n_evaluations, silent=True).values), None


def by_kernel(task: Task, n_rows: int, seed: int) -> Answer:
    """Explain by shap's KernelExplainer."""
    n_evaluations = n_rows // task.n_background - 1
    if n_evaluations < task.n_features + 1:
        raise ValueError("fewer evaluations than features")
    np.random.seed(seed)  # noqa: NPY002 # it has no other seed
    explainer = shap.KernelExplainer(task.predict, task.background)
    return np.asarray(explainer.shap_values(task.rows, nsamples=n_evaluations, silent=True)), None


def by_sampling(task: Task, n_rows: int, seed: int) -> Answer:
    """Explain by captum's sampling, whose baselines are one row: permutations share the rows."""
    each = n_rows // task.n_background
    n_samples = each // task.n_features
    if n_samples < 1:
        raise ValueError("fewer than one permutation for each background row")
    torch.manual_seed(seed)

    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(task.predict(x.numpy()))

    sampling, rows = ShapleyValueSampling(forward), torch.as_tensor(task.rows)
    total = np.zeros(task.rows.shape)
    for baseline in torch.as_tensor(task.background):
        total += sampling.attribute(
            rows, baselines=baseline[None], n_samples=n_samples, perturbations_per_eval=64
        ).numpy()
    return total / task.n_background, None


def by_ours(algorithm: str, *, on_all: bool) -> Callable[[Task, int, int], Answer]:
    """Return our explainer with a budget of coalitions, or of rows of the model."""

    def explain(task: Task, n_rows: int, seed: int) -> Answer:
        explainer = shap.Explainer(task.predict, task.masker, algorithm=algorithm, seed=seed)
        budget: dict[str, int] = {"max_model_rows": n_rows}
        if on_all:
            budget = {"max_evals": n_rows // task.n_background}
        found = np.asarray(explainer(task.rows, silent=True, **budget).values)
        estimate = explainer.last_estimate
        if estimate.model_rows.max() > n_rows:
            raise RuntimeError(f"{estimate.model_rows.max()} rows of the model, not {n_rows}")
        lower, upper = estimate.interval()
        rounding = 1e-9
        inside = (lower[..., 0] - rounding <= task.truth) & (task.truth <= upper[..., 0] + rounding)
        return found, inside

    return explain


METHODS: dict[str, Callable[[Task, int, int], Answer]] = {
    "shap, permutation": by_permutation,
    "shap, kernel": by_kernel,
    "captum, sampling": by_sampling,
    "oddgp, all background rows": by_ours("oddgp", on_all=True),
    "leastsquares, max_model_rows": by_ours("leastsquares", on_all=False),
    "oddgp, max_model_rows": by_ours("oddgp", on_all=False),
}


def measured(
    tasks: list[Task], n_seeds: int, rows_per_feature: tuple[int, ...]
) -> dict[str, list[tuple[float, float]]]:
    """Return the mean error and the coverage of each method at each number of rows."""
    results: dict[str, list[tuple[float, float]]] = {}
    for name, explain in METHODS.items():
        results[name] = []
        for each in rows_per_feature:
            errors: list[float] = []
            inside: list[FloatArray] = []
            for task in tasks:
                for seed in range(n_seeds):
                    try:
                        found, covered = explain(task, each * task.n_features, seed)
                    except ValueError:  # the budget is too small for the method
                        errors.append(np.nan)
                        continue
                    errors.append(task.error(found))
                    if covered is not None:
                        inside.append(covered)
            coverage = float(np.mean(inside)) if inside else np.nan
            results[name].append((float(np.mean(errors)), coverage))
    return results


def table(results: dict[str, list[tuple[float, float]]], rows: tuple[int, ...]) -> str:
    """Return the results as a table: errors, and in brackets the coverage of 95 % intervals."""
    lines = ["| rows per feature | " + " | ".join(f"{each:,}" for each in rows) + " |"]
    lines.append("|" + "---|" * (len(rows) + 1))
    for name, cells in results.items():
        texts = []
        for error, coverage in cells:
            text = "—" if np.isnan(error) else f"{error:.4f}".lstrip("0")
            texts.append(text if np.isnan(coverage) or text == "—" else f"{text} ({coverage:.2f})")
        lines.append(f"| {name} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def draw(
    of_features: dict[int, dict[str, list[tuple[float, float]]]],
    rows: tuple[int, ...],
    path: Path,
) -> None:
    """Draw errors against rows, a panel for each number of features."""
    figure, panels = plt.subplots(
        1, len(of_features), figsize=(3.1 * len(of_features), 3.6), sharey=True
    )
    styles = ("C7--", "C7:", "C7-.", "C0--", "C1-", "C3-")
    for panel, (n_features, results) in zip(
        np.atleast_1d(panels), of_features.items(), strict=True
    ):
        for style, (name, cells) in zip(styles, results.items(), strict=True):
            panel.plot(rows, [error for error, _ in cells], style, label=name, markersize=3)
        panel.set(xscale="log", yscale="log", xlabel="model rows per feature")
        panel.set_title(f"{n_features} features, 100 background rows", fontsize=9)
        panel.grid(alpha=0.3)
    np.atleast_1d(panels)[0].set_ylabel("error / sum of attributions")
    figure.legend(*np.atleast_1d(panels)[-1].get_legend_handles_labels(), ncol=3, fontsize=8,
                  loc="lower center", frameon=False)  # fmt: skip
    figure.tight_layout(rect=(0, 0.13, 1, 1))
    figure.savefig(path, dpi=130)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="12 features, two models")
    parser.add_argument("--backgrounds", type=int, help="only backgrounds of so many rows")
    parser.add_argument("--picture", type=Path, help="where the picture goes")
    parser.add_argument("--out", type=Path, help="where the tables go, too")
    options = parser.parse_args()
    kinds = list(KINDS)[:2] if options.quick else list(KINDS)
    rows = ROWS_PER_FEATURE[:4] if options.quick else ROWS_PER_FEATURE
    texts: list[str] = []
    pictured: dict[int, dict[str, list[tuple[float, float]]]] = {}

    def show(text: str) -> None:
        print(text, flush=True)
        texts.append(text)

    sizes = {12: (10, 100)} if options.quick else {12: (10, 100, 1000), 30: (100,), 60: (100,)}
    for n_features, backgrounds in sizes.items():
        for n_background in backgrounds:
            if options.backgrounds not in (None, n_background):
                continue
            tasks = [Task(kind, n_features, n_background, 7 + n_features) for kind in kinds]
            of_size = rows if n_background < 1000 else tuple(4 * each for each in rows[1:5])
            results = measured(tasks, 1 if n_features * n_background > 2000 else 2, of_size)
            show(f"\n{n_features} features, {n_background:,} background rows\n")
            show(table(results, of_size))
            if n_background == 100:
                pictured[n_features] = results
    if options.out:
        options.out.write_text("\n".join(texts) + "\n")
    if options.picture and not options.quick:
        draw(pictured, rows, options.picture)


if __name__ == "__main__":
    main()

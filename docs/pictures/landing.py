"""Draw the two pictures of the landing page, in a light and a dark form.

    python docs/pictures/landing.py            # draws the saved results
    python docs/pictures/landing.py --measure  # measures them anew, 90 seconds, and draws

Both use data and models of scikit-learn. Results are saved beside this file,
in `gain.csv` and `bars.csv`.
"""

import argparse
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shap_ext  # noqa: F401  makes shap.Explainer know algorithm="oddgp"

mpl.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent
IMAGES = FOLDER.parent / "images"
BUDGETS = (4, 8, 16, 32, 64)  # evaluations per feature
SEEDS = range(3)
N_ROWS = 20
BARS_BUDGETS = (3, 12)
N_BARS = 8  # features in the picture of error bars

COLOURS = {"oddgp": "#e8590c", "shap permutation": "#4c8bf5", "shap kernel": "#8a8f98"}
LABELS = {
    "oddgp": "ours, oddgp",
    "shap permutation": "shap, permutation",
    "shap kernel": "shap, kernel",
}
THEMES = {"light": "#24292f", "dark": "#d6dae0"}  # the colour of text and axes


class Case:
    """A model, the row that stands for absent features, rows to explain and their exact values."""

    def __init__(self, name: str, model, predict, reference, rows) -> None:
        self.name = name
        self.model = model
        self.predict = predict
        self.reference = reference
        self.rows = rows

    @property
    def n_features(self) -> int:
        return self.rows.shape[1]


def cases() -> list[Case]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0)
    trees = HistGradientBoostingClassifier(random_state=0).fit(X_train.to_numpy(), y_train)
    names = [*X.columns[:10], *X.columns[20:23]]  # means, and three of the worst
    network = make_pipeline(
        StandardScaler(), MLPClassifier((32, 32), alpha=0.1, max_iter=500, random_state=0)
    ).fit(X_train[names].to_numpy(), y_train)
    malignant = X_train[y_train == 0].median().to_frame().T
    return [
        Case(
            "Boosted trees, 30 features",
            trees,
            trees.decision_function,
            malignant.to_numpy(),
            X_test.iloc[:N_ROWS].to_numpy(),
        ),
        Case(
            "Neural network, 13 features",
            network,
            lambda X: np.subtract(*network.predict_log_proba(X).T[::-1]),
            malignant[names].to_numpy(),
            X_test[names].iloc[:N_ROWS].to_numpy(),
        ),
    ]


def exact_values(case: Case):
    """Return the Shapley values by TreeSHAP or by all coalitions."""
    if isinstance(case.model, HistGradientBoostingClassifier):
        return shap.TreeExplainer(case.model, case.reference).shap_values(case.rows)
    explainer = shap.Explainer(case.predict, case.reference, algorithm="enumeration")
    return explainer(case.rows).values


def measure_gain() -> pd.DataFrame:
    """Measure the errors of three explainers at equal numbers of evaluations."""
    results = []
    for case in cases():
        exact = exact_values(case)
        for per_feature in BUDGETS:
            for method in COLOURS:
                for seed in SEEDS:
                    values, evaluations = explain(method, case, per_feature * case.n_features, seed)
                    error = np.abs(values - exact).sum(axis=1).mean()
                    results.append((case.name, method, per_feature, seed, evaluations, error))
    columns = ["case", "method", "per_feature", "seed", "evaluations", "error"]
    return pd.DataFrame(results, columns=columns)


def explain(method: str, case: Case, budget: int, seed: int):
    """Return the values of `method`, and the evaluations per row that it really made."""
    n_evaluations = 0

    def counted(X):
        nonlocal n_evaluations
        n_evaluations += len(X)
        return case.predict(np.asarray(X))

    np.random.seed(seed)  # noqa: NPY002  shap's explainers draw from the global generator
    if method == "shap kernel":
        explainer = shap.KernelExplainer(counted, case.reference)
        n_evaluations = 0
        values = explainer.shap_values(case.rows, nsamples=budget, l1_reg=False, silent=True)
    else:
        algorithm = method.removeprefix("shap ")
        explainer = shap.Explainer(counted, case.reference, algorithm=algorithm, seed=seed)
        # shap's permutation explainer rounds its budget down to whole permutations.
        least = 2 * case.n_features + 1 if algorithm == "permutation" else 0
        values = explainer(case.rows, max_evals=max(budget, least), silent=True).values
    return values, n_evaluations / len(case.rows)


def measure_bars() -> pd.DataFrame:
    """Explain one row by few and by more evaluations, with 95 % intervals."""
    case = cases()[0]
    furthest = np.argmax(case.predict(case.rows))  # from the reference, a malignant case
    row = case.rows[furthest : furthest + 1]
    exact = exact_values(case)[furthest]
    names = load_breast_cancer().feature_names
    results = []
    for per_feature in BARS_BUDGETS:
        explainer = shap.Explainer(case.predict, case.reference, algorithm="oddgp", seed=0)
        explanation = explainer(row, max_evals=per_feature * case.n_features, error_bounds=True)
        for feature in np.argsort(-np.abs(exact)):
            results.append(
                (
                    per_feature,
                    names[feature],
                    exact[feature],
                    explanation.values[0, feature],
                    explanation.lower_bounds[0, feature],
                    explanation.upper_bounds[0, feature],
                )
            )
    columns = ["per_feature", "feature", "exact", "value", "lower", "upper"]
    return pd.DataFrame(results, columns=columns)


def draw_gain(results: pd.DataFrame, colour: str) -> None:
    _, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")
    for axis, (name, of_case) in zip(axes, results.groupby("case", sort=False), strict=True):
        for method, of_method in of_case.groupby("method", sort=False):
            mean = of_method.groupby("per_feature")[["evaluations", "error"]].mean()
            axis.plot(
                mean["evaluations"],
                mean["error"],
                marker="o",
                markersize=5,
                linewidth=2.5 if method == "oddgp" else 1.8,
                color=COLOURS[method],
                label=LABELS[method],
            )
        axis.set(xscale="log", yscale="log", title=name, xlabel="evaluations per row")
        ticks = of_case.groupby("per_feature")["evaluations"].median()
        axis.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks])
        axis.minorticks_off()
        axis.grid(color=colour, alpha=0.15)
    axes[0].set_ylabel("error, Σ|φ̂ − φ|")
    axes[0].legend(frameon=False, labelcolor=colour)


def draw_bars(results: pd.DataFrame, colour: str) -> None:
    _, axes = plt.subplots(
        1, len(BARS_BUDGETS), figsize=(7.2, 3.4), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (per_feature, rows) in zip(axes, results.groupby("per_feature"), strict=True):
        shown = rows.iloc[:N_BARS].iloc[::-1]
        heights = np.arange(len(shown))
        axis.barh(heights, shown["value"], color=COLOURS["oddgp"], alpha=0.55, height=0.6)
        errors = [shown["value"] - shown["lower"], shown["upper"] - shown["value"]]
        axis.errorbar(
            shown["value"], heights, xerr=errors, fmt="none", ecolor=colour, capsize=3, lw=1.6
        )
        axis.scatter(
            shown["exact"], heights, marker="D", s=26, zorder=3, facecolors="none",
            edgecolors=COLOURS["shap permutation"], linewidths=1.8, label="exact value",
        )  # fmt: skip
        axis.set_yticks(heights, shown["feature"])
        axis.set(title=f"{per_feature} evaluations per feature", xlabel="attribution (log-odds)")
        axis.axvline(0, color=colour, lw=0.8)
    axes[0].legend(frameon=False, labelcolor=colour, loc="lower right")


def save(draw, results: pd.DataFrame, name: str) -> None:
    """Save the picture once for light and once for dark pages."""
    for theme, colour in THEMES.items():
        style = {
            "text.color": colour,
            "axes.labelcolor": colour,
            "axes.edgecolor": colour,
            "xtick.color": colour,
            "ytick.color": colour,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "font.size": 11,
            "svg.hashsalt": name,  # equal results give equal files
        }
        with mpl.rc_context(style):
            draw(results, colour)
            plt.savefig(IMAGES / f"{name}_{theme}.svg", transparent=True, metadata={"Date": None})
            plt.close("all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true")
    if parser.parse_args().measure:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # small budgets, and shap's own
            measure_gain().to_csv(FOLDER / "gain.csv", index=False, float_format="%.6g")
            measure_bars().to_csv(FOLDER / "bars.csv", index=False, float_format="%.6g")
    gain = pd.read_csv(FOLDER / "gain.csv")
    save(draw_gain, gain, "gain")
    save(draw_bars, pd.read_csv(FOLDER / "bars.csv"), "bars")
    table = gain.pivot_table(index=["case", "per_feature"], columns="method", values="error")
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()

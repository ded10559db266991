"""Draw the picture of the README and of the landing page, in a light and a dark form.

    python docs/pictures/landing.py            # draws the saved results
    python docs/pictures/landing.py --measure  # measures them anew and draws

Prints errors and how many intervals contain the exact value. Results are saved in `bars.csv`.
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

import shap_ext  # noqa: F401  makes shap.Explainer know algorithm="best"

mpl.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent
IMAGES = FOLDER.parent / "images"
N_ROWS = 20  # among which one is explained
N_EVALUATIONS = 122  # two orders of the features and their reverses
METHODS = {"best": "best", "permutation": "shap's permutation"}
N_BARS = 8  # features in the picture of error bars

OURS, EXACT = "#e8590c", "#4c8bf5"
THEMES = {"light": "#24292f", "dark": "#d6dae0"}  # the colour of text and axes


def measure_bars() -> pd.DataFrame:
    """Explain one row by as many evaluations of two methods; ours has 95 % intervals."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0)
    trees = HistGradientBoostingClassifier(random_state=0).fit(X_train, y_train)
    score = trees.decision_function
    reference = np.median(X_train[y_train == 0], axis=0)[None]  # a malignant case
    rows = X_test[:N_ROWS]
    row = rows[[np.argmax(score(rows))]]  # the furthest from the reference
    exact = shap.TreeExplainer(trees, reference).shap_values(row)[0]
    names = load_breast_cancer().feature_names
    results = []
    for algorithm, method in METHODS.items():
        explainer = shap.Explainer(score, reference, algorithm=algorithm, seed=0)
        options = {"error_bounds": True} if algorithm == "best" else {}
        explanation = explainer(row, max_evals=N_EVALUATIONS, **options)
        table = pd.DataFrame({"method": method, "feature": names, "exact": exact})
        table["value"] = table["lower"] = table["upper"] = explanation.values[0]
        if options:
            table["lower"] = explanation.lower_bounds[0]
            table["upper"] = explanation.upper_bounds[0]
        results.append(table.iloc[np.argsort(-np.abs(exact))])
    return pd.concat(results)


def draw_bars(results: pd.DataFrame, colour: str) -> None:
    _, axes = plt.subplots(
        1, len(METHODS), figsize=(7.2, 3.4), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (method, rows) in zip(axes, results.groupby("method"), strict=True):
        shown = rows.iloc[:N_BARS].iloc[::-1]
        heights = np.arange(len(shown))
        axis.barh(heights, shown["value"], color=OURS, alpha=0.55, height=0.6)
        errors = [shown["value"] - shown["lower"], shown["upper"] - shown["value"]]
        if np.any(errors):
            axis.errorbar(
                shown["value"], heights, xerr=errors, fmt="none", ecolor=colour, capsize=3, lw=1.6
            )
        axis.scatter(
            shown["exact"], heights, marker="D", s=26, zorder=3, facecolors="none",
            edgecolors=EXACT, linewidths=1.8, label="exact value",
        )  # fmt: skip
        axis.set_yticks(heights, shown["feature"])
        axis.set(title=method, xlabel="attribution (log-odds)")
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
            warnings.simplefilter("ignore")  # of shap
            measure_bars().to_csv(FOLDER / "bars.csv", index=False, float_format="%.6g")
    results = pd.read_csv(FOLDER / "bars.csv")
    for method, rows in results.groupby("method"):
        inside = rows["exact"].between(rows["lower"], rows["upper"])[:N_BARS].sum()
        error = (rows["value"] - rows["exact"]).abs().sum() / rows["exact"].abs().sum()
        print(f"{method}: error {error:.2f}, {inside} of the {N_BARS} drawn in their intervals")
    save(draw_bars, results, "bars")


if __name__ == "__main__":
    main()

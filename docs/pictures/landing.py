"""Draw two pictures of the landing page, in a light and a dark form.

    python docs/pictures/landing.py            # draws the saved results
    python docs/pictures/landing.py --measure  # measures them anew and draws

They use models of scikit-learn, its data on breast cancer, and the opinions of the tutorials.
Results are saved beside this file, in `text.csv` and `bars.csv`.
"""

import argparse
import re
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import shap_ext  # noqa: F401  makes shap.Explainer know algorithm="oddgp"

mpl.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent
IMAGES = FOLDER.parent / "images"
OPINIONS = FOLDER.parent / "tutorials" / "texts_images_graphs" / "opinions.csv"
N_ROWS = 20  # among which one is explained
BARS_BUDGETS = (3, 12)  # evaluations per feature
N_BARS = 8  # features in the picture of error bars
TEXT = "i did not find the music boring and the cast was never very silly"
TEXT_BUDGET = 87  # evaluations: three orders of shap and their reverses

OURS, EXACT, RAISES, LOWERS = "#e8590c", "#4c8bf5", "#ff0051", "#008bfb"
THEMES = {"light": "#24292f", "dark": "#d6dae0"}  # the colour of text and axes


def words_and_pairs(text: str) -> list[str]:
    """Return the words of a text, and pairs of words that are close together."""
    words = re.findall(r"\w+", text)
    return words + [f"{a} … {b}" for i, a in enumerate(words) for b in words[i + 1 : i + 6]]


def measure_text() -> pd.DataFrame:
    """Explain a text by shap's permutation explainer and by oddgp, at equal evaluations."""
    opinions = pd.read_csv(OPINIONS)
    opinions = opinions[~opinions["text"].str.contains("but")]  # its rule is too hard for the model
    train, _ = train_test_split(opinions, random_state=0)
    model = make_pipeline(TfidfVectorizer(analyzer=words_and_pairs), LogisticRegression(C=30))
    score = model.fit(train["text"], train["is_good"]).decision_function
    masker = shap.maskers.Text(r"\W+")

    def explained(algorithm: str, budget: int, **options: object):
        explainer = shap.Explainer(score, masker, algorithm=algorithm, seed=0)
        return explainer([TEXT], max_evals=budget, silent=True, **options)[0]

    exact = explained("enumeration", 2**14)
    theirs = explained("permutation", TEXT_BUDGET)
    ours = explained("oddgp", TEXT_BUDGET, error_bounds=True)
    return pd.DataFrame(
        {
            "word": [word.strip() for word in exact.data],
            "exact": exact.values,
            "permutation": theirs.values,
            "oddgp": ours.values,
            "lower": ours.lower_bounds,
            "upper": ours.upper_bounds,
        }
    )


def measure_bars() -> pd.DataFrame:
    """Explain one row by few and by more evaluations, with 95 % intervals."""
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
    for per_feature in BARS_BUDGETS:
        explainer = shap.Explainer(score, reference, algorithm="oddgp", seed=0)
        explanation = explainer(row, max_evals=per_feature * row.shape[1], error_bounds=True)
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


def draw_text(results: pd.DataFrame, colour: str) -> None:
    _, axes = plt.subplots(1, 2, figsize=(7.2, 4.2), sharex=True, sharey=True, layout="constrained")
    heights = np.arange(len(results))
    titles = {"permutation": "shap, permutation", "oddgp": "ours, oddgp"}
    for axis, (method, title) in zip(axes, titles.items(), strict=True):
        values = results[method]
        errors = [values - results["lower"], results["upper"] - values]
        colours = np.where(values > 0, RAISES, LOWERS)
        axis.barh(heights, values, color=colours, alpha=0.55, height=0.6)
        if method == "oddgp":
            axis.errorbar(values, heights, xerr=errors, fmt="none", ecolor=colour, capsize=2)
        axis.scatter(
            results["exact"], heights, marker="D", s=20, zorder=3, facecolors="none",
            edgecolors=colour, linewidths=1.2, label="exact value",
        )  # fmt: skip
        error = np.abs(values - results["exact"]).mean()
        axis.set(title=f"{title}: mean error {error:.2f}", xlabel="attribution (log-odds)")
        axis.set_yticks(heights, results["word"])
        axis.axvline(0, color=colour, lw=0.8)
    axes[0].invert_yaxis()
    axes[0].legend(frameon=False, labelcolor=colour, loc="lower right")


def draw_bars(results: pd.DataFrame, colour: str) -> None:
    _, axes = plt.subplots(
        1, len(BARS_BUDGETS), figsize=(7.2, 3.4), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (per_feature, rows) in zip(axes, results.groupby("per_feature"), strict=True):
        shown = rows.iloc[:N_BARS].iloc[::-1]
        heights = np.arange(len(shown))
        axis.barh(heights, shown["value"], color=OURS, alpha=0.55, height=0.6)
        errors = [shown["value"] - shown["lower"], shown["upper"] - shown["value"]]
        axis.errorbar(
            shown["value"], heights, xerr=errors, fmt="none", ecolor=colour, capsize=3, lw=1.6
        )
        axis.scatter(
            shown["exact"], heights, marker="D", s=26, zorder=3, facecolors="none",
            edgecolors=EXACT, linewidths=1.8, label="exact value",
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
            measure_text().to_csv(FOLDER / "text.csv", index=False, float_format="%.6g")
            measure_bars().to_csv(FOLDER / "bars.csv", index=False, float_format="%.6g")
    save(draw_text, pd.read_csv(FOLDER / "text.csv"), "text")
    save(draw_bars, pd.read_csv(FOLDER / "bars.csv"), "bars")


if __name__ == "__main__":
    main()

"""Draw the plots of convergence and comparison: docs/images/convergence.png and comparison.png.

python docs/pictures/convergence_and_comparison.py
"""

from pathlib import Path

import matplotlib as mpl
import shap
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import shap_ext

mpl.use("Agg")
IMAGES = Path(__file__).parents[1] / "images"


def main() -> None:
    features, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = GradientBoostingRegressor(random_state=0).fit(features, progression)
    row, background = features.iloc[:1], features.iloc[:40]

    def explain(algorithm: str, seed: int, **options: object) -> shap.Explanation:
        explainer = shap.Explainer(model, background, algorithm=algorithm, seed=seed)
        return explainer(row, error_bounds=True, **options)[0]

    exact = explain("enumeration", 0)
    traced = explain("oddgp", 0, max_evals=300, trace=True)
    axes = shap_ext.plots.convergence(traced, exact=exact, show=False)
    axes.figure.savefig(IMAGES / "convergence.png", dpi=90, bbox_inches="tight")
    pair = explain("oddgp", 0, max_evals=40), explain("leastsquares", 1, max_evals=40)
    axes = shap_ext.plots.comparison(*pair, names=("oddgp", "KernelSHAP"), show=False)
    axes.figure.savefig(IMAGES / "comparison.png", dpi=90, bbox_inches="tight")


if __name__ == "__main__":
    main()

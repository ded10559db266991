"""Draw the picture of "Global importance": absolute attributions, and the reduction of the loss.

python docs/pictures/global_importance.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import shap_ext  # noqa: F401 - adds the algorithms to shap.Explainer

IMAGES = Path(__file__).parents[1] / "images"

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.iloc[:, :10]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
model = RandomForestClassifier(30, min_samples_leaf=8, random_state=0).fit(X_train, y_train)
explainer = shap.Explainer(
    lambda rows: model.predict_proba(rows)[:, 1],
    X_train.sample(8, random_state=0),
    algorithm="randomorder",
    seed=0,
)
magnitudes = explainer.global_importance(X_test, max_evals=40, silent=True)
of_loss = explainer.global_importance(
    X_test, y_test, kind="loss", loss="cross_entropy", max_evals=40, silent=True
)
figure, (above, below) = plt.subplots(2, figsize=(6, 7.6), layout="constrained")
for axes, found, title in (
    (above, magnitudes, "What moves the prediction"),
    (below, of_loss, "What makes the prediction right"),
):
    found.plot(ax=axes)
    axes.set_title(f"{title}\n{found.n_rows} rows, {found.evaluations:,} evaluations", fontsize=11)
figure.savefig(IMAGES / "global_importance.png", dpi=110)
print(magnitudes, of_loss, sep="\n")

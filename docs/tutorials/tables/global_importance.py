"""
Global importance with error bars
=================================

**For whom:** you report which features matter over a whole table, and a reader asks how sure you
are.

The importance of a feature is the mean of its absolute attributions. Two things make it
uncertain: you explain only some rows, and each attribution is estimated. This page shows bars that
hold both, and how to divide evaluations among rows.
"""

# %%
# A model of diabetes
# -------------------
# 442 patients with ten measurements each, which scikit-learn ships. The model predicts the
# progress of the disease after one year.

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import shap_ext  # adds our algorithms to shap.Explainer

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = GradientBoostingRegressor(n_estimators=60, random_state=0).fit(X, y)
background = X.median().to_frame().T
print(f"R² on the training data: {model.score(X, y):.2f}")

# %%
# The plots of shap
# -----------------
# 100 patients, with 64 of the 1,024 coalitions each.

rows = X.sample(100, random_state=0)
explainer = shap.Explainer(model, background, algorithm="oddgp", seed=0, independent_rows=True)
explanation = explainer(rows, max_evals=64, error_bounds=True)
print(explainer.last_estimate)
shap.plots.beeswarm(explanation)

# %%
# The importance, and its bars
# ----------------------------
# `global_importance` averages over rows that are a random sample. Its standard errors hold the
# differences between patients and the errors of the estimates. 40 evaluations pay for two orders of
# the ten features, and for their reverses.

importance_explainer = shap.Explainer(model, background, algorithm="randomorder", seed=0)
importance = importance_explainer.global_importance(X, max_evals=40, silent=True)
print(importance)
importance.to_frame().round(2)

# %%
# `oddgp` is biased for small budgets, so that its errors may not cancel in a mean over rows. Random
# orders are unbiased.

importance.plot()
plt.show()

# %%
# What makes the prediction right?
# --------------------------------
# A feature may move the prediction without making it better. `kind="loss"` measures by how much a
# feature lowers the squared error (SAGE).

of_loss = importance_explainer.global_importance(
    X, y, kind="loss", loss="squared_error", max_evals=40, silent=True
)
of_loss.plot()
plt.show()

# %%
# Many rows or many evaluations?
# ------------------------------
# We have 6,400 evaluations and spend them in four ways. The truth is the mean over all 442
# patients of the exact values. We repeat each way with eight samples of patients.

exact = shap.Explainer(model, background, algorithm="enumeration")(X)
truth = np.abs(exact.values).mean(axis=0)

choices = [(12, 512), (25, 256), (100, 64), (200, 32)]


def relative_error(n_rows, budget, seed):
    some = explainer(X.sample(n_rows, random_state=seed), max_evals=budget)
    return np.abs(np.abs(some.values).mean(axis=0) - truth).sum() / truth.sum()


errors = {
    f"{n_rows} rows\n× {budget}": [relative_error(n_rows, budget, seed) for seed in range(8)]
    for n_rows, budget in choices
}
figure, axes = plt.subplots(figsize=(7, 4))
for position, values in enumerate(errors.values()):
    axes.plot([position] * len(values), values, "o", alpha=0.5, color="tab:blue")
    axes.plot(position, np.mean(values), "k_", markersize=30)
axes.set_xticks(range(len(errors)), errors.keys())
axes.set(ylabel="relative error of the importance", title="6,400 evaluations, spent in four ways")
axes.set_ylim(0)
figure.tight_layout()
plt.show()

# %%
# Groups of rows
# --------------
# shap compares groups of rows side by side. Here are patients below and above the median age.

is_old = rows["age"] > rows["age"].median()
by_age = explanation.cohorts(np.where(is_old, "older", "younger").tolist())
shap.plots.bar(by_age.abs.mean(0))

# %%
# What to read next
# -----------------
# - :doc:`/global_importance`: all options, and what the standard errors hold.
# - :doc:`/budgets_and_error_bars`: independent rows, with a table of errors.
# - :doc:`/coming_from_shap`: what happens to error bars in sums and means of explanations.
# - :doc:`/streams_and_checkpoints`: millions of rows.

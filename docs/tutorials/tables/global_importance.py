"""
Global importance with error bars
=================================

**For whom:** you report which features matter over a whole table, and a reader asks how sure you
are.

The importance of a feature is the mean of its absolute attributions. Two things make it
uncertain: you explain only some rows, and each attribution is estimated. This page shows how to
draw the bars of both, and how to spend a given number of evaluations.
"""

# %%
# A model of diabetes
# -------------------
# 442 patients with ten measurements each, which scikit-learn ships. The model predicts the
# progress of the disease after one year.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
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
# `independent_rows=True` gives each row random draws of its own. The errors of the rows then
# cancel in averages. Without it, all rows share their draws, and their errors are similar.
#
# The bar of the rows
# -------------------
# The mean over 100 patients differs from the mean over all patients. Its standard error is the
# standard deviation over the patients, divided by the root of their number.

magnitudes = np.abs(explanation.values)
importance = pd.Series(magnitudes.mean(axis=0), index=X.columns)
from_rows = pd.Series(magnitudes.std(axis=0, ddof=1) / np.sqrt(len(rows)), index=X.columns)

# %%
# The bar of the estimates
# ------------------------
# `error_std` holds the standard error of each attribution. Those of different rows are
# independent, so that the error of the mean is the root of the sum of their squares, divided by
# the number of rows.

from_estimates = np.sqrt((explanation.error_std**2).sum(axis=0)) / len(rows)
table = pd.DataFrame(
    {"importance": importance, "from rows": from_rows, "from estimates": from_estimates}
).sort_values("importance", ascending=False)
table.round(2)

# %%
# The estimates add almost nothing. This is typical: once you average over rows, few evaluations
# per row are enough, and more rows are better than more evaluations. A bar plot with 95 %
# intervals:

total = np.hypot(table["from rows"], table["from estimates"])
figure, axes = plt.subplots(figsize=(7, 4))
axes.barh(table.index, table["importance"], xerr=1.96 * total, capsize=3, color="#ff0051")
axes.invert_yaxis()
axes.set(xlabel="mean |attribution|", title="importance with 95 % intervals, 100 patients")
figure.tight_layout()
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
# - :doc:`/budgets_and_error_bars`: independent rows, with a table of errors.
# - :doc:`/using_with_shap`: what happens to error bars in sums and means of explanations.
# - :doc:`/streams_and_checkpoints`: millions of rows.

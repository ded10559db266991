"""
How many evaluations? Choose an accuracy or a time
==================================================

**For whom:** you do not know which budget to pass. You know how accurate the values must be, or
how long you can wait.

`tolerance=` stops each row as soon as its standard errors are small enough. `max_seconds=`
chooses the largest budget that fits into a time. Both work with all algorithms but those on
graphs, in shap and in captum.
"""

# %%
# A model with easy and hard rows
# -------------------------------
# A network with 30 features; scikit-learn ships the data. The explained output is the log-odds of
# a benign tumour.

import time

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shap_ext  # adds our algorithms to shap.Explainer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
network = make_pipeline(StandardScaler(), MLPClassifier((40,), max_iter=1000, random_state=0))
network.fit(X, y)
reference = X.mean().to_frame().T
rows = X.iloc[:25]


def log_odds(table):
    probability = np.clip(network.predict_proba(table)[:, 1], 1e-9, 1 - 1e-9)
    return np.log(probability / (1 - probability))


# %%
# A fixed budget
# --------------
# With the same budget for all rows, easy rows are more accurate than needed, and hard rows less.

explainer = shap.Explainer(log_odds, reference, algorithm="oddgp", seed=0)
fixed = explainer(rows, max_evals=240, error_bounds=True)
print(explainer.last_estimate)
largest = fixed.error_std.max(axis=1)
print(f"largest standard error of a row: from {largest.min():.4f} to {largest.max():.4f}")

# %%
# An accuracy
# -----------
# `tolerance=0.02` is in units of the output. A row stops as soon as none of its standard errors
# is larger.

explanation = explainer(rows, tolerance=0.02, error_bounds=True)
evaluations = explainer.last_estimate.evaluations
print(explainer.last_estimate)
print(f"largest standard error: {explanation.error_std.max():.4f}")

# %%
# Each row has the budget that it needs:

figure, axes = plt.subplots(figsize=(7, 4))
axes.plot(evaluations, largest, "o", alpha=0.6)
axes.axvline(240, color="0.6", linestyle="--", label="fixed budget")
axes.axhline(0.02, color="tab:red", linestyle="--", label="tolerance")
axes.set(
    xlabel="evaluations that tolerance=0.02 takes",
    ylabel="largest standard error\nat 240 evaluations",
    title="25 rows: hard ones get more evaluations",
)
axes.legend()
figure.tight_layout()
plt.show()

# %%
# A percentage is relative to the row: to the distance between its largest and its smallest
# attribution. A row of small attributions must then be more accurate. Here 5 % is enough for a
# picture:

relative = explainer(rows, tolerance="5%", error_bounds=True)
print(explainer.last_estimate)
shap.plots.waterfall(relative[0])

# %%
# A time
# ------
# With `max_seconds=`, the call first measures what an evaluation costs, and chooses the budget.

some = rows.iloc[:3]
started = time.perf_counter()
explanation = explainer(some, max_seconds=5)
budget = explainer.last_estimate.budget
print(f"{budget} evaluations per row, took {time.perf_counter() - started:.1f} s")

# %%
# The budget depends on the machine. The same seed with `max_evals=` of that number repeats the
# values, on any machine:

again = explainer(some, max_evals=budget)
print("the same values:", np.array_equal(again.values, explanation.values))

# %%
# Were there enough evaluations?
# ------------------------------
# `trace=True` stores what the first evaluations alone would give, at no further cost. Where the
# lines are level and the 95 % intervals narrow, more evaluations change little.

explainer(rows.iloc[:1], max_evals=960, trace=True)
trace = explainer.last_estimate.trace
is_known = trace.evaluations[0] > 0
evaluations = trace.evaluations[0, is_known]
values, halves = trace.values[0, :, is_known, 0], 1.96 * trace.standard_errors[0, :, is_known, 0]

figure, axes = plt.subplots(figsize=(7, 4))
for feature in np.argsort(-np.abs(values[-1]))[:6]:
    centre, half = values[:, feature], halves[:, feature]
    (line,) = axes.plot(evaluations, centre, "o-", markersize=3, label=X.columns[feature])
    axes.fill_between(evaluations, centre - half, centre + half, color=line.get_color(), alpha=0.18)
room = 0.25 * np.ptp(values)  # the first intervals may be very wide
axes.set_ylim(values.min() - room, values.max() + room)
axes.set(xscale="log", xlabel="evaluations of the row", ylabel="attribution")
axes.legend(fontsize=8)
figure.tight_layout()
plt.show()

# %%
# Two explanations side by side
# -----------------------------
# The same row by two methods with different seeds. A difference of explanations has intervals of
# its own: a star marks features whose difference is significant at 5 %.

pair = {
    name: shap.Explainer(log_odds, reference, algorithm=name, seed=seed)(
        rows.iloc[:1], max_evals=240, error_bounds=True
    )[0]
    for seed, name in enumerate(["oddgp", "leastsquares"])
}
difference = pair["oddgp"] - pair["leastsquares"]
is_significant = (difference.lower_bounds > 0) | (difference.upper_bounds < 0)

figure, axes = plt.subplots(figsize=(7, 4.5))
order = np.argsort(-np.abs(pair["oddgp"].values))[:12][::-1]
for shift, (name, one) in zip((0.15, -0.15), pair.items(), strict=True):
    ends = [one.values - one.lower_bounds, one.upper_bounds - one.values]
    axes.errorbar(
        one.values[order],
        np.arange(12) + shift,
        xerr=np.array(ends)[:, order],
        fmt="o",
        capsize=3,
        label=name,
    )
names = np.where(is_significant, "★ " + X.columns, X.columns)
axes.set_yticks(np.arange(12), names[order])
axes.set_xlabel("attribution, with 95 % intervals")
axes.legend()
figure.tight_layout()
plt.show()

# %%
# Not sure which algorithm?
# -------------------------
# `algorithm="best"` evaluates all coalitions of a row where the budget or the time pays for them,
# and uses `oddgp` for all others. Here the first two rows differ from the reference in eight
# features only. They have 256 coalitions and are exact:

close = X.iloc[:4].copy()
close.iloc[:2, 8:] = reference.iloc[0, 8:].to_numpy()
best = shap.Explainer(log_odds, reference, algorithm="best", seed=0)
best(close, max_evals=300)
print(best.last_estimate)
print("exact:", best.last_estimate.enumerated)

# %%
# What to read next
# -----------------
# - :doc:`/budgets_and_error_bars`: when a row stops, and what is measured.
# - :doc:`/choosing_an_estimator`: which algorithm has the least error.
# - :doc:`networks_for_many_rows`: when even a few evaluations per row are too many.

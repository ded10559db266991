"""
Boosted trees: how close to TreeSHAP?
=====================================

**For whom:** you explain boosted trees with shap, and want to know how accurate an explainer is
that sees only the outputs of the model.

TreeSHAP reads the trees and returns exact Shapley values. Use it where it works. It does not work
for a calibrated classifier, a stack of models, or trees behind a pipeline. The explainers on this
page take any function. Here they explain plain trees, so that TreeSHAP can say how large their
errors are.
"""

# %%
# The data and the trees
# ----------------------
# Tumours with 30 measurements each; scikit-learn ships them. The model is LightGBM, and we
# explain its log-odds. The reference is one typical malignant tumour: the median of each
# measurement.

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import shap_ext  # adds our algorithms to shap.Explainer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
trees = lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, random_state=0, n_jobs=1)
trees.fit(X_train.to_numpy(), y_train)
accuracy = trees.score(X_test.to_numpy(), y_test)
print(f"Accuracy on {len(X_test)} other tumours: {accuracy:.3f}")


def log_odds(rows):
    return trees.predict(np.asarray(rows), raw_score=True)


reference = X_train[y_train == 0].median().to_frame().T
rows = X_test.iloc[:10]

# %%
# The exact values
# ----------------
# TreeSHAP with a background computes the values of the same game that the other explainers
# estimate.

exact = shap.TreeExplainer(trees, reference).shap_values(rows)

# %%
# One word changes the explainer
# ------------------------------
# `algorithm="oddgp"` chooses our explainer. Everything else is as in shap, and the result is an
# ordinary `shap.Explanation`. With 8 evaluations per feature:

explainer = shap.Explainer(log_odds, reference, algorithm="oddgp", seed=0)
explanation = explainer(rows, max_evals=8 * 30, error_bounds=True)
print(explainer.last_estimate)

# %%
# Error against evaluations
# -------------------------
# The error is the sum of the absolute errors of the 30 features, averaged over the rows. We
# compare with shap's own two explainers for any model. They get the same number of evaluations
# per row. (One evaluation is the value of one coalition for one row.)


def values_of(method, budget):
    """Return the values by one method, with at most `budget` evaluations per row."""
    if method == "KernelExplainer":
        np.random.seed(0)  # it draws from NumPy's global generator
        kernel = shap.KernelExplainer(log_odds, reference)
        return kernel.shap_values(rows, nsamples=budget, l1_reg=False, silent=True)
    return shap.Explainer(log_odds, reference, algorithm=method, seed=0)(
        rows, max_evals=budget, silent=True
    ).values


methods = {
    "KernelExplainer": "shap, KernelExplainer",
    "permutation": "shap, permutation",
    "leastsquares": "ours, leastsquares",
    "oddgp": "ours, oddgp",
}
per_feature = [4, 8, 16, 32]
errors = {
    method: [np.abs(values_of(method, 30 * n) - exact).sum(axis=1).mean() for n in per_feature]
    for method in methods
}
print(f"Sum of the absolute exact values: {np.abs(exact).sum(axis=1).mean():.1f}")
for method, name in methods.items():
    print(f"{name:24}", "  ".join(f"{error:6.3f}" for error in errors[method]))

# %%

figure, axes = plt.subplots(figsize=(7, 4))
for method, name in methods.items():
    is_ours = name.startswith("ours")
    axes.plot(per_feature, errors[method], "o-" if is_ours else "s--", label=name)
axes.set(
    xscale="log",
    yscale="log",
    xlabel="evaluations per feature",
    ylabel="error",
    title="Distance from TreeSHAP, 10 tumours",
)
axes.set_xticks(per_feature, per_feature)
axes.set_yticks([0.2, 0.5, 1, 2, 5], [0.2, 0.5, 1, 2, 5])
axes.minorticks_off()
axes.legend()
figure.tight_layout()
plt.show()

# %%
# `oddgp` learns from the values of each row which features interact. Trees have few strong
# interactions, so that it has a much smaller error than the others.
#
# Honest error bars
# -----------------
# In practice there are no exact values to compare with. Then the standard errors say how far the
# result may be off. We take very few evaluations, four per feature, so that the bars can be seen,
# and look at the tumour with the largest standard errors.

few = explainer(rows, max_evals=4 * 30, error_bounds=True)
hardest = int(few.error_std.mean(axis=1).argmax())
shap.plots.waterfall(few[hardest])

# %%
# The thin lines at the ends of the bars are 95 % intervals. Here are all features of the same
# tumour with their intervals, and the exact value of TreeSHAP as a cross.

row = few[hardest]
order = np.argsort(-np.abs(exact[hardest]))[:12][::-1]
below, above = row.values - row.lower_bounds, row.upper_bounds - row.values
figure, axes = plt.subplots(figsize=(7, 4.5))
axes.errorbar(
    row.values[order],
    np.arange(12),
    xerr=[below[order], above[order]],
    fmt="o",
    capsize=3,
    label="oddgp, 120 evaluations, 95 % interval",
)
axes.plot(exact[hardest][order], np.arange(12), "kx", markersize=8, label="TreeSHAP")
axes.set_yticks(np.arange(12), X.columns[order])
axes.axvline(0, color="0.8", zorder=0)
axes.set_xlabel("attribution to the log-odds of a benign tumour")
axes.legend(loc="lower right")
figure.tight_layout()
plt.show()

# %%
# The intervals are meant to contain 95 % of the exact values. We count how many of the 300 they
# contain.

for n in per_feature:
    bars = explainer(rows, max_evals=30 * n, error_bounds=True)
    is_inside = (bars.lower_bounds <= exact) & (exact <= bars.upper_bounds)
    width = (bars.upper_bounds - bars.lower_bounds).mean()
    print(f"{n:3} evaluations per feature: {is_inside.mean():.0%} inside, mean width {width:.3f}")

# %%
# The intervals become narrow quickly. :doc:`/measurements` counts for many kinds of models how many
# exact values they contain.
#
# What to read next
# -----------------
# - :doc:`/budgets_and_error_bars`: what is counted, and what the standard errors mean.
# - :doc:`/choosing_an_estimator`: when another algorithm than `oddgp` is better.
# - :doc:`/measurements`: the same comparison on many models, with sixteen other methods.

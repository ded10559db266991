"""
Interactions of any model
=========================

**For whom:** you explain a table, and want to know which features act together.

For trees, shap's ``TreeExplainer`` says so. Here a neural network is explained, from the
evaluations that give its Shapley values.
"""

# %%
# A model with interactions
# -------------------------
# Wine of three kinds, described by thirteen measurements. The network returns the logarithm of the
# odds of the first kind.

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_wine
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shap_ext

wine = load_wine(as_frame=True)
names = [name.replace("_", " ") for name in wine.feature_names]
X = wine.data.set_axis(names, axis=1)
network = make_pipeline(StandardScaler(), MLPClassifier((32, 32), max_iter=800, random_state=0))
network.fit(X, wine.target == 0)


def log_odds(rows):
    """Return the logarithm of the odds of the first kind of wine."""
    probabilities = np.clip(network.predict_proba(rows), 1e-9, 1)
    return np.log(probabilities[:, 1]) - np.log(probabilities[:, 0])


# %%
# Interactions from few evaluations
# ---------------------------------
# There are 2\ :sup:`13` = 8,192 coalitions of features. With 16 evaluations per feature, 208 are
# evaluated. ``interactions=True`` needs no further ones.

explainer = shap.Explainer(log_odds, X.sample(20, random_state=0), algorithm="oddgp", seed=0)
rows = X.sample(60, random_state=1)
explanation = explainer(rows, max_evals=208, interactions=True, error_bounds=True)
print(explanation.values.shape)

# %%
# A row of the matrix sums to the Shapley value of its feature.

values = explainer(rows, max_evals=208)
print(np.abs(explanation.values.sum(axis=2) - values.values).max())

# %%
# Which pairs interact?
# ---------------------
# The ranking lists pairs by the mean size of their interaction. A q-value of 0.05 means that of all
# pairs up to this one, 5 % are expected to be false discoveries.

ranking = shap_ext.rank_interactions(explanation)
print(ranking.to_frame().head(6).round(4).to_string(index=False))
print(f"{ranking.n_discoveries} of {len(ranking.pairs)} pairs interact in some row.")

# %%
# The strongest pairs with their standard errors
# ----------------------------------------------
# Here is the first row. The interaction of a pair is the sum of its two entries.

strongest = ranking.pairs[:8]
first, second = strongest.T
sizes = 2 * explanation.values[0, first, second]
errors = 2 * explanation.error_std[0, first, second]
labels = [" × ".join(pair) for pair in ranking.names[:8]]
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.barh(labels, sizes, xerr=1.96 * errors, color=np.where(sizes > 0, "#ff0051", "#008bfb"))
axes.axvline(0, color="gray", linewidth=0.8)
axes.invert_yaxis()
axes.set_xlabel("interaction ± 1.96 standard errors (log odds)")
plt.show()

# %%
# The plots of shap
# -----------------
# The strongest pair of features over all rows: how the interaction depends on the first feature,
# with the second one in colour.

shap.dependence_plot(tuple(strongest[0]), explanation.values, rows, show=False)
plt.gcf().subplots_adjust(left=0.2)
plt.show()

# %%
# How close is this to the exact interactions? For one row, all 8,192 coalitions are affordable.

exact = explainer(rows[:1], max_evals=2**13, interactions=True).values
error = np.abs(explanation.values[:1] - exact).sum() / np.abs(exact).sum()
print(f"error relative to the exact matrix: {error:.1%}")

# %%
# What to read next
# -----------------
# - :doc:`/interactions`: the indices, their error bars, and what the methods can do.
# - :doc:`/gallery/tables/global_importance`: the importance of single features over many rows.

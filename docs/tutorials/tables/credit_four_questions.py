"""
Credit with correlated features: four questions, four answers
=============================================================

**For whom:** your features depend on each other, as age, income, rent and savings do, and you want
to know what to put in the place of an absent feature.

There are four usual answers: a fixed customer, rows of the data, values that fit the present
features, or values that would follow if the present features were set. They answer different
questions. Here they are beside each other in one picture, with the truth, which is known because
the customers are simulated.
"""

# %%
# Customers whose causes are known
# --------------------------------
# 2,000 customers follow five equations. Age raises income. Income raises the rent that is paid.
# Savings grow with income and shrink with the rent. Savings prevent late payments. Amounts are
# thousands a year, late payments are days in the past two years. Chance is normally distributed.

import itertools
import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import shap
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shap_ext

names = ["age", "income", "rent", "savings", "late"]
effects = np.zeros((5, 5))  # effects[i, j]: of feature j on feature i
effects[1, 0] = 0.6  # age on income
effects[2, 1] = 0.25  # income on rent
effects[3, 1], effects[3, 2] = 0.5, -0.8  # income and rent on savings
effects[4, 3] = -0.9  # savings on late payments
spread = np.array([12.0, 9.0, 2.5, 5.0, 5.0])
level = np.array([45.0, 16.0, 2.0, 4.0, 30.0])

rng = np.random.default_rng(0)
to_features = np.linalg.inv(np.eye(5) - effects)
mean = to_features @ level
X = pd.DataFrame(mean + (rng.normal(size=(2000, 5)) * spread) @ to_features.T, columns=names)
risk = (X["late"] - X["savings"]) / 12 - (X["income"] - mean[1]) / 25 - 0.5
defaults = rng.random(2000) < 1 / (1 + np.exp(-risk))
print(X.describe().loc[["mean", "std"]].round(1))
print(X.corr().round(2))

# %%
# The model
# ---------
# A logistic regression on income, savings and late payments. It gets all columns, and does not use
# age and rent: their weights are zero. We explain its log-odds of a default.

used = ["income", "savings", "late"]
fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[used], defaults)


def log_odds(frame):
    """Return the log-odds of a default."""
    return fitted.decision_function(frame[used])


# %%
# Four choices for an absent feature
# ----------------------------------
# `Gaussian` draws absent features given the present ones, and `Causal` as if the present ones had
# been set. The causes are passed as edges, from causes to effects. Whatever is passed, the
# explainer and its results are the same.

causes = [
    ("age", "income"),
    ("income", "rent"),
    ("income", "savings"),
    ("rent", "savings"),
    ("savings", "late"),
]
choices = {
    "baseline: compared with the average customer": X.mean().to_frame().T,
    "marginal: what the model uses": X.sample(100, random_state=0),
    "conditional: what the features tell": shap_ext.maskers.Gaussian(X, draws=64),
    "causal: what setting them would change": shap_ext.maskers.Causal(X, graph=causes, draws=64),
}
customer = pd.DataFrame([[30.0, 55.0, 21.0, 9.0, 26.0]], columns=names)
explanations = {}
for question, masker in choices.items():
    explainer = shap.Explainer(log_odds, masker, algorithm="enumeration", seed=0)
    explanations[question] = explainer(customer, error_bounds=True, silent=True)
table = pd.DataFrame(
    {question.split(":")[0]: one.values[0] for question, one in explanations.items()}, index=names
)
print(table.round(2) + 0.0)

# %%
# The truth
# ---------
# The log-odds are linear, so that the value of a coalition follows from the mean of the absent
# features. Given the present ones, it is that of a normal distribution. If they are set, it
# follows from the equations, without those of the features that are set.

scaler, regression = fitted[0], fitted[1]
weights = np.zeros(5)
weights[[names.index(name) for name in used]] = regression.coef_[0] / scaler.scale_
covariance = to_features @ np.diag(spread**2) @ to_features.T
row = customer.to_numpy()[0]


def expected_row(question, present):
    """Return the mean of all features."""
    if question == "conditional" and present:
        inner = covariance[np.ix_(present, present)]
        return mean + covariance[:, present] @ np.linalg.solve(inner, (row - mean)[present])
    if question == "causal":
        kept, start = effects.copy(), level.copy()
        kept[present], start[present] = 0.0, row[present]
        return np.linalg.solve(np.eye(5) - kept, start)
    filled = mean.copy()
    filled[present] = row[present]
    return filled


def true_values(question):
    """Return the Shapley values by their definition."""
    values = np.zeros(5)
    for size in range(5):
        for present in itertools.combinations(range(5), size):
            share = math.factorial(size) * math.factorial(4 - size) / math.factorial(5)
            before = expected_row(question, list(present))
            for feature in set(range(5)) - set(present):
                after = expected_row(question, sorted([*present, feature]))
                values[feature] += share * (after - before) @ weights
    return values


figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for place, (question, one) in enumerate(explanations.items()):
    at = np.arange(5) + 0.2 * (place - 1.5)
    error = 1.96 * one.error_std[0]
    axes.bar(at, one.values[0], 0.19, yerr=error, label=question, error_kw={"lw": 1})
    truth = true_values(question.split(":")[0])
    axes.plot(at, truth, "_k", ms=14, mew=1.5, label="truth" if place == 3 else None)
axes.axhline(0, color="black", lw=0.8)
axes.set_xticks(range(5), [f"{name}\n{value:g}" for name, value in zip(names, row, strict=True)])
axes.set_ylabel("part of the log-odds of a default")
axes.legend(fontsize=8)
plt.show()

# %%
# The customer is 30 years old, earns 55 and pays 21 for rent.
#
# - **Baseline and marginal**: age and rent have nothing, because the model does not use them. In
#   a linear model, both are the same but for the sample of 100 background rows.
# - **Conditional**: the high rent *lowers* the risk, because it tells of a high income. The young
#   age raises it. Late payments share what they tell about savings.
# - **Causal**: the high rent *raises* the risk, because it eats up savings. Income has twice the
#   effect, because it brings savings, too. Late payments keep only their own effect, because paying
#   in time does not bring savings back.
#
# Bars that end beside the black line of the truth are off by the fit to 2,000 customers, or by the
# sample of 100 background rows. The thin error bars hold the noise of draws alone.

# %%
# All plots of shap take the result
# ---------------------------------

shap.plots.waterfall(explanations["causal: what setting them would change"][0])

# %%
# Direct and indirect effects
# ---------------------------
# `split_effects=True` tells apart what a feature does to the model's output by itself, and what it
# does through other features. Income lowers the risk directly, and indirectly by savings. Age works
# through other features alone. Late payments have no effects on others.

masker = shap_ext.maskers.Causal(X, graph=causes, draws=64)
explainer = shap.Explainer(log_odds, masker, algorithm="asymmetric", split_effects=True, seed=0)
parts = explainer(customer, max_evals=1000, error_bounds=True, silent=True)
shap.plots.bar(parts[0], max_display=10)

# %%
# Causes first
# ------------
# Asymmetric values count only orders in which causes come before their effects. With conditional
# draws, the first causes get credit for all that follows from them: the young age has all that it
# tells, and late payments have what no other feature tells.

masker = shap_ext.maskers.Gaussian(X, draws=64)
explainer = shap.Explainer(log_odds, masker, algorithm="asymmetric", graph=causes, seed=0)
first = explainer(customer, max_evals=1000, error_bounds=True, silent=True)
print(pd.Series(first.values[0], index=names).round(2))

# %%
# When to use which
# -----------------
#
# .. list-table::
#    :header-rows: 1
#
#    * - question
#      - absent features
#      - masker
#      - an example in credit
#    * - What differs from this customer?
#      - one fixed row
#      - one row
#      - a reference customer who gets the loan
#    * - What does the model use?
#      - rows of the data
#      - background rows
#      - an audit: does the formula use age?
#    * - What do the features tell about the score?
#      - given the present ones
#      - ``maskers.Gaussian`` and others
#      - which documents to ask for: proof of rent tells of the income
#    * - What would change the score in the world?
#      - after an intervention
#      - ``maskers.Causal``
#      - advice to a customer: lower rent, more savings
#
# An audit of discrimination needs at least two of them: here the model does not use age, and yet
# the score falls on the young. Marginal values show the first, conditional ones the second.

# %%
# What to read next
# -----------------
# - :doc:`/absent_features` has all distributions, how to choose between them, and what they cost.
# - :doc:`one_hot_groups`: correlated columns as one feature.

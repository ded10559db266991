"""
One-hot columns as one feature: groups
======================================

**For whom:** your table is one-hot encoded already, and you want one attribution for "species"
and not one for each of its columns.

If each one-hot column is a feature of its own, the explainer evaluates rows of two species at
once, or of none. The model has never seen such rows. A group makes the columns one feature: they
are present or absent together.
"""

# %%
# A table with one-hot columns
# ----------------------------
# The penguins of :doc:`strings_and_categories`, encoded by pandas (:download:`penguins.csv
# <penguins.csv>`; Gorman, Williams and Fraser, 2014; licence CC0). A support vector machine
# predicts the mass in grams.

import matplotlib.pyplot as plt
import pandas as pd
import shap
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import shap_ext  # adds our algorithms to shap.Explainer

penguins = pd.read_csv("penguins.csv").dropna()
X = pd.get_dummies(penguins.drop(columns="body_mass_g"), dtype=float)
mass = penguins["body_mass_g"]
X_train, X_test, mass_train, mass_test = train_test_split(X, mass, test_size=40, random_state=0)
model = make_pipeline(StandardScaler(), SVR(C=1000)).fit(X_train, mass_train)
print(f"R² on 40 other penguins: {model.score(X_test, mass_test):.2f}")
print(list(X.columns))

# %%
# Without groups
# --------------
# Eleven features. The reference is one penguin of the training data, a male Gentoo.

reference = X_train[(X_train["species_Gentoo"] == 1) & (X_train["sex_male"] == 1)].iloc[:1]
row = X_test[(X_test["species_Adelie"] == 1) & (X_test["sex_female"] == 1)].iloc[:1]

explainer = shap.Explainer(model, reference, algorithm="oddgp", seed=0)
without = explainer(row)
print(explainer.last_estimate)
shap.plots.waterfall(without[0])

# %%
# The attribution of the species is spread over two columns, and that of the sex over two.
#
# Which rows did the model get for this? We look at one batch, and count the rows with exactly one
# species.

batches = []


def watched(table):
    batches.append(table)
    return model.predict(table)


shap.Explainer(watched, reference, algorithm="oddgp", seed=0)(row)
evaluated = pd.concat(batches)
n_species = evaluated.filter(like="species_").sum(axis=1)
print(f"{(n_species == 1).mean():.0%} of {len(evaluated)} rows have exactly one species")

# %%
# With groups
# -----------
# A group has a name and its columns. Columns in no group stay features of their own.

groups = {
    name: [column for column in X.columns if column.startswith(f"{name}_")]
    for name in ["species", "island", "sex"]
}
print(groups)

explainer = shap.Explainer(model, reference, algorithm="oddgp", seed=0, groups=groups)
grouped = explainer(row)
print(explainer.last_estimate)
shap.plots.waterfall(grouped[0])

# %%
# The explanation names the column of each group that is 1. There are fewer features, so that
# fewer evaluations are needed, and every evaluated row has one species:

batches.clear()
shap.Explainer(watched, reference, algorithm="oddgp", seed=0, groups=groups)(row)
n_species = pd.concat(batches).filter(like="species_").sum(axis=1)
print(f"{(n_species == 1).mean():.0%} of the rows have exactly one species")

# %%
# Adding up columns is not the same
# ---------------------------------
# The sum of the attributions of the columns is not the attribution of the group, because the sum
# depends on what the model says of impossible rows. For all test penguins:

of_columns = shap.Explainer(model, reference, algorithm="oddgp", seed=0)(X_test)
of_groups = explainer(X_test)
names = list(of_groups.feature_names)
figure, panels = plt.subplots(1, 2, figsize=(8, 4))
for panel, name in zip(panels, ["species", "sex"], strict=True):
    columns = [X.columns.get_loc(column) for column in groups[name]]
    sums = of_columns.values[:, columns].sum(axis=1)
    values = of_groups.values[:, names.index(name)]
    ends = [min(sums.min(), values.min()), max(sums.max(), values.max())]
    panel.plot(ends, ends, color="0.7")
    panel.plot(sums, values, "o", alpha=0.5)
    panel.set(title=name, xlabel="sum over the columns, grams", ylabel="group, grams")
figure.tight_layout()
plt.show()

# %%
# Plots of groups
# ---------------
# All plots of shap work with groups.

shap.plots.beeswarm(of_groups)

# %%
# What to read next
# -----------------
# - :doc:`/coming_from_shap`: groups, maskers and models.
# - :doc:`strings_and_categories`: explain the table before it is encoded.
# - :doc:`/coming_from_captum`: the same in captum, by `feature_mask`.

"""
Strings and categories: a scikit-learn pipeline through shap
============================================================

**For whom:** your model is a scikit-learn pipeline. Its table has strings, categories and missing
values, and you want attributions of the columns of the table, not of the columns behind the
one-hot encoder.

The explainer gives the pipeline tables with the same columns and types as your own table. So you
explain the pipeline as it is, and need no wrapper.
"""

# %%
# The table
# ---------
# 344 penguins that were measured on three islands of Antarctica (:download:`penguins.csv
# <penguins.csv>`; Gorman, Williams and Fraser, 2014; licence CC0). Species, island and sex are
# strings, and some measurements are missing.

import matplotlib.pyplot as plt
import pandas as pd
import shap
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import shap_ext  # adds our algorithms to shap.Explainer

penguins = pd.read_csv("penguins.csv").dropna(subset="body_mass_g")
penguins["island"] = penguins["island"].astype("category")
X, mass = penguins.drop(columns="body_mass_g"), penguins["body_mass_g"]
X_train, X_test, mass_train, mass_test = train_test_split(X, mass, test_size=60, random_state=0)
print(X.dtypes)
X_test.head()

# %%
# The pipeline
# ------------
# Strings and categories are encoded, missing numbers are filled in, and boosted trees predict the
# mass of the penguin in grams.

encode = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["species", "island", "sex"]),
    (SimpleImputer(), make_column_selector(dtype_include="number")),
)
pipeline = make_pipeline(encode, GradientBoostingRegressor(random_state=0))
pipeline.fit(X_train, mass_train)
error = (pipeline.predict(X_test) - mass_test).abs().mean()
print(f"Mean absolute error on 60 other penguins: {error:.0f} g")

# %%
# Explain the pipeline
# --------------------
# The background is a DataFrame of 30 penguins of the training data. An absent column takes its
# values from them.

background = X_train.sample(30, random_state=0)
explainer = shap.Explainer(pipeline, background, algorithm="oddgp", seed=0)
explanation = explainer(X_test)
print(explanation.shape)
print(explainer.last_estimate)

# %%
# The table has six columns, so that there are only 64 coalitions. The budget pays for all of
# them: the values are exact, and the standard errors are 0.
#
# The plots of shap
# -----------------
# One penguin. The numbers are grams.

shap.plots.waterfall(explanation[0])

# %%
# All 60 penguins:

shap.plots.bar(explanation)

# %%
# Strings have no order, so that the beeswarm plot cannot colour them. A plot for each category
# says more:

figure, panels = plt.subplots(1, 3, figsize=(7, 3.6), sharey=True)
for panel, column in zip(panels, ["species", "sex", "island"], strict=True):
    names = X_test[column].astype(object).fillna("missing").to_numpy()
    panel.axhline(0, color="0.8", zorder=0)
    panel.plot(names, explanation[:, column].values, "o", alpha=0.4)
    panel.margins(x=0.2)
    panel.set_title(column)
panels[0].set_ylabel("attribution in grams")
figure.tight_layout()
plt.show()

# %%
# Gentoos are heavy, and so are males. The island says almost nothing once the species is known.
#
# What the model really got
# -------------------------
# Masked rows keep the types of the columns. We look at one batch that the pipeline receives.

batches = []


def watched(table):
    batches.append(table)
    return pipeline.predict(table)


shap.Explainer(watched, background, algorithm="oddgp", seed=0)(X_test.iloc[:1])
print(batches[-1].dtypes)
batches[-1].sample(4, random_state=0)

# %%
# What to read next
# -----------------
# - :doc:`/coming_from_shap`: which models, rows and maskers are taken.
# - :doc:`one_hot_groups`: if your table is one-hot encoded already.
# - :doc:`boosted_trees`: tables with more columns, where values are estimated and have error
#   bars.

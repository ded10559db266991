"""
A million rows: a network that explains in one pass
===================================================

**For whom:** you have so many rows that even a few evaluations per row are too many.

SimSHAP trains a network once. It takes a row and returns its attributions in one pass, without
evaluating the model. This page trains a small one, measures its error, and explains as many rows
as fit into a second. It needs the extra `amortized`.
"""

# %%
# A model and its rows
# --------------------
# A random forest on ten measurements of tumours, which scikit-learn ships. We explain the
# probability of a benign one. The reference is the mean tumour.

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import shap_ext  # adds our algorithms to shap.Explainer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.iloc[:, :10]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=100, random_state=0)
forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=0).fit(X_train, y_train)
reference = X_train.mean().to_frame().T


def probability(table):
    return forest.predict_proba(table)[:, 1]


# %%
# Train once
# ----------
# Each training row is estimated once, here with 64 evaluations. The network learns these labels.
# The labels have errors, which average out over the rows. `n_mixed_rows` makes more training
# rows: each takes every feature from one of two real rows.

explainer = shap.Explainer(
    probability,
    reference,
    algorithm="simshap",
    training_data=X_train,
    evaluations=64,
    n_mixed_rows=2000,
    epochs=25,
    seed=0,
)
started = time.perf_counter()
explainer.fit(silent=True)
training_seconds = time.perf_counter() - started
print(f"{explainer.trained.evaluations:,} evaluations of the model")
print(f"{explainer.trained.validation_evaluations:,} of them for validation")

# %%
# The error on rows held out and the loss, epoch by epoch:

history = pd.DataFrame(explainer.trained.history)
history.plot(x="epoch", y=["absolute_error", "loss"], subplots=True, logy=True)
plt.show()

# %%
# How good is it?
# ---------------
# Ten features have 1,024 coalitions, so that the exact values can be computed for 100 test rows.
# The network takes one evaluation per row, which makes the attributions sum to the output.

exact = shap.Explainer(probability, reference, algorithm="enumeration")(X_test).values
by_network = explainer(X_test)
size = np.abs(exact).sum(axis=1).mean()


def relative_error(values):
    return np.abs(values - exact).sum(axis=1).mean() / size


oddgp = shap.Explainer(probability, reference, algorithm="oddgp", seed=0)
budgets = [20, 40, 80, 160]
errors = [relative_error(oddgp(X_test, max_evals=budget).values) for budget in budgets]
print(f"SimSHAP, 1 evaluation per row: relative error {relative_error(by_network.values):.3f}")
for budget, error in zip(budgets, errors, strict=True):
    print(f"oddgp, {budget:3} evaluations per row: relative error {error:.3f}")

figure, axes = plt.subplots(figsize=(7, 4))
axes.plot(budgets, errors, "o-", label="oddgp, row by row")
axes.axhline(relative_error(by_network.values), color="tab:red", label="SimSHAP, one pass")
axes.set(xlabel="evaluations per row", ylabel="relative error", ylim=(0, None))
axes.set_title("a network is fast, and not exact")
axes.legend()
figure.tight_layout()
plt.show()

# %%
# The network is no replacement where few rows need accurate values. It is made for very many
# rows.
#
# Many rows
# ---------
# `stream` evaluates no model at all. It reads rows from an array, a memory map or a table, and
# writes to an array. We measure 50,000 rows and compute how long a million takes.

rng = np.random.default_rng(0)
many = X.iloc[rng.integers(len(X), size=50_000)].reset_index(drop=True)
started = time.perf_counter()
values = explainer.stream(many, silent=True)
per_row = (time.perf_counter() - started) / len(many)

started = time.perf_counter()
oddgp(X_test, max_evals=80)
per_row_by_oddgp = (time.perf_counter() - started) / len(X_test)
print(f"{values.shape} attributions")

seconds = {
    "SimSHAP:\ntraining": training_seconds,
    "SimSHAP:\na million rows": 1e6 * per_row,
    "oddgp, 80 evaluations:\na million rows": 1e6 * per_row_by_oddgp,
}
figure, axes = plt.subplots(figsize=(7, 3.6))
axes.bar(seconds.keys(), seconds.values(), color=["tab:red", "tab:red", "tab:blue"])
axes.set(yscale="log", ylabel="seconds, computed", title="a million rows")
axes.set_ylim(top=5 * max(seconds.values()))
for place, number in enumerate(seconds.values()):
    axes.annotate(f"{number:,.0f} s", (place, number), ha="center", va="bottom")
figure.tight_layout()
plt.show()

# %%
# Rows unlike the training rows
# -----------------------------
# A network answers for every row, also for one that it knows nothing about. A call compares the
# sum of the attributions with the output, and warns of rows where they differ by more than they
# did in training. `last_unlike_rows` holds their numbers.

print("rows unlike the training rows:", explainer.last_unlike_rows)

# %%
# Save it
# -------
# The file holds numbers and no code. Loading checks that the model and the reference are the
# same.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "explainer.safetensors"
    explainer.save_trained(path)
    print(f"{path.stat().st_size / 1024:.0f} KiB")
    again = shap.Explainer(probability, reference, algorithm="simshap", trained=path)
    print("the same values:", np.array_equal(again(X_test).values, by_network.values))

# %%
# What to read next
# -----------------
# - :doc:`/explaining_by_networks`: targets, surrogates, images, and measurements.
# - :doc:`/streams_and_checkpoints`: millions of rows by any other algorithm, with checkpoints.
# - :doc:`workers_and_clusters`: many cores and machines.

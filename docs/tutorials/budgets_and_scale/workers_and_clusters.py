"""
Workers and clusters
====================

**For whom:** one core is not enough, or your rows are in a table of Dask, Ray or Spark.

`n_jobs=` shares the rows of one call among processes, threads or the workers of a cluster. The
values have the same bits as without workers. For tables that no machine holds, `batch_function`
gives the cluster a function of its own batches.
"""

# %%
# A slow model
# ------------
# A random forest on 30 measurements of tumours, which scikit-learn ships. To make it slow, it
# waits one millisecond for each row, as a model on another machine would.

import importlib.util
import time

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import shap_ext  # adds our algorithms to shap.Explainer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
forest = RandomForestClassifier(10, random_state=0).fit(X, y)
background = X.median().to_frame().T
rows = X.iloc[:24]


def slow_model(table):
    time.sleep(0.001 * len(table))
    return forest.predict_proba(table)[:, 1]


print(f"this machine has {joblib.cpu_count()} cores")

# %%
# Processes
# ---------
# `n_jobs=2` starts two processes of joblib; `n_jobs=-1` one for each core. The first call takes
# some seconds to start them. They stay for the next calls.

seconds, values = {}, {}
for n_jobs in (1, 2):
    explainer = shap.Explainer(slow_model, background, algorithm="oddgp", seed=0, n_jobs=n_jobs)
    explainer(rows.iloc[:2], max_evals=120)  # starts the processes
    started = time.perf_counter()
    values[f"n_jobs={n_jobs}"] = explainer(rows, max_evals=120).values
    seconds[f"n_jobs={n_jobs}"] = time.perf_counter() - started

# %%
# Threads
# -------
# Threads need no start and no copies of the model. They help where the model waits, or releases
# Python's lock, as many libraries do.

explainer = shap.Explainer(slow_model, background, algorithm="oddgp", seed=0)
with joblib.parallel_config(backend="threading", n_jobs=2):
    started = time.perf_counter()
    values["2 threads"] = explainer(rows, max_evals=120).values
    seconds["2 threads"] = time.perf_counter() - started

first = values["n_jobs=1"]
print("the same bits:", all(np.array_equal(v, first) for v in values.values()))

figure, axes = plt.subplots(figsize=(7, 2.6))
axes.barh(list(seconds), list(seconds.values()), color="tab:blue")
axes.invert_yaxis()
axes.set(xlabel="seconds", title=f"24 rows, {joblib.cpu_count()} cores, when this page was built")
figure.tight_layout()
plt.show()

# %%
# A cluster of Dask
# -----------------
# With `joblib.parallel_config(backend="dask")`, the same call runs on the workers of a cluster.
# Here it is a cluster of one process on this machine, if Dask is installed (`pip install
# "shapley-ext[shap,dask]"`).

has_dask = all(importlib.util.find_spec(name) for name in ("dask", "distributed"))
if has_dask:
    from dask.distributed import Client

    with Client(processes=False, dashboard_address=None) as client:
        print(client)
        with joblib.parallel_config(backend="dask"):
            on_dask = explainer(rows, max_evals=120).values
    print("the same bits:", np.array_equal(on_dask, first))
else:
    print("Dask is not installed where this page was built, so this step was left out.")

# %%
# Tables that no machine holds
# ----------------------------
# `batch_function` returns a function from a batch of rows to a batch of attributions. Columns in
# `keep=` are copied.

table = X.assign(patient=np.arange(len(X)))
explain = explainer.batch_function(table.head(1), keep=["patient"], max_evals=120)
batch = explain(table.iloc[:4])
batch.iloc[:, :4].round(4)

# %%
# The engines take this function as it is: `frame.map_partitions(explain, meta=explain.meta)` in
# Dask, `dataset.map_batches(explain, batch_format="pandas")` in Ray, and
# `frame.mapInPandas(explain.each_batch, schema=explain.spark_schema)` in Spark. A row gets the
# same numbers in any batch:

halves = pd.concat([explain(table.iloc[:2]), explain(table.iloc[2:4])], ignore_index=True)
print("the same numbers:", np.array_equal(halves.to_numpy(), batch.to_numpy()))

# %%
# What to read next
# -----------------
# - :doc:`/performance`: what travels to the workers, and models that cannot be sent.
# - :doc:`/streams_and_checkpoints`: rows from files, one batch after the other.
# - :doc:`networks_for_many_rows`: when the model is too slow for a million rows.

"""Explain a Parquet table by Dask and write the attributions; share the rows of a call by Dask.

    python docs/examples/engines/dask_partitions.py

Needs `pip install "shapley-ext[shap,dask]"`.
"""

import tempfile

import dask.dataframe as dd
import joblib
import lightgbm
import pandas as pd
import shap
from distributed import Client, LocalCluster
from sklearn.datasets import load_breast_cancer

import shap_ext  # noqa: F401 # makes shap.Explainer know algorithm="oddgp"


def main() -> None:
    data, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    data = data.iloc[:, :10]
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1).fit(data, classes)
    explainer = shap.Explainer(model, data.iloc[300:303], algorithm="oddgp", seed=0)

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(**options) as cluster,
        Client(cluster),
    ):
        data.assign(patient=data.index).head(60).to_parquet(f"{folder}/rows", row_group_size=15)
        table = dd.read_parquet(f"{folder}/rows", split_row_groups=True)  # four partitions
        explain = explainer.batch_function(table.head(1), keep=["patient"], max_evals=100)
        table.map_partitions(explain, meta=explain.meta).to_parquet(f"{folder}/attributions")
        print(pd.read_parquet(f"{folder}/attributions").mean().round(4))
        with joblib.parallel_config(backend="dask"):
            explanation = explainer(data.head(20), max_evals=100)
    print(f"{len(explanation)} rows of one call explained by the workers of Dask")


if __name__ == "__main__":
    main()

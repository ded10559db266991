"""Explain a table of Dask, partition by partition, and share the rows of one call by Dask.

    python docs/examples/engines/dask_partitions.py

Needs `pip install "shapley-ext[shap,dask]"`.
"""

import dask.dataframe as dd
import joblib
import lightgbm
import shap
from distributed import Client, LocalCluster
from sklearn.datasets import load_breast_cancer

import shap_ext  # noqa: F401 # makes shap.Explainer know algorithm="oddgp"


def main() -> None:
    data, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    data = data.iloc[:, :10]
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1).fit(data, classes)
    explainer = shap.Explainer(model, data.iloc[300:303], algorithm="oddgp", seed=0)

    table = dd.from_pandas(data.assign(patient=data.index).head(60), npartitions=4)
    explain = explainer.batch_function(table.head(1), keep=["patient"], max_evals=100)

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        attributions = table.map_partitions(explain, meta=explain.meta)
        print(attributions.mean().compute().round(4))
        with joblib.parallel_config(backend="dask"):
            explanation = explainer(data.head(20), max_evals=100)
    print(f"{len(explanation)} rows of one call explained by the workers of Dask")


if __name__ == "__main__":
    main()

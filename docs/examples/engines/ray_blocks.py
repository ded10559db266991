"""Explain a Parquet table by Ray and write the attributions; share the rows of a call by Ray.

    python docs/examples/engines/ray_blocks.py

Needs `pip install "shapley-ext[shap,ray]"`.
"""

import tempfile

import joblib
import lightgbm
import pandas as pd
import ray
import shap
from ray.util.joblib import register_ray
from sklearn.datasets import load_breast_cancer

import shap_ext  # noqa: F401 # makes shap.Explainer know algorithm="oddgp"


def main() -> None:
    data, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    data = data.iloc[:, :10]
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1).fit(data, classes)
    explainer = shap.Explainer(model, data.iloc[300:303], algorithm="oddgp", seed=0)

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        data.assign(patient=data.index).head(60).to_parquet(f"{folder}/rows.parquet")
        table = ray.data.read_parquet(f"{folder}/rows.parquet").repartition(4)
        example = table.take_batch(1, batch_format="pandas")
        explain = explainer.batch_function(example, keep=["patient"], max_evals=100)
        attributions = table.map_batches(explain, batch_format="pandas", batch_size=20)
        attributions.write_parquet(f"{folder}/attributions")
        print(pd.read_parquet(f"{folder}/attributions").head())

    register_ray()
    with joblib.parallel_config(backend="ray", n_jobs=2):
        explanation = explainer(data.head(20), max_evals=100)
    print(f"{len(explanation)} rows of one call explained by the workers of Ray")
    ray.shutdown()


if __name__ == "__main__":
    main()

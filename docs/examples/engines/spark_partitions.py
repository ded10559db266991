"""Explain a Parquet table by Spark and write the attributions; share the rows of a call by Spark.

    python docs/examples/engines/spark_partitions.py

Needs Java and `pip install "shapley-ext[shap,spark]"`.
"""

import os
import sys
import tempfile

import joblib
import lightgbm
import shap
from joblibspark import register_spark
from pyspark.sql import SparkSession
from sklearn.datasets import load_breast_cancer

import shap_ext  # noqa: F401 # makes shap.Explainer know algorithm="oddgp"


def main() -> None:
    data, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    data = data.iloc[:, :10]
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1).fit(data, classes)
    explainer = shap.Explainer(model, data.iloc[300:303], algorithm="oddgp", seed=0)

    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers run this Python
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        data.assign(patient=data.index).head(60).to_parquet(f"{folder}/rows.parquet")
        table = spark.read.parquet(f"{folder}/rows.parquet").repartition(4)
        example = table.limit(1).toPandas()
        explain = explainer.batch_function(example, keep=["patient"], max_evals=100)
        attributions = table.mapInPandas(explain.each_batch, schema=explain.spark_schema)
        attributions.write.parquet(f"{folder}/attributions")
        spark.read.parquet(f"{folder}/attributions").orderBy("patient").show(5)

    register_spark()
    with joblib.parallel_config(backend="spark", n_jobs=2):
        explanation = explainer(data.head(20), max_evals=100)
    print(f"{len(explanation)} rows of one call explained by the workers of Spark")
    spark.stop()


if __name__ == "__main__":
    main()

"""Spark: partitions of a table and workers of one call, on two local cores."""

import os
import shutil
import sys

import joblib
import numpy as np
import pytest

from tests.engines import tables

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java, which is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "7").getOrCreate()
    yield session
    session.stop()


@pytest.mark.parametrize("form", ["mapInPandas", "mapInArrow"])
def test_partitions_are_explained_as_in_one_call(form, spark, tmp_path):
    frame = spark.createDataFrame(tables.table()).repartition(4)
    explain = tables.explainer(tmp_path).batch_function(
        frame.limit(1).toPandas(), keep=["id"], error_bounds=True
    )
    found = getattr(frame, form)(explain.each_batch, schema=explain.spark_schema)
    assert found.columns == explain.columns
    rows = found.toPandas()
    tables.assert_loaded_once_per_process(tmp_path)
    tables.assert_as_in_one_call(rows, tmp_path)


def test_workers_of_spark_share_the_rows_of_a_call(spark, tmp_path):
    joblibspark = pytest.importorskip("joblibspark", reason="joblibspark is not installed")
    joblibspark.register_spark()
    wanted = tables.estimate_by_jobs(tmp_path, 1)
    with joblib.parallel_config(backend="spark", n_jobs=2):
        found = tables.estimate_by_jobs(tmp_path, None)
    np.testing.assert_array_equal(found.values, wanted.values)

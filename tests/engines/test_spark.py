"""Spark: partitions of a table and workers of one call, on two local cores."""

import os
import shutil
import sys

import joblib
import numpy as np
import pandas as pd
import pytest

from tests.engines import tables

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java, which is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # A task of a killed worker is tried again, as on a cluster; "local[2]" would give it up.
    builder = SparkSession.builder.master("local[2, 4]").config("spark.ui.enabled", "false")
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


@tables.at_sizes
def test_a_mixed_table_in_skewed_partitions_while_a_worker_is_killed(n_rows, spark, tmp_path):
    tables.write_skewed_parts(n_rows, tmp_path / "parts")
    # Three kinds and none: most of the partitions are empty, and one has nine tenths of the rows.
    frame = spark.read.parquet(str(tmp_path / "parts")).repartition(8, "kind")
    explain = tables.explain_mixed(frame.limit(1).toPandas(), tmp_path)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", n_rows // 10)
    found = frame.mapInPandas(explain.each_batch, schema=explain.spark_schema)
    found.write.parquet(str(tmp_path / "out"))
    tables.assert_mixed_as_in_one_process(pd.read_parquet(tmp_path / "out"), n_rows, tmp_path)


def test_rows_of_a_killed_worker_are_explained_again(spark, tmp_path):
    joblibspark = pytest.importorskip("joblibspark", reason="joblibspark is not installed")
    joblibspark.register_spark()
    wanted, found = tables.estimates_with_a_killed_worker("spark", tmp_path)
    np.testing.assert_array_equal(found, wanted)

"""Dask: workers of one call, and partitions of a table, on a cluster of two processes."""

import joblib
import numpy as np
import pandas as pd
import pytest

from shapley_adapters.errors import InvalidArgumentTypeError
from tests.engines import tables

dask_frames = pytest.importorskip("dask.dataframe", reason="dask[dataframe] is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as connected:
        yield connected


def test_partitions_are_explained_as_in_one_call(client, tmp_path):
    frame = dask_frames.from_pandas(tables.table(), npartitions=6)
    explain = tables.explainer(tmp_path).batch_function(
        frame.head(1), keep=["id"], error_bounds=True
    )
    found = frame.map_partitions(explain, meta=explain.meta).compute()
    tables.assert_loaded_once_per_process(tmp_path)
    tables.assert_as_in_one_call(found, tmp_path)


def test_frames_are_not_computed_by_a_call(tmp_path):
    frame = dask_frames.from_pandas(tables.table(), npartitions=6)
    with pytest.raises(InvalidArgumentTypeError, match="^X is a lazy frame.*compute"):
        tables.explainer(tmp_path)(frame)


def test_threads_of_one_process_share_the_model(tmp_path):
    frame = dask_frames.from_pandas(tables.table(), npartitions=6)
    explain = tables.explainer(tmp_path).batch_function(
        frame.head(1), keep=["id"], error_bounds=True
    )
    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        found = frame.map_partitions(explain, meta=explain.meta).compute()
    tables.assert_loaded_once_per_process(tmp_path)
    tables.assert_as_in_one_call(found, tmp_path)


def test_workers_of_dask_share_the_rows_of_a_call(client, tmp_path):
    wanted = tables.estimate_by_jobs(tmp_path, 1)
    with joblib.parallel_config(backend="dask"):
        found = tables.estimate_by_jobs(tmp_path, None)
    tables.assert_loaded_once_per_process(tmp_path)
    np.testing.assert_array_equal(found.values, wanted.values)


@tables.at_sizes
def test_a_mixed_table_in_skewed_partitions_while_a_worker_is_killed(n_rows, client, tmp_path):
    paths = tables.write_skewed_parts(n_rows, tmp_path / "parts")
    frame = dask_frames.from_map(pd.read_parquet, paths)
    explain = tables.explain_mixed(frame.head(1, npartitions=-1), tmp_path)
    found = frame.map_partitions(explain, meta=explain.meta)
    found.to_parquet(str(tmp_path / "out"))
    tables.assert_mixed_as_in_one_process(pd.read_parquet(tmp_path / "out"), n_rows, tmp_path)


def test_rows_of_a_killed_worker_are_explained_again(client, tmp_path):
    wanted, found = tables.estimates_with_a_killed_worker("dask", tmp_path)
    np.testing.assert_array_equal(found, wanted)

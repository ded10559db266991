"""Ray: workers of one call, and blocks of a data set, on this machine."""

import os

import joblib
import numpy as np
import pandas as pd
import pytest

from tests.engines import tables

ray = pytest.importorskip("ray", reason="ray is not installed")


@pytest.fixture(scope="module", autouse=True)
def _ray():
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    environment = {"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    yield
    ray.shutdown()


@pytest.mark.parametrize("batch_format", ["pandas", "pyarrow"])
def test_blocks_are_explained_as_in_one_call(batch_format, tmp_path):
    data = ray.data.from_pandas(tables.table()).repartition(6)
    explain = tables.explainer(tmp_path).batch_function(
        data.take_batch(1, batch_format="pandas"), keep=["id"], error_bounds=True
    )
    found = data.map_batches(explain, batch_format=batch_format, batch_size=10)
    rows = pd.DataFrame(found.take_all())
    assert list(rows.columns) == explain.columns
    tables.assert_loaded_once_per_process(tmp_path)
    tables.assert_as_in_one_call(rows, tmp_path)


def test_workers_of_ray_share_the_rows_of_a_call(tmp_path):
    from ray.util.joblib import register_ray

    register_ray()
    wanted = tables.estimate_by_jobs(tmp_path, 1)
    with joblib.parallel_config(backend="ray", n_jobs=2):
        found = tables.estimate_by_jobs(tmp_path, None)
    tables.assert_loaded_once_per_process(tmp_path)
    np.testing.assert_array_equal(found.values, wanted.values)


def test_rows_of_a_killed_worker_are_explained_again(tmp_path):
    from ray.util.joblib import register_ray

    register_ray()
    with pytest.warns(UserWarning, match="A worker process ended before"):
        wanted, found = tables.estimates_with_a_killed_worker("ray", tmp_path)
    np.testing.assert_array_equal(found, wanted)


@tables.at_sizes
def test_a_mixed_table_in_skewed_blocks_while_a_worker_is_killed(n_rows, tmp_path):
    paths = tables.write_skewed_parts(n_rows, tmp_path / "parts")
    data = ray.data.read_parquet(paths)
    explain = tables.explain_mixed(data.take_batch(1, batch_format="pandas"), tmp_path)
    found = data.map_batches(explain, batch_format="pandas", batch_size=None)
    found.write_parquet(str(tmp_path / "out"))
    tables.assert_mixed_as_in_one_process(pd.read_parquet(tmp_path / "out"), n_rows, tmp_path)

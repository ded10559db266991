"""Tables of pandas and other packages, as batches and streams."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import captum_ext
from shapley_adapters.errors import InvalidArgumentError


def model(inputs):
    return torch.nan_to_num(inputs, nan=9.0).prod(dim=1)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
@pytest.mark.parametrize("last", [1, None])
def test_nullable_columns_become_floats(dtype, last, tmp_path):
    frame = pd.DataFrame({"x": pd.array([1, last], dtype=dtype), "y": [3.0, 4.0]})
    method = captum_ext.Exact(model)
    floats = torch.tensor(frame.to_numpy(dtype=float, na_value=np.nan))
    expected = method.attribute(floats.float()).numpy()
    batch = method.batch_function(frame.head(1))(frame)
    np.testing.assert_array_equal(batch.iloc[:, :2], expected)
    stream = method.attribute_stream(frame, tmp_path / "out.npz")
    np.testing.assert_allclose(stream[:], expected, rtol=1e-6)


def test_a_column_of_texts_is_named():
    frame = pd.DataFrame({"x": [1.0], "word": ["a"]})
    with pytest.raises(InvalidArgumentError, match="'word' holds .*features="):
        captum_ext.Exact(model).batch_function(frame)


@pytest.mark.parametrize("has_nulls", [False, True])
def test_polars_equals_pandas(has_nulls, tmp_path):
    polars = pytest.importorskip("polars")
    columns = {"x": [1, None if has_nulls else 2], "y": [3.0, 4.0]}
    table = polars.DataFrame(columns)
    frame = pd.DataFrame({"x": np.array(columns["x"], dtype=float), "y": columns["y"]})
    method = captum_ext.Exact(model)
    batch = method.batch_function(table[:1])(table)
    assert isinstance(batch, polars.DataFrame)
    expected = method.batch_function(frame.head(1))(frame)
    np.testing.assert_array_equal(batch.to_numpy(), expected.to_numpy())
    streams: list[Any] = [
        method.attribute_stream(rows, tmp_path / f"{index}.npz")[:]
        for index, rows in enumerate((table, frame))
    ]
    assert torch.equal(*streams)

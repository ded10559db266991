"""Trained networks explain rows from Parquet files into Parquet files, through both hosts."""

import time
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shapley_adapters.errors import CheckpointError, ShapleyExtWarning
from shapley_adapters.row_sources import batches_of, opened

torch: Any = pytest.importorskip("torch")
pytest.importorskip("safetensors")
captum_ext: Any = pytest.importorskip("captum_ext")
pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

COLUMNS = list("abcd")
N_ROWS, CHUNK = 250, 40
X = np.random.default_rng(0).normal(size=(N_ROWS, len(COLUMNS))).astype(np.float32)
REFERENCE = np.zeros((1, len(COLUMNS)), dtype=np.float32)
FEW: dict[str, Any] = {"epochs": 2, "seed": 0}

pytestmark = pytest.mark.filterwarnings("error:.*not writable")


class Recorded(torch.nn.Module):
    """A model that notes how many rows it gets."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def forward(self, x):
        self.sizes.append(len(x))
        return torch.tanh(x).sum(dim=1) + x[:, 0] * x[:, 1]


@pytest.fixture
def rows(tmp_path):
    """A file of three row groups."""
    pq.write_table(pa.table(dict(zip(COLUMNS, X.T, strict=True))), tmp_path / "rows.parquet", 100)
    return tmp_path / "rows.parquet"


def values_of(out, names):
    return pd.read_parquet(out)[names].to_numpy()


@pytest.mark.parametrize("efficient", [True, False])
def test_shap_s_networks(efficient, rows, tmp_path):
    model, out = Recorded(), tmp_path / "values.parquet"
    made = shap.Explainer(
        model, REFERENCE, algorithm="simshap", training_data=X[:60], efficient=efficient, **FEW
    ).fit()
    model.sizes.clear()
    options: dict[str, Any] = {"chunk_size": CHUNK, "error_bounds": True, "silent": True}
    stream = made.explain_stream(rows, out, **options)
    assert max(model.sizes) <= CHUNK + 1  # never the rows of the whole file; v(∅) once a chunk
    assert sum(model.sizes) == stream.n_rows * efficient + -(-N_ROWS // CHUNK)
    expected = made(pd.DataFrame(X, columns=COLUMNS), error_bounds=True)
    np.testing.assert_allclose(values_of(out, COLUMNS), expected.values, atol=1e-5)
    errors = values_of(out, [f"{name} (standard error)" for name in COLUMNS])
    np.testing.assert_allclose(errors, expected.error_std, rtol=1e-3)
    assert made.explain_stream(rows, out, checkpoint=True, **options).is_complete
    made.efficient = not efficient
    with pytest.raises(CheckpointError, match="efficient was"):
        made.explain_stream(rows, out, checkpoint=True, **options)


@pytest.mark.parametrize("efficient", [True, False])
@pytest.mark.parametrize("algorithm", ["simshap", "fastshap"])
def test_streams_name_rows_unlike_the_training_rows(algorithm, efficient, tmp_path):
    """With v(N) by gaps, without it by distances."""
    made = shap.Explainer(
        Recorded(), REFERENCE, algorithm=algorithm, training_data=X, efficient=efficient, **FEW
    ).fit()
    rows = X.copy()
    rows[[130, 131]] *= 100
    with pytest.warns(ShapleyExtWarning, match=r"2 of 40 rows are unlike .* rows 130, 131\."):
        made.explain_stream(rows, tmp_path / "values.npz", chunk_size=CHUNK, silent=True)
    explain = made.batch_function(pd.DataFrame(X[:1], columns=COLUMNS))
    with pytest.warns(ShapleyExtWarning, match=r"2 of 40 rows are unlike .* rows 10, 11\."):
        explain(pd.DataFrame(rows[120:160], columns=COLUMNS))


@pytest.mark.parametrize("kind", ["SimShap", "FastShap"])
def test_captum_s_networks(kind, rows, tmp_path):
    model, out = Recorded(), tmp_path / "values.parquet"
    method = getattr(captum_ext, kind)(model, **FEW).fit(torch.as_tensor(X[:60]))
    model.sizes.clear()
    stream = method.attribute_stream(rows, out, chunk_size=CHUNK)
    assert max(model.sizes) <= CHUNK + 1
    expected = method.attribute(torch.as_tensor(X)).numpy()
    np.testing.assert_allclose(stream.values, expected, atol=1e-5)
    found = pd.read_parquet(out)
    assert len(found) == N_ROWS


@pytest.mark.parametrize("host", ["shap", "captum"])
def test_batch_functions_of_networks(host, rows):
    """Trained before they are sent, so that no worker trains."""
    model = Recorded()
    example = pd.DataFrame(X[:1], columns=COLUMNS)
    if host == "shap":
        made = shap_ext.SimShapExplainer(model, REFERENCE, training_data=X[:60], **FEW)
        explain = made.batch_function(example)
        made.fit()
        expected = made(X).values
    else:
        made = captum_ext.SimShap(model, **FEW).fit(torch.as_tensor(X[:60]))
        explain = made.batch_function(example, baselines=0.0)
        expected = made.attribute(torch.as_tensor(X)).numpy()
    sent = cloudpickle.loads(cloudpickle.dumps(explain))
    model.sizes.clear()
    batches = [sent(batch) for batch in pq.ParquetFile(rows).iter_batches(CHUNK)]
    found = pa.Table.from_batches(batches, schema=sent.arrow_schema).to_pandas()
    prefix = "shap_" if host == "shap" else "attribution_"
    np.testing.assert_allclose(found[[prefix + c for c in COLUMNS]], expected, atol=1e-5)
    assert model.sizes == []  # the copy that was sent is evaluated


def test_parquet_files_are_not_read_ahead(tmp_path):
    """The scanner of a data set held twice the numbers of such a file for a slow reader."""
    numbers = np.random.default_rng(0).normal(size=(20, 200_000)).astype(np.float32)
    table = pa.table({f"x{index}": column for index, column in enumerate(numbers)})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=10_000)
    size = table.nbytes
    del table
    before, largest, n_rows = pa.total_allocated_bytes(), 0, 0
    for batch in batches_of(opened(tmp_path / "rows.parquet"), 1000):
        n_rows += len(batch)
        largest = max(largest, pa.total_allocated_bytes() - before)
        if n_rows % 20_000 == 0:
            time.sleep(0.02)  # the time to explain them, in which a scanner reads on
    assert n_rows == 200_000
    assert largest < 0.25 * size


def test_files_of_a_folder_with_other_types_are_read_as_the_first(tmp_path):
    folder = tmp_path / "rows.parquet"
    folder.mkdir()
    pq.write_table(pa.table({"a": np.arange(3.0)}), folder / "1.parquet")
    pq.write_table(pa.table({"a": np.arange(3.0, 6.0, dtype=np.float32)}), folder / "2.parquet")
    found = pa.Table.from_batches(batches_of(opened(folder), 2))
    assert found["a"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert found.schema.field("a").type == pa.float64()

"""Streams of rows: any source, any format, and the numbers of the ordinary call, bit for bit."""

import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import shap

import shap_ext
from shapley_adapters.errors import (
    CheckpointError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    MissingPackageError,
    NonFiniteValueError,
    ShapleyExtWarning,
    WorkerError,
)
from shapley_adapters.streams import files
from tests.helpers.estimator_table import ESTIMATORS
from tests.helpers.optional import torch

N_ROWS, N_COLUMNS = 53, 9
NAMES = [f"column {index}" for index in range(N_COLUMNS)]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N_ROWS, N_COLUMNS))
X[::7, 2] = 0.0  # like the background, so that rows differ in their active players
BUDGET = 60


def model(X):
    """Return a smooth function whose rows have no influence on each other, not even by rounding."""
    columns = np.asarray(X, dtype=float).T
    first = np.sin(columns[0] * columns[1]) + columns[2] * columns[3] * columns[4]
    for column in columns[5:]:
        first = first + column * columns[0]
    return first


def two_outputs(X):
    return np.stack([model(X), model(X) ** 2], axis=1)


def explainer_of(function=model, background=None, **options):
    masker = np.zeros((1, N_COLUMNS)) if background is None else background
    return shap.Explainer(function, masker, algorithm="randomorder", **{"seed": 3, **options})


def frame():
    return pd.DataFrame(X, columns=NAMES)


def sparse():
    return scipy.sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0.0))


def assert_same(stream, explanation):
    """Check that a stream holds an explanation, bit for bit."""
    pairs = {
        "values": explanation.values,
        "base_values": explanation.base_values,
        "standard_errors": explanation.error_std,
        "lower_bounds": explanation.lower_bounds,
        "upper_bounds": explanation.upper_bounds,
    }
    assert stream.is_complete
    for name, wanted in pairs.items():
        if wanted is not None:
            np.testing.assert_array_equal(stream.array(name), wanted)
    assert stream.n_rows == len(stream) == len(explanation.values)


def saved_array(folder):
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


def loader_of(*tensors):
    data = torch.utils.data.TensorDataset(*tensors)
    return torch.utils.data.DataLoader(data, batch_size=8)


ARRAYS = {
    "array": lambda _: X,
    "path of an array": saved_array,
    "memory map": lambda folder: np.load(saved_array(folder), mmap_mode="r"),
    "tensor": lambda _: torch.from_numpy(X),
    "generator of rows": lambda _: iter(X),
    "generator of lists": lambda _: (row.tolist() for row in X),
    "generator of batches": lambda _: iter(np.split(X, [1, 1, 20, 50])),
    "list of rows": lambda _: list(X),
    "loader": lambda _: loader_of(torch.from_numpy(X)),
}


@pytest.mark.parametrize("source", ARRAYS)
@pytest.mark.parametrize("chunk_size", [None, 1, 10])
def test_arrays_from_any_source(source, chunk_size, tmp_path):
    explainer = explainer_of()
    stream = explainer.explain_stream(
        ARRAYS[source](tmp_path),
        tmp_path / "values.npy",
        max_evals=BUDGET,
        error_bounds=True,
        chunk_size=chunk_size,
        silent=True,
    )
    assert_same(stream, explainer(X, max_evals=BUDGET, error_bounds=True, silent=True))


@pytest.mark.parametrize("source", ["frame", "series", "frames"])
def test_frames(source, tmp_path):
    rows = {
        "frame": frame(),
        "series": (row for _, row in frame().iterrows()),
        "frames": (frame().iloc[start : start + 9] for start in range(0, N_ROWS, 9)),
    }[source]
    explainer = explainer_of(background=frame().iloc[:5])
    stream = explainer.explain_stream(
        rows, tmp_path / "values.npy", max_evals=BUDGET, chunk_size=20, silent=True
    )
    assert_same(stream, explainer(frame(), max_evals=BUDGET, silent=True))
    assert stream.feature_names == NAMES


def test_sparse_rows(tmp_path):
    explainer = explainer_of(function=lambda X: model(X.toarray()))
    stream = explainer.explain_stream(
        sparse(), tmp_path / "values.npy", max_evals=BUDGET, chunk_size=20, silent=True
    )
    assert_same(stream, explainer(sparse(), max_evals=BUDGET, silent=True))
    np.testing.assert_array_equal(stream[4:6].data, sparse()[4:6].toarray())


def test_items_that_are_rows_of_images(tmp_path):
    images = X[:, :8].reshape(-1, 2, 4)
    explainer = shap_ext.RandomOrderExplainer(
        lambda X: X.sum(axis=(1, 2)) ** 2, np.zeros((1, 2, 4)), seed=0
    )
    stream = explainer.explain_stream(
        iter(images), tmp_path / "a.npy", batched=False, max_evals=BUDGET, silent=True
    )
    assert_same(stream, explainer(images, max_evals=BUDGET, silent=True))


@pytest.mark.parametrize("row", ESTIMATORS, ids=[row.id for row in ESTIMATORS])
@pytest.mark.parametrize("independent", [False, True])
def test_chunks_do_not_matter_to_any_estimator(row, independent, tmp_path):
    if row.is_exact and independent:
        return  # it draws nothing
    options = {"independent_rows": True} if independent else {}
    explainer = row.explainer(
        two_outputs, np.zeros((1, N_COLUMNS)), seed=1, **row.options, **options
    )
    budget = row.budget(N_COLUMNS, 110)
    whole = explainer(X, max_evals=budget, silent=True)
    evaluations = explainer.last_estimate.evaluations
    stream = explainer.explain_stream(
        X, tmp_path / "values.npy", max_evals=budget, chunk_size=17, silent=True
    )
    if row.is_posterior or "odd GP" in row.id or row.cooperators == "learned":
        # rounding of the regression depends on the number of rows that are solved together
        np.testing.assert_allclose(stream.values, whole.values, rtol=1e-9, atol=1e-10)
    else:
        assert_same(stream, whole)
    np.testing.assert_array_equal(stream.evaluations, evaluations)


@pytest.mark.parametrize("function", [model, two_outputs])
@pytest.mark.parametrize("ending", [".npy", ".parquet", ".arrow"])
def test_formats(function, ending, tmp_path):
    if ending != ".npy":
        pytest.importorskip("pyarrow")
    explainer = explainer_of(function, frame().iloc[:5])
    whole = explainer(frame(), max_evals=BUDGET, error_bounds=True, silent=True)
    out = tmp_path / f"values{ending}"
    stream = explainer.explain_stream(
        frame(), out, max_evals=BUDGET, error_bounds=True, chunk_size=20, silent=True
    )
    for opened in (stream, shap_ext.StreamedExplanations.open(out)):
        assert_same(opened, whole)
        assert opened.output_names == whole.output_names
        assert opened.seed == 3
        chunks = list(opened)
        assert [len(chunk.values) for chunk in chunks] == [20, 20, 13]
        np.testing.assert_array_equal(chunks[1].lower_bounds, whole.lower_bounds[20:40])
        across = opened[18:22]
        np.testing.assert_array_equal(across.values, whole.values[18:22])
        np.testing.assert_array_equal(opened[-1].values, whole.values[-1])
    np.testing.assert_array_equal(stream[18:22].data, X[18:22])
    assert stream[5:5].values.shape == whole.values[:0].shape
    with pytest.raises(IndexError):
        stream[N_ROWS]
    with pytest.raises(InvalidArgumentTypeError, match="step"):
        stream[::2]


def test_numpy_reads_the_array(tmp_path):
    explainer = explainer_of(two_outputs)
    stream = explainer.explain_stream(X, tmp_path / "values.npy", max_evals=BUDGET, silent=True)
    np.testing.assert_array_equal(np.load(tmp_path / "values.npy"), stream.values)
    base_values = np.load(tmp_path / "values.base_values.npy", mmap_mode="r")
    np.testing.assert_array_equal(base_values, stream.base_values)


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_other_programs_read_the_folder(ending, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    explainer = explainer_of(background=frame().iloc[:5])
    out = tmp_path / f"values{ending}"
    stream = explainer.explain_stream(frame(), out, max_evals=BUDGET, chunk_size=20, silent=True)
    if ending == ".parquet":
        table = pd.read_parquet(out)
    else:
        table = dataset.dataset(out, format="arrow").to_table().to_pandas()
    assert [*table.columns] == [*NAMES, "base_value", "evaluations"]
    np.testing.assert_array_equal(table[NAMES], stream.values)
    np.testing.assert_array_equal(table["base_value"], stream.base_values)


def arrow_sources(folder):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    dataset = pytest.importorskip("pyarrow.dataset")
    table = pyarrow.Table.from_pandas(frame())
    path = folder / "rows.parquet"
    parquet.write_table(table, path, row_group_size=12)
    return {
        "path": path,
        "text of a path": str(path),
        "folder": folder,
        "table": table,
        "reader": table.to_reader(max_chunksize=7),
        "batches": parquet.ParquetFile(path).iter_batches(batch_size=11),
        "file": parquet.ParquetFile(path),
        "data set": dataset.dataset(path),
        "scanner": dataset.dataset(path).scanner(columns=NAMES, batch_size=6),
    }


SOURCES_OF_ARROW = (
    *("path", "text of a path", "folder", "table", "reader"),
    *("batches", "file", "data set", "scanner"),
)


@pytest.mark.parametrize("source", SOURCES_OF_ARROW)
def test_rows_from_arrow(source, tmp_path):
    (tmp_path / "rows").mkdir()
    rows = arrow_sources(tmp_path / "rows")[source]
    explainer = explainer_of(background=frame().iloc[:5])
    stream = explainer.explain_stream(
        rows, tmp_path / "values.npy", max_evals=BUDGET, chunk_size=20, silent=True
    )
    assert_same(stream, explainer(frame(), max_evals=BUDGET, silent=True))


def test_the_extra_is_named_where_pyarrow_is_missing(tmp_path, monkeypatch):
    import importlib

    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingPackageError, match=r"shapley-ext\[arrow\]"):
        explainer_of().explain_stream(X, tmp_path / "values.parquet", silent=True)
    assert files.FORMATS[".parquet"] == "parquet"


def test_errors_name_the_row_of_the_stream(tmp_path):
    rows = X.copy()
    rows[31, 0] = np.nan
    explainer = explainer_of()
    with pytest.raises(NonFiniteValueError, match="value of row 31,"):
        explainer.explain_stream(rows, tmp_path / "a.npy", chunk_size=10, silent=True)
    stream = shap_ext.StreamedExplanations.open(tmp_path / "a.npy")
    assert (stream.n_rows, stream.is_complete) == (30, False)
    np.testing.assert_array_equal(stream.values, explainer(X[:30], silent=True).values)


def test_warnings_count_the_rows_of_the_stream(tmp_path):
    explainer = explainer_of()

    def texts(call):
        with pytest.warns(ShapleyExtWarning) as caught:
            call()
        return [str(warning.message) for warning in caught]

    options = {"max_evals": BUDGET, "tolerance": 1e-6, "silent": True}
    out = tmp_path / "a.npy"
    assert texts(lambda: explainer.explain_stream(X, out, chunk_size=10, **options)) == texts(
        lambda: explainer(X, **options)
    )


def test_a_warning_of_each_chunk_appears_once(tmp_path):
    noise = np.random.default_rng(0)
    explainer = explainer_of(lambda X: noise.normal(size=len(X)))
    with pytest.warns(ShapleyExtWarning, match="not deterministic") as caught:
        explainer.explain_stream(X, tmp_path / "a.npy", chunk_size=10, silent=True)
    assert len(caught) == 1


def test_what_cannot_be_explained_is_refused(tmp_path):
    explainer, out = explainer_of(), tmp_path / "a.npy"
    for rows, error, words in [
        (iter([]), InvalidArgumentError, "holds no rows"),
        ((X, X), InvalidArgumentTypeError, "rows is a tuple"),
        (np.zeros((0, 9)), InvalidArgumentError, "holds no rows"),
        (3, InvalidArgumentTypeError, "rows cannot be a int"),
        (tmp_path / "none.npy", InvalidArgumentError, "there is no file"),
        (tmp_path / "none.parquet", InvalidArgumentError, "there is no file"),
        (["a text"], InvalidArgumentTypeError, "batch of rows"),
        (iter([X[:2], X[:2, :4]]), InvalidArgumentError, "cannot be joined"),
    ]:
        with pytest.raises(error, match=words):
            explainer.explain_stream(rows, out, silent=True)
    for name, words in [
        ("a.csv", "must end in"),
        ("a", "must end in"),
        ("none/a.npy", "does not exist"),
        ("x" * 300 + ".npy", "cannot be a path"),
        ("a\0.npy", "cannot be a path"),
        ("\ud800.npy", "cannot be a path"),
    ]:
        with pytest.raises(InvalidArgumentError, match=words):
            explainer.explain_stream(X, tmp_path / name, silent=True)
    with pytest.raises(InvalidArgumentTypeError, match="out must be a path"):
        explainer.explain_stream(X, np.zeros(3), silent=True)
    with pytest.raises(InvalidArgumentError, match="list of indices"):
        explainer.explain_stream(X, out, outputs=shap.Explanation.argsort[:1], silent=True)
    for options in ({"chunk_size": 0}, {"chunk_size": 2.5}, {"checkpoint": 1}, {"batched": 0}):
        with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=min(options)):
            explainer.explain_stream(X, out, silent=True, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_loader_with_labels_is_refused(tmp_path):
    loader = loader_of(torch.from_numpy(X), torch.zeros(N_ROWS))
    with pytest.raises(InvalidArgumentTypeError, match="holds 2 tensors"):
        explainer_of().explain_stream(loader, tmp_path / "a.npy", silent=True)
    rows = (batch for batch, _ in loader)
    assert explainer_of().explain_stream(rows, tmp_path / "a.npy", silent=True).is_complete


def test_rows_of_other_columns_are_refused(tmp_path):
    explainer = shap_ext.RandomOrderExplainer(
        lambda X: np.asarray(X).sum(axis=1), np.zeros((1, N_COLUMNS)), seed=0
    )
    renamed = frame().rename(columns={NAMES[3]: "other"})
    pieces = iter([frame().iloc[:10], renamed.iloc[10:20]])
    pytest.importorskip("pyarrow")
    with pytest.raises(InvalidArgumentError, match="from row 10 on"):
        explainer.explain_stream(pieces, tmp_path / "a.parquet", chunk_size=10, silent=True)


def test_columns_of_one_name_are_refused_in_tables(tmp_path):
    pytest.importorskip("pyarrow")
    rows = frame().rename(columns={NAMES[3]: "evaluations"})
    explainer = explainer_of(background=rows.iloc[:5])
    with pytest.raises(InvalidArgumentError, match="'evaluations'"):
        explainer.explain_stream(rows, tmp_path / "a.parquet", silent=True)
    explainer.explain_stream(rows, tmp_path / "a.npy", silent=True)


def test_columns_with_half_a_character_are_refused_in_tables(tmp_path):
    pytest.importorskip("pyarrow")
    explainer = explainer_of(feature_names=["\ud800", *map(str, range(1, N_COLUMNS))])
    with pytest.raises(InvalidArgumentError, match="half of a character"):
        explainer.explain_stream(X, tmp_path / "a.parquet", max_evals=BUDGET, silent=True)
    explainer.explain_stream(X, tmp_path / "a.npy", max_evals=BUDGET, silent=True)


def test_results_are_not_overwritten(tmp_path):
    explainer, out = explainer_of(), tmp_path / "a.npy"
    np.save(out, X)
    with pytest.raises(CheckpointError, match="has no journal"):
        explainer.explain_stream(X, out, silent=True)
    out.unlink()
    explainer.explain_stream(X, out, silent=True)
    with pytest.raises(CheckpointError, match="exists. Pass checkpoint=True"):
        explainer.explain_stream(X, out, silent=True)
    with pytest.raises(CheckpointError, match="there are no results"):
        shap_ext.StreamedExplanations.open(tmp_path / "b.npy")


def test_plots_take_the_explanations(tmp_path):
    explainer = explainer_of(background=frame().iloc[:5])
    stream = explainer.explain_stream(frame(), tmp_path / "a.npy", error_bounds=True, silent=True)
    shap.plots.waterfall(stream[3], show=False)
    shap.plots.beeswarm(stream[:30], show=False)


def test_read_only_rows_of_a_module_do_not_warn(tmp_path):
    """Rows are not copied for their game, and torch warns of arrays that it cannot write to."""
    rows = np.load(saved_array(tmp_path), mmap_mode="r")
    module = torch.nn.Linear(N_COLUMNS, 1).double().eval()
    explainer = explainer_of(module)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = explainer.explain_stream(rows, tmp_path / "a.npy", max_evals=BUDGET, silent=True)
        whole = explainer(rows, max_evals=BUDGET, silent=True)
    np.testing.assert_allclose(stream.values, whole.values, atol=1e-12)


@pytest.mark.parametrize("name", ["lshapley", "cshapley", "myerson"])
def test_estimators_on_graphs(name, tmp_path):
    explainer = shap.Explainer(
        model, np.zeros((1, N_COLUMNS)), algorithm=name, graph="line", seed=0
    )
    stream = explainer.explain_stream(
        X, tmp_path / "a.npy", max_evals=BUDGET, chunk_size=17, silent=True
    )
    assert_same(stream, explainer(X, max_evals=BUDGET, silent=True))
    of_rows = shap.Explainer(
        model,
        np.zeros((1, N_COLUMNS)),
        algorithm=name,
        graph=[shap_ext.PlayerGraph.line(N_COLUMNS)] * N_ROWS,
    )
    with pytest.raises(InvalidArgumentError, match="graph"):
        of_rows.explain_stream(X, tmp_path / "b.npy", chunk_size=17, silent=True)


def model_that_fails(X):
    """Refuse some coalitions of one row, which no other row has."""
    if ((X[:, 1] == 31.0) & (X[:, 0] == 0.0)).any():
        raise RuntimeError("a bad row")
    return model(X)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_share_the_rows_of_a_chunk(backend, tmp_path):
    """The numbers are those of one process, and errors count the rows of the stream."""
    rows = X.copy()
    rows[31, 1] = 31.0
    with joblib.parallel_config(backend=backend):
        stream = explainer_of(n_jobs=2).explain_stream(
            X, tmp_path / "a.npy", max_evals=BUDGET, chunk_size=20, silent=True
        )
        with pytest.raises(WorkerError, match=r"Row 31: the model raised .*a bad row"):
            explainer_of(model_that_fails, n_jobs=2).explain_stream(
                rows, tmp_path / "b.npy", max_evals=BUDGET, chunk_size=20, silent=True
            )
    assert_same(stream, explainer_of()(X, max_evals=BUDGET, silent=True))
    one_process = explainer_of().explain_stream(
        X, tmp_path / "a.npy", max_evals=BUDGET, checkpoint=True, silent=True
    )
    assert_same(one_process, explainer_of()(X, max_evals=BUDGET, silent=True))


def test_scores_and_graphs_of_each_row_are_refused(tmp_path):
    """Each chunk would take those of the first rows."""
    x = np.random.default_rng(0).normal(size=(10, 6))
    scores = np.ones((5, 6, 6))
    explainer = shap_ext.OddGPExplainer(lambda x: x.prod(axis=1), 0 * x[:1], cooperators=scores)
    with pytest.raises(InvalidArgumentError, match=r"cooperators has shape \(5, 6, 6\)"):
        explainer.explain_stream(x, tmp_path / "scores.npy", chunk_size=5, max_evals=40)
    one = shap_ext.OddGPExplainer(lambda x: x.prod(axis=1), 0 * x[:1], cooperators=scores[:1])
    with pytest.raises(InvalidArgumentError, match="cooperators has shape"):
        one.batch_function(pd.DataFrame(x[:1], columns=list("abcdef")), max_evals=40)
    graph = [shap_ext.PlayerGraph(6, np.array([(0, 1), (1, 2)]))] * 5
    explainer = shap_ext.CShapleyExplainer(lambda x: x.prod(axis=1), 0 * x[:1], graph=graph)
    with pytest.raises(InvalidArgumentError, match="a graph for each row"):
        explainer.explain_stream(x, tmp_path / "graphs.npy", chunk_size=5)

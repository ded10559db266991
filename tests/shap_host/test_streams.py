"""Streams of rows: any source, any format, the numbers of the ordinary call, and after a stop."""

import errno
import os
from typing import Any

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
    NonFiniteValueError,
    ShapleyExtWarning,
)
from tests.helpers.optional import HAS_TORCH, torch

N_ROWS, N_COLUMNS, BUDGET = 24, 8, 70
NAMES = [f"column {index}" for index in range(N_COLUMNS)]
X = np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS))
X[::7, 2] = 0.0  # like the background, so that rows differ in their active players
BACKGROUND = np.zeros((1, N_COLUMNS))
FRAME = pd.DataFrame(X, columns=NAMES)
OPTIONS = {"max_evals": BUDGET, "chunk_size": 5, "silent": True}
ENDINGS = [".npz", ".csv", ".parquet"]


def model(X):
    """Return a smooth function whose rows have no influence on each other, not even by rounding."""
    columns = np.asarray(X, dtype=float).T
    first = np.sin(columns[0] * columns[1]) + columns[2] * columns[3] * columns[4]
    for column in columns[5:]:
        first = first + column * columns[0]
    return first


def two_outputs(X):
    return np.stack([model(X), model(X) ** 2], axis=1)


def explainer_of(function=model, background=BACKGROUND, seed=3, **options):
    return shap.Explainer(function, background, algorithm="semivalue", seed=seed, **options)


def whole(rows=X, function=model, background=BACKGROUND, **options):
    return explainer_of(function, background)(rows, max_evals=BUDGET, silent=True, **options)


def assert_same(stream, explanation):
    """Check that a stream holds an explanation, bit for bit."""
    assert stream.is_complete
    assert stream.n_rows == len(stream) == len(explanation.values)
    np.testing.assert_array_equal(stream.values, explanation.values)
    np.testing.assert_array_equal(stream.base_values, explanation.base_values)
    if explanation.error_std is not None:
        np.testing.assert_array_equal(stream.standard_errors, explanation.error_std)
        np.testing.assert_array_equal(stream.array("upper_bounds"), explanation.upper_bounds)


@pytest.fixture(params=ENDINGS)
def out(request, tmp_path):
    if request.param == ".parquet":
        pytest.importorskip("pyarrow")
    return tmp_path / f"values{request.param}"


# Where rows come from, and where values go


def saved(folder):
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


def in_arrow(make):
    def source(folder):
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        table = pyarrow.Table.from_pandas(FRAME)
        parquet.write_table(table, folder / "rows.parquet", row_group_size=9)
        FRAME.to_csv(folder / "rows.csv", index=False)
        return make(folder, table, parquet, pytest.importorskip("pyarrow.dataset"))

    return source


def in_one_buffer(rows):
    buffer = rows[:1] * 0
    for row in rows:
        buffer[:] = row
        yield buffer


SOURCES = {
    "array": lambda _: X,
    "generator of one buffer": lambda _: in_one_buffer(X),
    "path of an array": saved,
    "generator of rows": lambda _: iter(X),
    "generator of lists": lambda _: (row.tolist() for row in X),
    "generator of batches": lambda _: iter(np.split(X, [1, 1, 20])),
    "loader": lambda _: torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.from_numpy(X)), batch_size=8
    ),
    "frame": lambda _: FRAME,
    "generator of series": lambda _: (row for _, row in FRAME.iterrows()),
    "frames": lambda _: (FRAME.iloc[start : start + 9] for start in range(0, N_ROWS, 9)),
    "parquet": in_arrow(lambda folder, *_: folder / "rows.parquet"),
    "csv": in_arrow(lambda folder, *_: str(folder / "rows.csv")),
    "table": in_arrow(lambda folder, table, *_: table),
    "reader": in_arrow(lambda folder, table, *_: table.to_reader(max_chunksize=7)),
    "parquet file": in_arrow(lambda folder, _, pq, __: pq.ParquetFile(folder / "rows.parquet")),
    "data set": in_arrow(lambda folder, _, __, ds: ds.dataset(folder / "rows.parquet")),
    "scanner": in_arrow(
        lambda folder, _, __, ds: ds.dataset(folder / "rows.parquet").scanner(batch_size=6)
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_rows_from_any_source(source, tmp_path):
    (tmp_path / "rows").mkdir()
    rows = SOURCES[source](tmp_path / "rows")
    is_table = source in list(SOURCES)[list(SOURCES).index("frame") :]
    background = FRAME.iloc[:5] if is_table else BACKGROUND
    stream = explainer_of(background=background).explain_stream(
        rows, tmp_path / "values.npz", **OPTIONS
    )
    assert_same(stream, whole(FRAME if is_table else X, background=background))


def test_sparse_rows_and_rows_of_images(tmp_path):
    rows = scipy.sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0.0))
    of_sparse = explainer_of(lambda X: model(X.toarray()))
    stream = of_sparse.explain_stream(rows, tmp_path / "values.npz", **OPTIONS)
    assert_same(stream, of_sparse(rows, max_evals=BUDGET, silent=True))
    np.testing.assert_array_equal(stream[4:6].data, rows[4:6].toarray())
    images = X.reshape(-1, 2, 4)
    of_images = explainer_of(lambda X: X.sum(axis=(1, 2)) ** 2, np.zeros((1, 2, 4)))
    stream = of_images.explain_stream(iter(images), tmp_path / "b.npz", batched=False, **OPTIONS)
    assert_same(stream, of_images(images, max_evals=BUDGET, silent=True))


@pytest.mark.parametrize("function", [model, two_outputs])
def test_formats(function, out):
    explainer = explainer_of(function, FRAME.iloc[:5])
    wanted = explainer(FRAME, max_evals=BUDGET, error_bounds=True, silent=True)
    stream = explainer.explain_stream(
        FRAME, out, max_evals=BUDGET, error_bounds=True, chunk_size=10, silent=True
    )
    for opened in (stream, shap_ext.StreamedExplanations.open(out)):
        assert_same(opened, wanted)
        assert (opened.output_names, opened.seed) == (wanted.output_names, 3)
        assert opened.feature_names == NAMES
        assert [len(chunk.values) for chunk in opened] == [10, 10, 4]
        np.testing.assert_array_equal(opened[8:12].lower_bounds, wanted.lower_bounds[8:12])
        np.testing.assert_array_equal(opened[-1].values, wanted.values[-1])
    np.testing.assert_array_equal(stream[8:12].data, X[8:12])
    assert stream[5:5].values.shape == wanted.values[:0].shape
    with pytest.raises(IndexError):
        stream[N_ROWS]
    with pytest.raises(InvalidArgumentTypeError, match="step"):
        stream[::2]
    shap.plots.waterfall(opened[3] if function is model else opened[3][:, 0], show=False)


def test_other_programs_read_the_parts(out):
    stream = explainer_of(background=FRAME.iloc[:5]).explain_stream(FRAME, out, **OPTIONS)
    parts = sorted(out.glob("part-*"))
    found: Any
    if out.suffix == ".npz":
        found = np.concatenate([np.load(part)["values"] for part in parts])
    elif out.suffix == ".csv":
        found = pd.concat([pd.read_csv(part) for part in parts])
    else:
        found = pd.read_parquet(out)
    if out.suffix != ".npz":
        assert [*found.columns] == [*NAMES, "base_value", "evaluations"]
        found = found[NAMES]
    # pandas' own parser of CSV may err in the last bits.
    np.testing.assert_allclose(found, stream.values, rtol=1e-12 if out.suffix == ".csv" else 0)


# What cannot be explained


def test_errors_and_warnings_name_the_rows_of_the_stream(tmp_path):
    rows = X.copy()
    rows[17, 0] = np.nan
    with pytest.raises(NonFiniteValueError, match="value of row 17,"):
        explainer_of().explain_stream(rows, tmp_path / "a.npz", **OPTIONS)
    stream = shap_ext.StreamedExplanations.open(tmp_path / "a.npz")
    assert (stream.n_rows, stream.is_complete) == (15, False)
    np.testing.assert_array_equal(stream.values, whole(X[:15]).values)
    options = {**OPTIONS, "max_evals": 100, "tolerance": 1e-6}
    with pytest.warns(ShapleyExtWarning, match="20 of 24 rows did not reach") as found:
        explainer_of().explain_stream(X, tmp_path / "b.npz", **options)
    assert len(found) == 1
    noise = np.random.default_rng(0)
    noisy = explainer_of(lambda X: noise.normal(size=len(X)))
    with pytest.warns(ShapleyExtWarning, match="not deterministic") as found:
        noisy.explain_stream(X, tmp_path / "c.npz", **OPTIONS)
    assert len(found) == 1


def test_what_cannot_be_explained_is_refused(tmp_path):
    explainer = explainer_of()
    for rows, error, words in [
        (iter([]), InvalidArgumentError, "holds no rows"),
        ((X, X), InvalidArgumentTypeError, "rows is a tuple"),
        (np.zeros((0, N_COLUMNS)), InvalidArgumentError, "holds no rows"),
        (3, InvalidArgumentTypeError, "rows cannot be a int"),
        (tmp_path / "none.npy", InvalidArgumentError, "there is no file"),
        (["a text"], InvalidArgumentTypeError, "batch of rows"),
        (iter([X[:2], X[:2, :4]]), InvalidArgumentError, "cannot be joined"),
    ]:
        with pytest.raises(error, match=words):
            explainer.explain_stream(rows, tmp_path / "a.npz", silent=True)
    for name in ("a.npy", "a", "none/a.npz", "x" * 300 + ".npz", "a\0.npz", "\ud800.npz"):
        with pytest.raises(InvalidArgumentError, match=r"must end in|does not exist|cannot be a p"):
            explainer.explain_stream(X, tmp_path / name, silent=True)
    with pytest.raises(InvalidArgumentError, match="list of indices"):
        explainer.explain_stream(X, tmp_path / "a.npz", outputs=shap.Explanation.argsort[:1])
    for options in ({"chunk_size": 0}, {"chunk_size": 2.5}, {"checkpoint": 1}, {"batched": 0}):
        with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=min(options)):
            explainer.explain_stream(X, tmp_path / "a.npz", silent=True, **options)
    assert list(tmp_path.iterdir()) == []
    if HAS_TORCH:
        labelled = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.zeros(N_ROWS))
        loader = torch.utils.data.DataLoader(labelled, batch_size=8)
        with pytest.raises(InvalidArgumentTypeError, match="holds 2 tensors"):
            explainer.explain_stream(loader, tmp_path / "a.npz", silent=True)


def test_columns_that_do_not_fit_are_refused_in_tables(tmp_path):
    of_frames = explainer_of(lambda X: np.asarray(X).sum(axis=1))
    renamed = FRAME.rename(columns={NAMES[3]: "other"})
    pieces = iter([FRAME.iloc[:10], renamed.iloc[10:20]])
    with pytest.raises(InvalidArgumentError, match="from row 10 on"):
        of_frames.explain_stream(pieces, tmp_path / "a.csv", chunk_size=10, silent=True)
    for name in ("evaluations", "\ud800"):
        names = [name, *NAMES[1:]]
        with pytest.raises(InvalidArgumentError, match="twice, or has half of a character"):
            explainer_of(feature_names=names).explain_stream(X, tmp_path / "b.csv", **OPTIONS)
        stream = explainer_of(feature_names=names)
        assert stream.explain_stream(X, tmp_path / f"{len(name)}.npz", **OPTIONS).is_complete


def test_what_is_there_is_not_overwritten(tmp_path):
    explainer, out = explainer_of(), tmp_path / "a.npz"
    out.mkdir()
    (out / "_SUCCESS").touch()
    for _ in range(2):  # a folder of another program, and a file
        with pytest.raises(CheckpointError, match="no stream wrote it"):
            explainer.explain_stream(X, out, checkpoint=True, **OPTIONS)
        if out.is_dir():
            (out / "_SUCCESS").unlink()
            out.rmdir()
            out.touch()
    out.unlink()
    explainer.explain_stream(X, out, **OPTIONS)
    with pytest.raises(CheckpointError, match="exists. Pass checkpoint=True"):
        explainer.explain_stream(X, out, **OPTIONS)
    with pytest.raises(CheckpointError, match="there are no results"):
        shap_ext.StreamedExplanations.open(tmp_path / "b.npz")


# After a stop


def stopping_after(n_rows):
    """Yield rows, and raise Ctrl-C's error after some of them."""
    yield from X[:n_rows]
    raise KeyboardInterrupt


def stopped(out, n_rows=13, **options):
    """Explain some rows and stop, as by Ctrl-C."""
    with pytest.raises(KeyboardInterrupt):
        explainer_of(**options).explain_stream(stopping_after(n_rows), out, **OPTIONS)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_stopped_stream_can_be_read_and_goes_on(out):
    stopped(out, n_rows=3)
    assert not out.exists()  # before the first chunk
    stopped(out)
    stream = shap_ext.StreamedExplanations.open(out)
    assert (stream.n_rows, stream.is_complete) == (10, False)
    np.testing.assert_array_equal(stream.values, whole().values[:10])
    assert "10 rows, not complete" in repr(stream)
    (out / f"_part-000000000010{out.suffix}").write_bytes(b"cut off by a kill")
    n_asked = 0

    def counting(X):
        nonlocal n_asked
        n_asked += len(X)
        return model(X)

    counting.__qualname__, counting.__module__ = model.__qualname__, model.__module__
    goes_on = explainer_of(counting)
    assert_same(goes_on.explain_stream(X, out, checkpoint=True, **OPTIONS), whole())
    assert n_asked <= (14 + 1) * (BUDGET + 4)  # a row is explained again, to recognise the model
    assert not list(out.glob("_part*"))
    before = contents(out)
    assert_same(explainer_of().explain_stream(X, out, checkpoint=True, **OPTIONS), whole())
    assert contents(out) == before


def test_a_full_disk_leaves_what_was_written(out, monkeypatch):
    sync = os.fsync

    def full(descriptor):
        if len(list(out.glob("part-*"))) == 2 and list(out.glob("_part-*")):
            raise OSError(errno.ENOSPC, "No space left on device")
        return sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        explainer_of().explain_stream(X, out, **OPTIONS)
    stream = shap_ext.StreamedExplanations.open(out)
    assert (stream.n_rows, stream.is_complete) == (10, False)
    assert not list(out.glob("_part*"))
    monkeypatch.setattr(os, "fsync", sync)
    assert_same(explainer_of().explain_stream(X, out, checkpoint=True, **OPTIONS), whole())


def test_a_missing_or_damaged_part_is_explained_again(out):
    explainer_of().explain_stream(X, out, **OPTIONS)
    part = sorted(out.glob("part-*"))[2]
    content = part.read_bytes()
    value = whole().values[10, 0]
    place = content.index(repr(value.item()).encode() if out.suffix == ".csv" else value.tobytes())
    flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
    for damaged in (flipped, b"".join(content.splitlines(keepends=True)[:-1])):
        part.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="Delete it and repeat the call"):
            _ = shap_ext.StreamedExplanations.open(out).values
    part.unlink()
    stream = shap_ext.StreamedExplanations.open(out)
    assert (stream.n_rows, stream.is_complete) == (10, False)
    assert_same(explainer_of().explain_stream(X, out, checkpoint=True, **OPTIONS), whole())
    record = out / "_stream.json"
    for damaged in ("{", record.read_text().replace('"70"', '"71"')):
        record.write_text(damaged)
        with pytest.raises(CheckpointError, match="is damaged"):
            shap_ext.StreamedExplanations.open(out)


def test_a_seed_that_was_drawn_is_that_of_the_checkpoint(tmp_path):
    stopped(tmp_path / "a.npz", seed=None)
    explainer = explainer_of(seed=None)
    stream = explainer.explain_stream(X, tmp_path / "a.npz", checkpoint=True, **OPTIONS)
    assert explainer.seed == stream.seed
    again = explainer_of(seed=stream.seed)(X, max_evals=BUDGET, silent=True)
    np.testing.assert_array_equal(stream.values, again.values)


def another(X):
    return model(X)


def larger(X):
    return 1.001 * model(X)


larger.__qualname__, larger.__module__ = model.__qualname__, model.__module__
WRAPPED = shap.models.Model(another)
OTHER_ROWS = np.where(np.arange(N_ROWS)[:, None] == 7, X + 1e-12, X)


@pytest.mark.parametrize(
    ("changed", "call", "words"),
    [
        ({"seed": 2}, {}, "seed was 3, now it is 2"),
        ({}, {"max_evals": 71}, "max_evals was 70, now it is 71"),
        ({}, {"tolerance": 0.1}, "tolerance was None, now it is 0.1"),
        ({}, {"chunk_size": 6}, "chunk_size was 5, now it is 6"),
        ({"independent_rows": True}, {}, "independent_rows was False, now it is True"),
        ({"groups": {"first": [0, 1]}}, {}, "groups was None, now it is {'first': "),
        ({"background": BACKGROUND + 0.1}, {}, "masker was ndarray float64 of shape"),
        ({"function": WRAPPED}, {}, r"model was .*\.model, now it is .*test_streams\.another\."),
        ({"function": larger}, {}, "another model .* row 0, explained again, the values differ"),
        ({}, {"rows": OTHER_ROWS}, "other data. Rows 5 to 9 differ"),
        ({}, {"rows": X[::-1]}, "other data. Rows 0 to 4 differ"),
        ({}, {"rows": X.astype(np.float32)}, "other data. Rows 0 to 4"),
        ({}, {"rows": FRAME}, "other data. Rows 0 to 4"),
        ({}, {"rows": X[:7]}, "other data. Rows 5 to 9 differ"),
        ({}, {"rows": X[:5]}, "other data. The stream has only 5 rows"),
    ],
)
def test_another_call_is_refused_with_the_difference(changed, call, words, tmp_path):
    out = tmp_path / "a.npz"
    stopped(out)
    before = contents(out)
    options = {"rows": X, **OPTIONS, **call}
    with pytest.raises(CheckpointError, match=words):
        explainer_of(**changed).explain_stream(out=out, checkpoint=True, **options)
    assert contents(out) == before


def test_another_estimator_and_further_rows_are_refused(tmp_path):
    out = tmp_path / "a.npz"
    explainer_of().explain_stream(X[:10], out, **OPTIONS)
    with pytest.raises(CheckpointError, match="It has 10 rows, but the stream has more"):
        explainer_of().explain_stream(X, out, checkpoint=True, **OPTIONS)
    other = shap.Explainer(model, BACKGROUND, algorithm="randomorder", seed=3)
    with pytest.raises(CheckpointError, match="SemivalueExplainer, now it is RandomOrderExplainer"):
        other.explain_stream(X[:10], out, checkpoint=True, **OPTIONS)


@pytest.mark.parametrize("other_background", [False, True])
def test_one_call_at_a_time_writes(other_background, out):
    """The second call begins while the first explains a chunk."""
    refused = []
    background = BACKGROUND + 1.0 if other_background else BACKGROUND

    def starting_another(X):
        if not refused:
            refused.append(True)
            with pytest.raises(CheckpointError, match="another call is writing"):
                explainer_of(background=background).explain_stream(
                    X, out, checkpoint=True, **OPTIONS
                )
        return model(X)

    assert_same(explainer_of(starting_another).explain_stream(X, out, **OPTIONS), whole())
    assert refused
    assert not (out / "_lock").exists()

"""Checkpoints of streams: what goes on, what is refused, and files that were changed."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shap_ext
from shapley_adapters.errors import CheckpointError, ShapleyExtError, ShapleyExtWarning
from shapley_adapters.streams.files import journal_path
from shapley_adapters.streams.journal import Journal
from tests.helpers.optional import HAS_TORCH, nn, torch

N_ROWS, N_COLUMNS, BUDGET = 24, 8, 60
X = np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS))
OPTIONS = {"max_evals": BUDGET, "chunk_size": 5, "silent": True}
BACKGROUND = np.zeros((1, N_COLUMNS))


def model(X):
    return X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] * X[:, 4] + X[:, 5:].sum(axis=1)


def explainer_of(function=model, background=BACKGROUND, seed=1, **options):
    return shap.Explainer(function, background, algorithm="semivalue", seed=seed, **options)


def stopping_after(n_rows):
    """Yield rows, and raise Ctrl-C's error after some of them."""
    yield from X[:n_rows]
    raise KeyboardInterrupt


def stopped(out, n_rows=13, **options):
    """Explain some rows and stop, as by Ctrl-C."""
    with pytest.raises(KeyboardInterrupt):
        explainer_of(**options).explain_stream(stopping_after(n_rows), out, **OPTIONS)


@pytest.fixture(params=[".npy", ".parquet", ".arrow"])
def out(request, tmp_path):
    if request.param != ".npy":
        pytest.importorskip("pyarrow")
    return tmp_path / f"values{request.param}"


def test_what_is_finished_can_be_read_after_ctrl_c(out):
    stopped(out)
    stream = shap_ext.StreamedExplanations.open(out)
    assert (stream.n_rows, stream.is_complete) == (10, False)
    whole = explainer_of()(X, max_evals=BUDGET, silent=True)
    np.testing.assert_array_equal(stream.values, whole.values[:10])
    assert [len(chunk.values) for chunk in stream] == [5, 5]
    assert "10 rows, not complete" in repr(stream)
    if out.suffix == ".npy":
        np.testing.assert_array_equal(np.load(out), whole.values[:10])
    if out.suffix == ".parquet":
        assert len(pd.read_parquet(out)) == 10


def test_a_stopped_stream_goes_on(out):
    stopped(out)
    n_rows_of_calls = []

    def counting(X):
        n_rows_of_calls.append(len(X))
        return model(X)

    counting.__qualname__, counting.__module__ = model.__qualname__, model.__module__
    stream = explainer_of(counting).explain_stream(X, out, checkpoint=True, **OPTIONS)
    whole = explainer_of()(X, max_evals=BUDGET, silent=True)
    np.testing.assert_array_equal(stream.values, whole.values)
    assert stream.is_complete
    n_probes = 2  # of the two finished chunks, a row each
    assert sum(n_rows_of_calls) <= (14 + n_probes) * (BUDGET + 2)
    again = explainer_of().explain_stream(X, out, checkpoint=True, **OPTIONS)
    np.testing.assert_array_equal(again.values, whole.values)


class Interrupted:
    """A model during which Ctrl-C is pressed once, and which counts the rows that it is given."""

    def __init__(self, at_row):
        self.at_row, self.n_rows = at_row, 0

    def __call__(self, X):
        before, self.n_rows = self.n_rows, self.n_rows + len(X)
        if before <= self.at_row < self.n_rows:
            raise KeyboardInterrupt
        return model(X)


def test_the_same_call_goes_on_after_ctrl_c_in_the_model(out):
    interrupted = Interrupted(at_row=12 * BUDGET)
    explainer = explainer_of(interrupted)
    with pytest.raises(KeyboardInterrupt):
        explainer.explain_stream(X, out, checkpoint=True, **OPTIONS)
    assert shap_ext.StreamedExplanations.open(out).n_rows == 10
    interrupted.n_rows = 13 * BUDGET  # past the interrupt
    stream = explainer.explain_stream(X, out, checkpoint=True, **OPTIONS)
    assert stream.is_complete
    n_probes = 2  # of the two finished chunks, a row each
    assert interrupted.n_rows <= (13 + 14 + n_probes) * (BUDGET + 2)
    whole = explainer_of()(X, max_evals=BUDGET, silent=True)
    np.testing.assert_array_equal(stream.values, whole.values)


def test_without_an_earlier_call_it_begins(tmp_path):
    stream = explainer_of().explain_stream(X, tmp_path / "a.npy", checkpoint=True, **OPTIONS)
    assert stream.is_complete


def test_a_stop_before_the_first_chunk_leaves_nothing(out):
    stopped(out, n_rows=3)
    with pytest.raises(CheckpointError, match="there are no results"):
        shap_ext.StreamedExplanations.open(out)
    assert explainer_of().explain_stream(X, out, **OPTIONS).is_complete


def test_a_seed_that_was_drawn_is_that_of_the_checkpoint(tmp_path):
    stopped(tmp_path / "a.npy", seed=None)
    explainer = explainer_of(seed=None)
    stream = explainer.explain_stream(X, tmp_path / "a.npy", checkpoint=True, **OPTIONS)
    assert explainer.seed == stream.seed
    whole = explainer_of(seed=stream.seed)(X, max_evals=BUDGET, silent=True)
    np.testing.assert_array_equal(stream.values, whole.values)


def another(X):
    return model(X)


def larger(X):
    return 1.001 * model(X)


larger.__qualname__, larger.__module__ = model.__qualname__, model.__module__
OTHER_ROWS = np.where(np.arange(N_ROWS)[:, None] == 7, X + 1e-12, X)
FRAME = pd.DataFrame(X)


@pytest.mark.parametrize(
    ("changed", "call", "words"),
    [
        ({"seed": 2}, {}, "seed was 1, now it is 2"),
        ({}, {"max_evals": 61}, "max_evals was 60, now it is 61"),
        ({}, {"error_bounds": True}, "error_bounds was False, now it is True"),
        ({}, {"tolerance": 0.1}, "tolerance was None, now it is 0.1"),
        ({}, {"chunk_size": 6}, "chunk_size was 5, now it is 6"),
        ({"independent_rows": True}, {}, "independent_rows was False, now it is True"),
        ({"antithetic": False}, {}, "antithetic was True, now it is False"),
        ({"groups": {"first": [0, 1]}}, {}, "groups was None, now it is {'first': "),
        ({"background": BACKGROUND + 0.1}, {}, "masker was ndarray float64 of shape"),
        ({"function": another}, {}, r"model was .*\.model, now it is .*\.another"),
        ({"function": larger}, {}, "another model .* row 0, explained again, the values differ"),
        ({}, {"rows": OTHER_ROWS}, "other data. Among rows 5 to 9"),
        ({}, {"rows": X[::-1]}, "other data. Among rows 0 to 4"),
        ({}, {"rows": X.astype(np.float32)}, "other data. Among rows 0 to 4"),
        ({}, {"rows": FRAME}, "other data. Among rows 0 to 4"),
        ({}, {"rows": X[:7]}, "other data. Rows 5 to 9 were explained, but the stream has 7 rows"),
    ],
)
def test_another_call_is_refused_with_the_difference(changed, call, words, tmp_path):
    stopped(tmp_path / "a.npy")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    options = {"rows": X, **OPTIONS, **call}
    with pytest.raises(CheckpointError, match=words):
        explainer_of(**changed).explain_stream(out=tmp_path / "a.npy", checkpoint=True, **options)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_estimator_is_refused(tmp_path):
    stopped(tmp_path / "a.npy")
    other = shap.Explainer(model, BACKGROUND, algorithm="randomorder", seed=1)
    with pytest.raises(CheckpointError, match="SemivalueExplainer, now it is RandomOrderExplainer"):
        other.explain_stream(X, tmp_path / "a.npy", checkpoint=True, **OPTIONS)


def test_a_finished_stream_with_more_rows_is_refused(tmp_path):
    out = tmp_path / "a.npy"
    explainer_of().explain_stream(X[:10], out, **OPTIONS)
    with pytest.raises(CheckpointError, match="complete with 10 rows, but the stream has more"):
        explainer_of().explain_stream(X, out, checkpoint=True, **OPTIONS)


def test_more_rows_than_in_the_last_chunk_are_refused(tmp_path):
    out = tmp_path / "a.npy"
    explainer_of().explain_stream(X[:7], out, **OPTIONS)
    with pytest.raises(CheckpointError, match="Rows 5 to 6 were .* more than 7 rows"):
        explainer_of().explain_stream(X, out, checkpoint=True, **OPTIONS)


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_weights_of_a_module_are_recognised(tmp_path):
    torch.manual_seed(0)
    rows = torch.from_numpy(X)
    net = nn.Linear(N_COLUMNS, 1).double().eval()
    explainer_of(net).explain_stream(rows[:10], tmp_path / "a.npy", **OPTIONS)
    explainer_of(net).explain_stream(rows[:10], tmp_path / "a.npy", checkpoint=True, **OPTIONS)
    with torch.no_grad():
        net.weight[0, 3] += 1e-9
    with pytest.raises(CheckpointError, match="model was .*Linear with weights"):
        explainer_of(net).explain_stream(rows[:10], tmp_path / "a.npy", checkpoint=True, **OPTIONS)


def test_warnings_of_finished_chunks_are_kept(tmp_path):
    options = {**OPTIONS, "max_evals": 100, "tolerance": 1e-9}
    with pytest.raises(KeyboardInterrupt):
        explainer_of().explain_stream(stopping_after(13), tmp_path / "a.npy", **options)
    with pytest.warns(ShapleyExtWarning, match=f"{N_ROWS} of {N_ROWS} rows did not reach"):
        explainer_of().explain_stream(X, tmp_path / "a.npy", checkpoint=True, **options)


def test_objects_of_unknown_content_are_refused(tmp_path):
    class Opaque:
        """Without a text that says what it holds."""

    rows = np.array([[1.0, Opaque()], [2.0, Opaque()]], dtype=object)
    explainer = explainer_of(lambda X: X[:, 0].astype(float), np.array([[0.0, 1.0]], dtype=object))
    with pytest.raises(ShapleyExtError, match="numbers, texts or times"):
        explainer.explain_stream(rows, tmp_path / "a.npy", silent=True)


# --- files that were changed ---

FUZZED = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def files_of(out):
    beside = out.iterdir() if out.is_dir() else out.parent.iterdir()
    return sorted(path for path in beside if path.is_file())


def check_no_wrong_numbers(out):
    """Check that a changed checkpoint is refused by our error, or leads to the right numbers."""
    whole = explainer_of()(X, max_evals=BUDGET, silent=True)
    try:
        stream = shap_ext.StreamedExplanations.open(out)
        assert stream.values.shape == (stream.n_rows, N_COLUMNS)
        for chunk in stream:
            assert np.shape(chunk.values)[1:] == (N_COLUMNS,)
    except ShapleyExtError:
        pass
    try:
        stream = explainer_of().explain_stream(X, out, checkpoint=True, **OPTIONS)
    except ShapleyExtError:
        return False
    np.testing.assert_array_equal(stream.values, whole.values)
    np.testing.assert_array_equal(stream.base_values, whole.base_values)
    return True


@FUZZED
@given(data=st.data())
def test_changed_bytes_never_give_wrong_numbers(data, out):
    """A flipped bit, a cut, or further bytes, in any of the files."""
    if not out.exists():
        stopped(out)
    before = {path: path.read_bytes() for path in files_of(out)}
    path = data.draw(st.sampled_from(sorted(before)))
    content = bytearray(before[path])
    index = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["flip", "cut", "add"]))
    if kind == "flip":
        content[index] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del content[index:]
    else:
        content += b"\x00garbage"
    path.write_bytes(content)
    try:
        check_no_wrong_numbers(out)
    finally:
        for other in files_of(out):
            other.unlink()
        for path, bytes_before in before.items():
            path.write_bytes(bytes_before)


def test_a_missing_file_is_refused_and_a_cut_line_is_dropped(out):
    stopped(out)
    journal = next(path for path in files_of(out) if "journal" in path.name)
    content = journal.read_bytes()
    journal.write_bytes(content[:-5])
    assert shap_ext.StreamedExplanations.open(out).n_rows == 5
    assert check_no_wrong_numbers(out)
    next(path for path in files_of(out) if "journal" not in path.name).unlink()
    assert not check_no_wrong_numbers(out)


@pytest.mark.parametrize("other_background", [False, True])
def test_one_call_at_a_time_writes(other_background, out):
    """The second call begins while the first explains a chunk."""
    rows, refused = X[:10], []
    background = BACKGROUND + 1.0 if other_background else BACKGROUND

    def starting_another(X):
        if not refused:
            refused.append(True)
            another_call = explainer_of(background=background)
            with pytest.raises(CheckpointError, match="another call is writing"):
                another_call.explain_stream(rows, out, checkpoint=True, **OPTIONS)
        return model(X)

    stream = explainer_of(starting_another).explain_stream(rows, out, **OPTIONS)
    whole = explainer_of()(rows, max_evals=BUDGET, silent=True)
    np.testing.assert_array_equal(stream.values, whole.values)
    assert not [path for path in out.parent.iterdir() if path.suffix == ".lock"]
    shap_ext.StreamedExplanations.open(out, verify=True)


def test_lines_of_another_journal_are_refused(out):
    """Also of an equal call: where locks do not work, two calls never become one result."""
    other = out.with_name(f"other{out.suffix}")
    for path in (out, other):
        stopped(path)

    ours, theirs = (journal_path(path).read_bytes().splitlines(True) for path in (out, other))
    journal_path(out).write_bytes(b"".join([*ours[:2], *theirs[2:]]))
    with pytest.raises(CheckpointError, match="another call has written to it"):
        shap_ext.StreamedExplanations.open(out)


def test_a_line_that_another_call_wrote_meanwhile_is_not_cut(tmp_path):
    out = tmp_path / "values.npy"
    stopped(out)
    journal = Journal.read(journal_path(out))
    Journal.read(journal_path(out)).complete()
    with pytest.raises(CheckpointError, match="another call has written to it"):
        journal.complete()


def test_readers_can_verify_every_byte(out):
    stopped(out)
    changed = next(path for path in files_of(out) if "journal" not in path.name)
    content = bytearray(changed.read_bytes())
    content[len(content) // 2 if out.is_dir() else -3] ^= 1
    changed.write_bytes(content)
    shap_ext.StreamedExplanations.open(out)
    with pytest.raises(CheckpointError, match="were changed"):
        shap_ext.StreamedExplanations.open(out, verify=True)
    no_flag: Any = "all"
    with pytest.raises(ShapleyExtError, match="verify"):
        shap_ext.StreamedExplanations.open(out, verify=no_flag)


def test_a_network_that_was_trained_in_the_first_run_goes_on(tmp_path):
    """The first call trains it and the second one loads it, which is the same explainer."""
    pytest.importorskip("lightning")

    def network(**trained):
        return shap_ext.SimShapExplainer(model, BACKGROUND, seed=0, epochs=1, **trained)

    first = network(training_data=X)
    with pytest.raises(KeyboardInterrupt):
        first.explain_stream(stopping_after(13), tmp_path / "a.npy", chunk_size=5, silent=True)
    first.save_trained(tmp_path / "network")
    again = network(training_data=X, trained=tmp_path / "network")
    stream = again.explain_stream(X, tmp_path / "a.npy", checkpoint=True, silent=True)
    whole = network(trained=tmp_path / "network")(X, silent=True)
    np.testing.assert_allclose(stream.values, whole.values, atol=1e-5)

"""Rows shared among workers: the same bits, one set of warnings, errors that name the row."""

import _thread
import dataclasses
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import joblib
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import shap
import threadpoolctl
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from shapley_adapters import Estimate
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    NonFiniteValueError,
    ShapleyExtWarning,
    WorkerError,
)
from shapley_adapters.workers import worker_processes
from shapley_adapters.workers.worker_processes import row_chunks
from tests.helpers.estimator_table import ESTIMATORS
from tests.helpers.optional import HAS_TORCH, captum_ext, nn, torch

FEW = "ignore:.* is little for"
# The others share the workers of loky; an error ends them.
STARTS_PROCESSES = pytest.mark.slow
backends_that_end = pytest.mark.parametrize(
    "backend", [pytest.param("loky", marks=STARTS_PROCESSES), "threading"]
)
N_ROWS, N_PLAYERS = 9, 6
_Module: Any = nn.Module if HAS_TORCH else object
_Tensor: Any = torch.Tensor if HAS_TORCH else object


def numbers(n_rows, n_columns, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def smooth(x):
    """Return an output of each row, of which no bit depends on the batch."""
    x = np.asarray(x, dtype=float)
    return np.tanh(x.sum(axis=1)) + np.sin(x).prod(axis=1) + x[:, 0] * x[:, -1] ** 2


def two_outputs(x):
    return np.stack([smooth(x), smooth(x[:, ::-1])], axis=1)


def probabilities(x):
    p = 1 / (1 + np.exp(-smooth(x)))
    return np.stack([1 - p, p], axis=1)


X, BACKGROUND = numbers(N_ROWS, N_PLAYERS), numbers(3, N_PLAYERS, seed=1)
X[4] = X[1]  # rows may repeat
X[2, 3] = X[6, 0] = BACKGROUND[0, 0]
FIELDS = [field.name for field in dataclasses.fields(Estimate)]


def assert_same_bits(found, wanted):
    """Compare two estimates field by field."""
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


def explained(n_jobs, model, masker, *args, algorithm="leastsquares", call=None, **options):
    """Return an explanation, and the estimate if there is one."""
    explainer = shap.Explainer(model, masker, algorithm=algorithm, n_jobs=n_jobs, **options)
    explanation = explainer(*args, **{"max_evals": 55, "error_bounds": True, **(call or {})})
    return explanation, getattr(explainer, "last_estimate", None)


def check(n_jobs, *args, **options):
    """Check that workers give the Explanation and the Estimate of a serial call."""
    (wanted, estimate), (found, of_workers) = (explained(n, *args, **options) for n in (1, n_jobs))
    if estimate is not None:
        assert_same_bits(of_workers, estimate)
    for name in ("values", "base_values", "data", "error_std", "lower_bounds", "upper_bounds"):
        own, other = getattr(found, name), getattr(wanted, name)
        assert (own is None) == (other is None), name
        if own is not None:
            for of_row, of_row_alone in zip(own, other, strict=True):
                np.testing.assert_array_equal(of_row, of_row_alone, err_msg=name)


@pytest.fixture
def _threads():
    with joblib.parallel_config(backend="threading"):
        yield


@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("independent_rows", [False, True])
@pytest.mark.parametrize("row", ESTIMATORS, ids=lambda row: row.id)
@pytest.mark.usefixtures("_threads")
def test_every_estimator_gives_the_bits_of_a_serial_call(row, independent_rows):
    options = dict(row.options)
    if "graph" not in options and row.estimator.needs_graph:
        options["graph"] = "line"
    if not row.is_exact:
        options["independent_rows"] = independent_rows
    call = {"max_evals": row.budget(N_PLAYERS, 55), "error_bounds": False}
    for n_jobs in (2, 5):
        check(n_jobs, two_outputs, BACKGROUND, X, algorithm=row.algorithm, seed=3, call=call,
              **options)  # fmt: skip


@pytest.mark.usefixtures("_threads")
def test_workers_are_at_most_as_many_as_rows():
    check(10**6, smooth, BACKGROUND, X, seed=3)


WORDS = ["this", "is", "not", "good", "the", "film", "was", "so"]


def lengths_of_texts(texts):
    return np.array([[len(t) ** 0.5, t.count("not") - t.count("o w") * 0.5] for t in texts])


def texts():
    random = np.random.default_rng(0)
    return np.array([" ".join(random.choice(WORDS, n)) for n in (2, 8, 3, 12, 1, 7)])


LINE, STAR = nx.path_graph(N_PLAYERS), nx.star_graph(N_PLAYERS - 1)
FRAME = pd.DataFrame(X, columns=list("abcdef"))
CLASSES = (X[:, 0] > 0).astype(int)


def boosted():
    return HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2).fit(FRAME, CLASSES)


CASES: dict[str, Callable[[], tuple[tuple, dict]]] = {
    "table": lambda: ((two_outputs, BACKGROUND, X), {}),
    "frame and sklearn model": lambda: ((boosted(), FRAME[:3], FRAME), {}),
    "groups": lambda: ((smooth, FRAME[:2], FRAME), {"groups": {"x": ["a", "b"], "y": ["c"]}}),
    "sparse": lambda: (
        (
            lambda x: smooth(x.toarray()),
            scipy.sparse.csr_matrix((1, N_PLAYERS)),
            scipy.sparse.csr_matrix(np.where(X > 0, X, 0)),
        ),
        {},
    ),
    "texts": lambda: ((lengths_of_texts, shap.maskers.Text(r"\W+"), texts()), {}),
    "graph": lambda: ((smooth, BACKGROUND, X), {"algorithm": "lshapley", "graph": "ring"}),
    "graphs of rows": lambda: (
        (smooth, BACKGROUND, X),
        {"algorithm": "myerson", "graph": [LINE, STAR, LINE] * 3},
    ),
    "tolerance": lambda: (
        (smooth, BACKGROUND, X),
        {"algorithm": "randomorder", "call": {"tolerance": "5%", "max_evals": 60}},
    ),
    "independent rows": lambda: (
        (smooth, BACKGROUND, X),
        {"algorithm": "shear", "independent_rows": True},
    ),
    "class probability": lambda: (
        (probabilities, BACKGROUND, X),
        {"value_function": "log_probability"},
    ),
    "link": lambda: ((lambda x: probabilities(x)[:, 1], BACKGROUND, X), {"link": shap.links.logit}),
    "largest outputs": lambda: (
        (two_outputs, BACKGROUND, X),
        {"call": {"outputs": shap.Explanation.argsort.flip[:1]}},
    ),
    "aggregate": lambda: (
        (smooth, BACKGROUND, X),
        {"algorithm": "centroid", "explainers": ("oddgp", "shear"), "call": {"max_evals": 120}},
    ),
}


@pytest.mark.filterwarnings(FEW, "ignore:.*did not reach the tolerance")
@pytest.mark.parametrize(
    "backend",
    ["loky", "threading", pytest.param("multiprocessing", marks=STARTS_PROCESSES)],
)
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_input_gives_the_bits_of_a_serial_call(case, backend):
    args, options = CASES[case]()
    with joblib.parallel_config(backend=backend):
        check(2, *args, **{"seed": 0, **dict(options)})


def test_workers_share_the_seed_that_the_parent_drew():
    explainer = shap.Explainer(smooth, BACKGROUND, algorithm="shear", n_jobs=2)
    together = explainer(X, max_evals=40)
    again = shap.Explainer(smooth, BACKGROUND, algorithm="shear", seed=explainer.seed)
    np.testing.assert_array_equal(together.values, again(X, max_evals=40).values)


# Which workers


class Noting:
    """A model that notes the threads that call it."""

    def __init__(self):
        self.names = set()

    def __call__(self, x):
        self.names.add(threading.current_thread().name)
        time.sleep(0.001)
        return smooth(x)


def n_threads_of(own, **config):
    model = Noting()
    with joblib.parallel_config(**config):
        explainer = shap.Explainer(model, BACKGROUND, algorithm="leastsquares", n_jobs=own)
        explainer(X, max_evals=40, batch_size=4)
    return len(model.names - {threading.current_thread().name})


def test_none_means_one_unless_joblib_is_configured():
    assert n_threads_of(None) == 0
    assert n_threads_of(None, backend="threading") == 0
    assert n_threads_of(None, backend="threading", n_jobs=2) == 2
    assert n_threads_of(1, backend="threading", n_jobs=2) == 0
    assert n_threads_of(3, backend="threading", n_jobs=2) == 3


def test_a_worker_of_joblib_starts_no_others():
    with joblib.parallel_config(backend="threading", n_jobs=2):
        counts = joblib.Parallel()(joblib.delayed(n_threads_of)(None) for _ in range(2))
    assert counts == [0, 0]


@pytest.mark.parametrize(
    ("n_jobs", "error"),
    [(0, InvalidArgumentError), (1.5, InvalidArgumentTypeError), (True, InvalidArgumentTypeError)],
)
def test_n_jobs_is_checked_at_once(n_jobs, error):
    with pytest.raises(error, match="n_jobs"):
        shap.Explainer(smooth, BACKGROUND, algorithm="shear", n_jobs=n_jobs)
    if HAS_TORCH:
        with pytest.raises(error, match="n_jobs"):
            captum_ext.Shear(smooth, n_jobs=n_jobs)


def test_chunks_follow_each_other_and_cost_about_the_same():
    costs = np.random.default_rng(0).integers(1, 1000, size=300)
    for n_workers, seconds in ((2, 1e-3), (5, 1e-3), (2, 1e-9), (3, 10.0)):
        chunks = row_chunks(costs, seconds, n_workers)
        assert [start for start, _ in chunks] == [0, *(stop for _, stop in chunks[:-1])]
        assert chunks[-1][1] == 300
        shares = np.array([costs[start:stop].sum() for start, stop in chunks])
        assert shares.max() - shares.min() <= 2 * costs.max()
        assert len(chunks) >= n_workers
    assert len(row_chunks(costs, 1e-9, 2)) == 2  # short ones would be all overhead
    assert len(row_chunks(costs, 1e-3, 2)) == 8
    assert row_chunks(np.array([5, 5]), 1.0, 4) == [(0, 1), (1, 2)]


# Errors


def failing_at_row_seven(x):
    if (np.asarray(x)[:, 0] == X[7, 0]).any():
        raise KeyError("no such key")
    return smooth(x)


class FailingLater:
    """A model that fails for row 7 when some features are absent."""

    def __call__(self, x):
        is_row = (x[:, 0] == X[7, 0]) & (x[:, 1] != X[7, 1])
        if is_row.any():
            raise KeyError("no such key")
        return smooth(x)


def test_an_error_of_the_first_evaluations_names_the_row():
    """All features are present in the first evaluations, before the workers begin."""
    explainer = shap.Explainer(failing_at_row_seven, BACKGROUND[:1], algorithm="oddgp", n_jobs=2)
    with pytest.raises(WorkerError, match="Row 7: the model raised KeyError"):
        explainer(X, max_evals=40)


def raise_key_error(is_first):
    raise KeyError("no such key")


def interrupt(is_first):
    if is_first:
        _thread.interrupt_main()


class NotingCalls:
    """A model that fails for row 0, and notes the first features of the calls that follow."""

    def __init__(self, fail):
        self.fail = fail
        self.has_failed, self.later = False, []

    def __call__(self, x):
        time.sleep(0.002)
        if self.has_failed:
            self.later.append(set(x[:, 0].tolist()))
            time.sleep(0.02)  # so that the call lasts until the interrupt wakes the main thread
        if ((x[:, 0] == X[0, 0]) & (x[:, 1] != X[0, 1])).any():
            is_first, self.has_failed = not self.has_failed, True
            self.fail(is_first)
        return smooth(x)


@pytest.fixture
def _interrupts():
    """Interrupts of the main thread, which processes in the background may ignore."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("the test does not run in the main thread")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_threads", "_interrupts")
@pytest.mark.parametrize(
    ("fail", "error"),
    [(raise_key_error, WorkerError), (interrupt, KeyboardInterrupt)],
)
def test_threads_call_the_model_no_more_after_an_error(fail, error):
    model, many = NotingCalls(fail), np.concatenate([X[:1], numbers(600, N_PLAYERS, seed=2)])
    explainer = shap.Explainer(model, BACKGROUND[:1], algorithm="leastsquares", n_jobs=2)
    with pytest.raises(error):
        explainer(many, max_evals=40, batch_size=20)
    time.sleep(0.1)  # for threads that would go on
    # An error stops the calls at once; an interrupt must first wake the main thread.
    of_others = [batch for batch in model.later if X[0, 0] not in batch]
    assert len(of_others) <= (2 if error is WorkerError else 60)


def not_finite_at_row_seven(x):
    is_row = (x[:, 0] == X[7, 0]) & (x[:, 1] != X[7, 1])
    return np.where(is_row, np.nan, smooth(x))


@backends_that_end
def test_an_error_names_the_row_of_the_table(backend):
    masker = BACKGROUND[:1]
    with joblib.parallel_config(backend=backend):
        explainer = shap.Explainer(FailingLater(), masker, algorithm="leastsquares", n_jobs=2)
        with pytest.raises(WorkerError, match="Row 7: the model raised KeyError: 'no such key'"):
            explainer(X, max_evals=40)
        explainer = shap.Explainer(
            not_finite_at_row_seven, masker, algorithm="leastsquares", n_jobs=2
        )
        with pytest.raises(NonFiniteValueError, match="row 7"):
            explainer(X, max_evals=40)


@backends_that_end
def test_an_error_in_a_stream_names_the_row_of_the_stream(backend, tmp_path):
    explainer = shap.Explainer(FailingLater(), BACKGROUND[:1], algorithm="leastsquares", n_jobs=2)
    with joblib.parallel_config(backend=backend), pytest.raises(WorkerError, match="Row 7: the"):
        explainer.explain_stream(X, tmp_path / "out.npy", chunk_size=5, max_evals=40)


class EndsItsProcess:
    """A model that ends its process, as the system does where memory runs out."""

    def __init__(self):
        self.process = os.getpid()

    def __call__(self, x):
        if os.getpid() != self.process:
            os._exit(3)
        return smooth(x)


@pytest.mark.slow
def test_a_worker_that_ended_is_an_error_that_says_what_to_do():
    with joblib.parallel_config(backend="loky"):
        explainer = shap.Explainer(EndsItsProcess(), BACKGROUND, algorithm="oddgp", n_jobs=2)
        with (
            pytest.warns(UserWarning, match=r"explained again, from row 0 on"),
            pytest.raises(WorkerError, match=r"(?s)ended twice.*rows 0 to \d+\..*'threading'"),
        ):
            explainer(X, max_evals=40)
        explainer = shap.Explainer(smooth, BACKGROUND, algorithm="oddgp", n_jobs=2)
        assert explainer(X, max_evals=40).shape == X.shape  # workers are started again


class EndsOneProcess(EndsItsProcess):
    """A model that ends the process that reaches a row, as often as a folder has no more files."""

    def __init__(self, row, folder, n_times):
        super().__init__()
        self.row, self.folder, self.n_times = row, folder, n_times

    def __call__(self, x):
        is_reached = ((x == self.row).sum(axis=1) == 1).any()  # no other row has its numbers
        n_before = len(list(self.folder.iterdir()))
        if os.getpid() != self.process and is_reached and n_before < self.n_times:
            (self.folder / str(n_before)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return smooth(x)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills a process by a signal")
@pytest.mark.filterwarnings("ignore:A worker process ended before")
def test_rows_of_a_killed_worker_are_explained_again(tmp_path, monkeypatch):
    monkeypatch.setattr(worker_processes, "_SHORT_SECONDS", 1e-9)  # 50 rows a chunk
    many = numbers(400, N_PLAYERS, seed=2)
    call = {"max_evals": 40}
    wanted = explained(1, smooth, BACKGROUND[:1], many, seed=0, call=call)[0].values
    options = {"algorithm": "leastsquares", "seed": 0, "n_jobs": 2}
    with joblib.parallel_config(backend="loky"):
        once = shap.Explainer(EndsOneProcess(many[300], tmp_path, 1), BACKGROUND[:1], **options)
        with pytest.warns(UserWarning, match="explained again"):
            values = once(many, **call).values
        np.testing.assert_array_equal(values, wanted)
        always = shap.Explainer(EndsOneProcess(many[300], tmp_path, 99), BACKGROUND[:1], **options)
        with pytest.raises(WorkerError, match="ended twice") as lost:
            always(many, **call)
    first, last = map(int, re.findall(r"rows (\d+) to (\d+)", str(lost.value))[0])
    assert 0 < first <= 300 <= last < first + 200


class Locked:
    """A model that cannot be pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, x):
        with self.lock:
            return smooth(x)


def test_a_model_that_cannot_be_pickled_gets_the_remedy():
    explainer = shap.Explainer(Locked(), BACKGROUND, algorithm="leastsquares", seed=0, n_jobs=2)
    with pytest.raises(InvalidArgumentTypeError, match=r"cannot be sent .*lock.*threading") as got:
        explainer(X, max_evals=40)
    assert got.value.__cause__ is not None
    with joblib.parallel_config(backend="threading"):  # as the message says
        values = explainer(X, max_evals=55).values
    wanted = explained(1, smooth, BACKGROUND, X, seed=0)[0].values
    np.testing.assert_array_equal(values, wanted)


class Unloadable:
    """A model that fails where it is loaded."""

    def __call__(self, x):
        return smooth(x)

    def __setstate__(self, state):
        raise OSError("no such file: weights.bin")

    def __getstate__(self):
        return {"a": 1}


@pytest.mark.slow
@pytest.mark.versions
def test_a_model_that_a_worker_cannot_load_says_so():
    explainer = shap.Explainer(Unloadable(), BACKGROUND, algorithm="leastsquares", n_jobs=2)
    with pytest.raises(WorkerError, match=r"cannot load the model: OSError: .*weights\.bin"):
        explainer(X, max_evals=40)


# Warnings


def warning_model(x):
    warnings.warn("the model warns", RuntimeWarning, stacklevel=1)
    return smooth(x)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_warnings_come_once_and_count_all_rows(backend):
    options = {"algorithm": "randomorder", "seed": 0, "call": {"tolerance": 1e-9}}
    with pytest.warns(ShapleyExtWarning, match="did not reach the tolerance") as serial:
        explained(1, smooth, BACKGROUND, X, **options)
    with joblib.parallel_config(backend=backend), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explained(2, smooth, BACKGROUND, X, **options)
    own = [w for w in caught if issubclass(w.category, ShapleyExtWarning)]
    assert [str(w.message) for w in own] == [str(w.message) for w in serial]
    assert own[0].filename == __file__


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_warning_of_the_model_in_workers_is_shown_once(backend):
    with joblib.parallel_config(backend=backend), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        explained(2, warning_model, BACKGROUND, X, seed=0)
    own = [w for w in caught if "the model warns" in str(w.message)]
    assert 1 <= len(own) <= 3  # of the parent, in the beginning and in the end; of the workers
    assert all(w.category is RuntimeWarning for w in own)


# Progress


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_one_bar_counts_all_evaluations(backend, monkeypatch, capsys):
    monkeypatch.setattr("shap_ext.explainers.coalition_explainer.BAR_DELAY", 0.0)
    with joblib.parallel_config(backend=backend):
        _, estimate = explained(2, smooth, BACKGROUND, X, seed=0)
    shown = capsys.readouterr().err
    n_evaluations = int(estimate.evaluations.sum())
    assert f"{n_evaluations}/{n_evaluations}" in shown
    assert shown.count("100%") == 1


# Threads of libraries


def threads_of_libraries(x):
    """Return the numbers of threads of BLAS, OpenMP and torch as outputs."""
    pools = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    of_torch = torch.get_num_threads() if HAS_TORCH else 1
    most = max([*pools, of_torch])
    return np.where(np.isnan(x[:, 0]), 0.0, most) * 1.0 + 0 * x.sum(axis=1)


@backends_that_end
def test_workers_leave_each_other_their_cores(backend, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "8")  # loky leaves this to the user
    before = torch.get_num_threads() if HAS_TORCH else None
    if HAS_TORCH:
        torch.set_num_threads(8)
    try:
        with joblib.parallel_config(backend=backend), threadpoolctl.threadpool_limits(8):
            joblib.externals.loky.get_reusable_executor(kill_workers=True).shutdown()
            seen = Seen()
            explainer = shap.Explainer(seen, BACKGROUND, algorithm="leastsquares", n_jobs=2)
            with pytest.raises(WorkerError, match=r"\[1\]"):
                explainer(X, max_evals=40)
            assert max(p["num_threads"] for p in threadpoolctl.threadpool_info()) == 8
            if HAS_TORCH:
                assert torch.get_num_threads() == 8
    finally:
        joblib.externals.loky.get_reusable_executor(kill_workers=True).shutdown()
        if HAS_TORCH:
            torch.set_num_threads(before)


class Seen:
    """A model that raises the numbers of threads that it sees in workers."""

    def __init__(self):
        self.home = (os.getpid(), threading.get_ident())

    def __call__(self, x):
        if (os.getpid(), threading.get_ident()) != self.home:
            allowed = max(1, joblib.cpu_count() // 2)
            pools = {min(pool["num_threads"], 8) for pool in threadpoolctl.threadpool_info()}
            if HAS_TORCH:
                pools.add(torch.get_num_threads())
            raise ValueError(sorted({1 if count <= allowed else count for count in pools}))
        return smooth(x)


# Settings of the process


def with_settings(x):
    """Depend on a setting of scikit-learn and on NumPy's errors."""
    import sklearn

    factor = 2.0 if sklearn.get_config()["assume_finite"] else 1.0
    return factor * smooth(x) + (np.geterr()["under"] == "raise")


@pytest.mark.slow
def test_workers_have_the_settings_of_the_parent():
    import sklearn

    with sklearn.config_context(assume_finite=True), np.errstate(under="raise"):
        check(2, with_settings, BACKGROUND, X, seed=0)


def test_a_pipeline_of_sklearn_is_explained_by_processes():
    model = LogisticRegression().fit(X, CLASSES)
    one, _ = explained(1, model, BACKGROUND, X, seed=0)
    two, _ = explained(2, model, BACKGROUND, X, seed=0)
    np.testing.assert_allclose(two.values, one.values, rtol=0, atol=1e-12)  # BLAS in the model


# torch


class Counting(_Module):
    """A module without products of matrices, which notes in a file each time it is loaded."""

    def __init__(self, path):
        super().__init__()
        self.path = str(path)
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, N_PLAYERS, dtype=torch.float64))

    def forward(self, x):
        parts = torch.sin(x * self.scale)
        return parts.prod(dim=1) + parts[:, 0] * parts[:, 1]

    def __setstate__(self, state):
        self.__dict__.update(state)
        with open(self.path, "a") as file:
            file.write(f"{os.getpid()}\n")


def test_a_module_goes_to_each_worker_once(tmp_path):
    path = tmp_path / "loads"
    check(2, Counting(path).eval(), BACKGROUND, X, algorithm="shear", seed=0)
    loads = path.read_text().split()
    assert 1 <= len(loads) == len(set(loads)) <= 2
    assert str(os.getpid()) not in loads


class Sent:
    """A table as the weights of a model that processes receive."""

    def __init__(self, n_weights):
        self.weights = np.ones(n_weights)

    def __call__(self, x):
        return smooth(x) * self.weights.mean()


def types_sent(n_weights, monkeypatch):
    """Return the types of the pickles that joblib's tasks receive."""
    types = []

    def noted(function):
        def task(data, *arguments):
            types.append(type(data))
            return delayed(function)(data, *arguments)

        return task

    delayed = joblib.delayed
    with monkeypatch.context() as patches:
        patches.setattr(joblib, "delayed", noted)
        explained(2, Sent(n_weights), BACKGROUND, X, seed=0)
    return set(types)


def test_a_small_model_is_sent_with_each_task_and_a_large_one_once(monkeypatch):
    # Dask holds an array at one worker first, and lets the others wait for their first task.
    assert types_sent(10, monkeypatch) == {bytes}
    assert types_sent(2**18, monkeypatch) == {np.ndarray}


class OnAnotherDevice(_Tensor):
    """A tensor that says that it is on a GPU; the tests have none."""

    @property
    def device(self):
        return torch.device("cuda:0")


def test_tensors_on_a_gpu_are_refused_by_processes_and_not_by_threads():
    constant = torch.ones(N_PLAYERS, dtype=torch.float64).as_subclass(OnAnotherDevice)

    def model(x):
        return smooth(x) * float(constant.as_subclass(torch.Tensor).sum())

    explainer = shap.Explainer(model, BACKGROUND, algorithm="leastsquares", n_jobs=2)
    with pytest.raises(InvalidArgumentError, match=r"on cuda:0, .*threading"):
        explainer(X, max_evals=40)
    with joblib.parallel_config(backend="threading"):
        check(2, model, BACKGROUND, X, seed=0)


def forward(x, weight, labels):
    flat = x.flatten(1)
    parts = torch.sin(flat) * weight
    return torch.stack([parts.prod(dim=1) + labels, parts.sum(dim=1) * labels], dim=1)


def attributed(n_jobs, *, method="LeastSquares", options=None, **call):
    method = getattr(captum_ext, method)(forward, seed=0, n_jobs=n_jobs, **(options or {}))
    inputs = torch.tensor(X)
    arguments = {
        "additional_forward_args": (torch.tensor(1.5), torch.arange(N_ROWS).double()),
        "n_samples": 55,
        "return_standard_error": True,
    }
    return method.attribute(inputs, **{**arguments, **call}), method.last_estimate


CAPTUM_CASES = {
    "all outputs": {},
    "a target per example": {"target": [0, 1, 1, 0, 0, 1, 0, 1, 0]},
    "a feature mask": {"feature_mask": torch.tensor([[0, 0, 1, 2, 3, 3]])},
    "few copies": {"perturbations_per_eval": 2},
    "baselines of examples": {"baselines": torch.tensor(X[::-1].copy())},
    "a distribution": {"baselines": torch.tensor(BACKGROUND[:2])},
    "SHEAR": {"method": "Shear", "target": 0},
    "independent rows": {"method": "OddGP", "options": {"independent_rows": True}},
    "a graph": {"method": "LShapley", "options": {"graph": "line"}, "return_standard_error": False},
    "tolerance": {"tolerance": "40%", "method": "RandomOrder"},
}


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
@pytest.mark.filterwarnings(FEW, "ignore:.*did not reach the tolerance")
@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("case", CAPTUM_CASES)
def test_captum_gives_the_bits_of_a_serial_call(case, backend):
    wanted, estimate = attributed(1, **CAPTUM_CASES[case])
    with joblib.parallel_config(backend=backend):
        found, of_workers = attributed(2, **CAPTUM_CASES[case])
    assert_same_bits(of_workers, estimate)
    wanted, found = (one if isinstance(one, tuple) else (one,) for one in (wanted, found))
    for own, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(own, other, rtol=0, atol=0, equal_nan=True)


def one_value(x):
    return torch.sin(x).sum()


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_one_value_for_the_batch_is_explained_as_in_a_serial_call():
    wanted, found = (
        captum_ext.LeastSquares(one_value, seed=0, n_jobs=n).attribute(torch.tensor(X))
        for n in (1, 2)
    )
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


class InDoubles(_Module):
    """A module that makes tensors of the default precision."""

    def forward(self, x):
        return (torch.sin(x) * torch.ones(1)[0]).sum(dim=1) + torch.full((1,), 0.1)


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_workers_have_torchs_default_precision():
    try:
        torch.set_default_dtype(torch.float64)
        method = [captum_ext.LeastSquares(InDoubles(), seed=0, n_jobs=n) for n in (1, 2)]
        wanted, found = (m.attribute(torch.tensor(X), n_samples=40) for m in method)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    assert method[0].last_estimate.values.dtype == method[1].last_estimate.values.dtype
    assert_same_bits(method[1].last_estimate, method[0].last_estimate)


@pytest.mark.parametrize("labels", ["oddgp"])
def test_networks_share_their_labels(labels):
    pytest.importorskip("lightning", reason="lightning is not installed")
    arguments = {"seed": 0, "epochs": 2, "labels": labels, "training_data": numbers(40, 4)}
    explainers = [
        shap.Explainer(smooth, np.zeros((1, 4)), algorithm="simshap", n_jobs=n, **arguments)
        for n in (1, 2)
    ]
    one, two = (explainer(numbers(3, 4, seed=2), silent=True) for explainer in explainers)
    np.testing.assert_array_equal(two.values, one.values)

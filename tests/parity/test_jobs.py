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

import shap_ext  # noqa: F401 # it makes shap know the algorithms
from shapley_adapters import Estimate
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    NonFiniteValueError,
    ShapleyExtWarning,
    WorkerError,
)
from tests.helpers.optional import HAS_TORCH, captum_ext, nn, torch

FEW = "ignore:.* is little for"
N_ROWS, N_PLAYERS = 9, 6
_Module: Any = nn.Module if HAS_TORCH else object
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")


def numbers(n_rows, n_columns, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def smooth(x):
    """Return an output of each row, of which no bit depends on the batch."""
    x = np.asarray(x, dtype=float)
    return np.tanh(x.sum(axis=1)) + np.sin(x).prod(axis=1) + x[:, 0] * x[:, -1] ** 2


def two_outputs(x):
    return np.stack([smooth(x), smooth(x[:, ::-1])], axis=1)


X, BACKGROUND = numbers(N_ROWS, N_PLAYERS), numbers(3, N_PLAYERS, seed=1)
X[4] = X[1]  # rows may repeat
X[2, 3] = X[6, 0] = BACKGROUND[0, 0]


def assert_same_bits(found, wanted):
    """Compare two estimates field by field."""
    for field in dataclasses.fields(Estimate):
        if field.name == "seconds":
            continue
        one, other = getattr(found, field.name), getattr(wanted, field.name)
        np.testing.assert_array_equal(one, other, err_msg=field.name)


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
    for own, other in zip(found.values, wanted.values, strict=True):
        np.testing.assert_array_equal(own, other)


LINE, STAR = nx.path_graph(N_PLAYERS), nx.star_graph(N_PLAYERS - 1)
FRAME = pd.DataFrame(X, columns=list("abcdef"))
TEXTS = np.array(["so good", "this is not the film", "was", "not good so far", "a b c d e", "no"])


def boosted():
    return HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2).fit(FRAME, X[:, 0] > 0)


def lengths_of_texts(texts):
    return np.array([[len(t) ** 0.5, t.count("not") - t.count("o w") * 0.5] for t in texts])


CASES: dict[str, Callable[[], tuple[tuple, dict]]] = {
    "groups": lambda: ((smooth, FRAME[:2], FRAME), {"groups": {"x": ["a", "b"], "y": ["c"]}}),
    "frame": lambda: ((boosted(), FRAME[:3], FRAME), {"algorithm": "oddgp"}),
    "sparse": lambda: (
        (
            lambda x: smooth(x.toarray()),
            scipy.sparse.csr_matrix((1, N_PLAYERS)),
            scipy.sparse.csr_matrix(np.where(X > 0, X, 0)),
        ),
        {},
    ),
    "texts": lambda: ((lengths_of_texts, shap.maskers.Text(r"\W+"), TEXTS), {}),
    "graphs of rows": lambda: (
        (smooth, BACKGROUND, X),
        {"algorithm": "myerson", "graph": [LINE, STAR, LINE] * 3},
    ),
    "tolerance": lambda: (
        (smooth, BACKGROUND, X),
        {"algorithm": "randomorder", "call": {"tolerance": "5%", "max_evals": 60}},
    ),
    "independent rows": lambda: (
        (two_outputs, BACKGROUND, X),
        {"algorithm": "shear", "independent_rows": True},
    ),
    "aggregate": lambda: (
        (smooth, BACKGROUND, X),
        {"algorithm": "centroid", "explainers": ("oddgp", "shear"), "call": {"max_evals": 120}},
    ),
}


@pytest.mark.filterwarnings(FEW, "ignore:.*did not reach the tolerance")
@pytest.mark.parametrize(
    ("case", "backend"),
    [
        *((case, "threading") for case in CASES),
        *((case, "loky") for case in ("frame", "texts", "graphs of rows", "aggregate")),
    ],
)
def test_workers_give_the_bits_of_a_serial_call(case, backend):
    args, options = CASES[case]()
    with joblib.parallel_config(backend=backend):
        check(2 if backend == "loky" else 5, *args, **{"seed": 0, **options})


@pytest.mark.slow
def test_forked_processes_give_the_bits_of_a_serial_call():
    with joblib.parallel_config(backend="multiprocessing"):
        check(2, two_outputs, BACKGROUND, X, seed=0)


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
        time.sleep(0.002)
        return smooth(x)


def n_threads_of(own, **config):
    model = Noting()
    with joblib.parallel_config(**config):
        explainer = shap.Explainer(model, BACKGROUND, algorithm="leastsquares", n_jobs=own)
        explainer(X, max_evals=40, batch_size=4)
    return len(model.names - {threading.current_thread().name})


def test_none_means_one_unless_joblib_is_configured():
    assert n_threads_of(None) == n_threads_of(None, backend="threading") == 0
    assert n_threads_of(None, backend="threading", n_jobs=2) == 2
    assert n_threads_of(1, backend="threading", n_jobs=2) == 0
    assert n_threads_of(3, backend="threading", n_jobs=2) == 3
    with joblib.parallel_config(backend="threading", n_jobs=2):  # a worker starts no others
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


# Errors


def failing_later(x):
    """Fail for row 7 when some features are absent."""
    if ((x[:, 0] == X[7, 0]) & (x[:, 1] != X[7, 1])).any():
        raise KeyError("no such key")
    return smooth(x)


def failing_at_once(x):
    if (x[:, 0] == X[7, 0]).any():
        raise KeyError("no such key")
    return smooth(x)


def not_finite_at_row_seven(x):
    is_row = (x[:, 0] == X[7, 0]) & (x[:, 1] != X[7, 1])
    return np.where(is_row, np.nan, smooth(x))


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.slow), "threading"])
def test_an_error_names_the_row(backend, tmp_path):
    def call(model):
        explainer = shap.Explainer(model, BACKGROUND[:1], algorithm="leastsquares", n_jobs=2)
        return lambda **options: explainer(X, max_evals=40, **options), explainer

    # Processes end with each error, and start again for seconds.
    models = [failing_later] if backend == "loky" else [failing_at_once, failing_later]
    with joblib.parallel_config(backend=backend):
        with pytest.raises(NonFiniteValueError, match="row 7"):
            call(not_finite_at_row_seven)[0]()
        for model in models:
            with pytest.raises(WorkerError, match="Row 7: the model raised KeyError: 'no such key"):
                call(model)[0]()
        if backend == "loky":
            return
        _, explainer = call(failing_later)
        with pytest.raises(WorkerError, match="Row 7: the"):
            explainer.explain_stream(X, tmp_path / "out.npz", chunk_size=5, max_evals=40)


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


@pytest.mark.usefixtures("_interrupts")
@pytest.mark.parametrize(
    ("fail", "error"), [(raise_key_error, WorkerError), (interrupt, KeyboardInterrupt)]
)
def test_threads_call_the_model_no_more_after_an_error(fail, error):
    model, many = NotingCalls(fail), np.concatenate([X[:1], numbers(600, N_PLAYERS, seed=2)])
    explainer = shap.Explainer(model, BACKGROUND[:1], algorithm="leastsquares", n_jobs=2)
    with joblib.parallel_config(backend="threading"), pytest.raises(error):
        explainer(many, max_evals=40, batch_size=20)
    time.sleep(0.1)  # for threads that would go on
    # An error stops the calls at once; an interrupt must first wake the main thread.
    of_others = [batch for batch in model.later if X[0, 0] not in batch]
    assert len(of_others) <= (2 if error is WorkerError else 60)


class EndsOneProcess:
    """A model that ends the process that reaches a row, as often as a folder has no more files."""

    def __init__(self, row, folder, n_times):
        self.process, self.row, self.folder, self.n_times = os.getpid(), row, folder, n_times

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
def test_rows_of_a_killed_worker_are_explained_again_or_named(tmp_path):
    many, call = numbers(400, N_PLAYERS, seed=2), {"max_evals": 40}
    wanted = explained(1, smooth, BACKGROUND[:1], many, seed=0, call=call)[0].values
    options = {"algorithm": "leastsquares", "seed": 0, "n_jobs": 2}
    with joblib.parallel_config(backend="loky"):
        once = shap.Explainer(EndsOneProcess(many[300], tmp_path, 1), BACKGROUND[:1], **options)
        with pytest.warns(UserWarning, match="explained again"):
            values = once(many, **call).values
        np.testing.assert_array_equal(values, wanted)
        always = shap.Explainer(EndsOneProcess(many[300], tmp_path, 99), BACKGROUND[:1], **options)
        with pytest.raises(WorkerError, match=r"(?s)ended twice.*'threading'") as lost:
            always(many, **call)
    first, last = map(int, re.findall(r"rows (\d+) to (\d+)", str(lost.value))[0])
    assert first <= 300 <= last


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
        check(2, Locked(), BACKGROUND, X, seed=0)


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


# Warnings and progress


def warning_model(x):
    warnings.warn("the model warns", RuntimeWarning, stacklevel=1)
    return smooth(x)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_warnings_come_once_and_count_all_rows(backend, monkeypatch, capsys):
    monkeypatch.setattr("shap_ext.explainers.call_options.BAR_DELAY", 0.0)
    call = {"tolerance": 1e-9, "silent": False}  # whose delay is read in the call
    options = {"algorithm": "randomorder", "seed": 0, "call": call}
    with pytest.warns(ShapleyExtWarning, match="did not reach the tolerance") as serial:
        explained(1, smooth, BACKGROUND, X, **options)
    capsys.readouterr()
    with joblib.parallel_config(backend=backend), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        _, estimate = explained(2, warning_model, BACKGROUND, X, **options)
    own = [w for w in caught if issubclass(w.category, ShapleyExtWarning)]
    assert [str(w.message) for w in own] == [str(w.message) for w in serial]
    assert own[0].filename == __file__
    of_model = [w for w in caught if "the model warns" in str(w.message)]
    assert 1 <= len(of_model) <= 3  # of the parent, in the beginning and in the end; of the workers
    assert all(w.category is RuntimeWarning for w in of_model)
    shown, n_evaluations = capsys.readouterr().err, int(estimate.evaluations.sum())
    assert f"{n_evaluations}/{n_evaluations}" in shown


# Settings of the process


class Seen:
    """A model that raises the numbers of threads that it sees in threads of joblib.

    Two are its share of four cores; it sees one while our own work runs in the other thread.
    """

    def __call__(self, x):
        if threading.current_thread() is not threading.main_thread():
            pools = {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
            raise ValueError(pools | ({torch.get_num_threads()} if HAS_TORCH else set()))
        return smooth(x)


def test_threads_leave_each_other_their_cores(monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    before = torch.get_num_threads() if HAS_TORCH else None
    with joblib.parallel_config(backend="threading"), threadpoolctl.threadpool_limits(8):
        explainer = shap.Explainer(Seen(), BACKGROUND, algorithm="leastsquares", n_jobs=2)
        with pytest.raises(WorkerError, match=r"ValueError: \{(1|2|1, 2)\}"):
            explainer(X, max_evals=40)
        assert max(p["num_threads"] for p in threadpoolctl.threadpool_info()) == 8
    if HAS_TORCH:
        assert torch.get_num_threads() == before


def with_settings(x):
    """Depend on settings of scikit-learn and of NumPy."""
    import sklearn

    factor = 2.0 if sklearn.get_config()["assume_finite"] else 1.0
    return factor * smooth(x) + (np.geterr()["under"] == "raise")


def test_workers_have_the_settings_of_the_parent():
    import sklearn

    with sklearn.config_context(assume_finite=True), np.errstate(under="raise"):
        check(2, with_settings, BACKGROUND, X, seed=0)


class Counting(_Module):
    """A module of the default precision, which notes in a file each time it is loaded."""

    def __init__(self, path):
        super().__init__()
        self.path = str(path)

    def forward(self, x):
        return torch.sin(x).prod(dim=1) * torch.ones(1)[0] + torch.full((1,), 0.1)

    def __setstate__(self, state):
        self.__dict__.update(state)
        with open(self.path, "a") as file:
            file.write(f"{os.getpid()}\n")


@needs_torch
def test_a_module_goes_to_each_worker_once_with_torchs_precision(tmp_path):
    path = tmp_path / "loads"
    try:
        torch.set_default_dtype(torch.float64)
        check(2, Counting(path).eval(), BACKGROUND, X, algorithm="shear", seed=0)
    finally:
        torch.set_default_dtype(torch.float32)
    loads = path.read_text().split()
    assert 1 <= len(loads) == len(set(loads)) <= 2
    assert str(os.getpid()) not in loads


# captum


def forward(x, weight, labels):
    flat = x.flatten(1)
    parts = torch.sin(flat) * weight
    return torch.stack([parts.prod(dim=1) + labels, parts.sum(dim=1) * labels], dim=1)


def attributed(n_jobs, *, method="LeastSquares", options=None, **call):
    method = getattr(captum_ext, method)(forward, seed=0, n_jobs=n_jobs, **(options or {}))
    arguments = {
        "additional_forward_args": (torch.tensor(1.5), torch.arange(N_ROWS).double()),
        "n_samples": 55,
    }
    return method.attribute(torch.tensor(X), **{**arguments, **call}), method.last_estimate


CAPTUM_CASES = {
    "a target per example": {"target": [0, 1, 1, 0, 0, 1, 0, 1, 0]},
    "baselines of examples": {"baselines": torch.tensor(X[::-1].copy())} if HAS_TORCH else {},
    "independent rows": {"method": "OddGP", "options": {"independent_rows": True}},
    "a graph": {"method": "LShapley", "options": {"graph": "line"}},
}


@needs_torch
@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("case", CAPTUM_CASES)
def test_captum_gives_the_bits_of_a_serial_call(case, backend):
    wanted, estimate = attributed(1, **CAPTUM_CASES[case])
    with joblib.parallel_config(backend=backend):
        found, of_workers = attributed(2, **CAPTUM_CASES[case])
    assert_same_bits(of_workers, estimate)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)


@needs_torch
def test_one_value_for_the_batch_is_explained_as_in_a_serial_call():
    wanted, found = (
        captum_ext.LeastSquares(lambda x: torch.sin(x).sum(), seed=0, n_jobs=n).attribute(
            torch.tensor(X)
        )
        for n in (1, 2)
    )
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)

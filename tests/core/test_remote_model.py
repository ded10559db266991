"""Models behind a network: order, limits, repetitions, what is paid and kept, and errors."""

import asyncio
import gc
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from shapley_adapters import remote
from shapley_adapters.errors import (
    CheckpointError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    RemoteCallError,
)
from shapley_adapters.remote import RemoteModel
from tests.helpers.faulty_server import FaultyServer

ROWS = np.random.default_rng(0).normal(size=(103, 5))


def curved(x):
    """Rows of NumPy are computed one by one, so that parts equal the whole bit for bit."""
    return np.array([np.sin(row).prod() + row[0] for row in np.asarray(x)])


async def asked(x):
    await asyncio.sleep(0.001 * (len(x) % 3))
    return curved(x)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(remote, "_FIRST_WAIT", 0.005)


# --- what comes out ---


@pytest.mark.parametrize("call", [curved, asked], ids=["function", "coroutine"])
@pytest.mark.parametrize("rows_per_call", [1, 8, 200])
def test_outputs_are_those_of_a_plain_call_in_order(call, rows_per_call):
    async def notebook():  # whose loop is running
        return RemoteModel(call)(ROWS)

    model = RemoteModel(call, rows_per_call=rows_per_call)
    np.testing.assert_array_equal(model(ROWS), curved(ROWS))
    assert model.usage.calls == -(-len(ROWS) // rows_per_call)
    assert model.usage.rows == len(ROWS)
    np.testing.assert_array_equal(asyncio.run(notebook()), curved(ROWS))


def test_kinds_of_rows_stay_what_they_are():
    seen = []

    def call(x, *others):
        seen.append((type(x), others))
        return np.asarray(x.toarray() if scipy.sparse.issparse(x) else x)[:, :2]

    for rows in (ROWS, pd.DataFrame(ROWS), scipy.sparse.csr_matrix(ROWS), list(ROWS)):
        seen.clear()
        np.testing.assert_array_equal(RemoteModel(call)(rows, 3, "text"), ROWS[:, :2])
        assert {kind for kind, _ in seen} == {type(rows)}
        assert {others for _, others in seen} == {(3, "text")}
    answer = np.zeros(1)
    copying = partial(np.multiply, 1, out=answer)
    reused = RemoteModel(lambda x: copying(x[:, 0]), concurrency=1, rows_per_call=1)
    np.testing.assert_array_equal(reused(ROWS[:9]), ROWS[:9, 0])
    both = RemoteModel(lambda x, y: x[:, 0] + y, rows_per_call=7)(ROWS, np.arange(103))
    np.testing.assert_array_equal(both, ROWS[:, 0] + np.arange(103))


# --- faults ---


@pytest.mark.parametrize(("status", "n_calls"), [(503, 4), (404, 1)])
def test_statuses_of_other_clients_are_read(status, n_calls):
    class ClientError(ConnectionError):
        response = SimpleNamespace(status_code=status, headers={"Retry-After": "0"})

    call = Mock(side_effect=ClientError)
    with pytest.raises(RemoteCallError, match="ClientError"):
        RemoteModel(call)(ROWS[:1])
    assert call.call_count == n_calls


@pytest.mark.parametrize("is_date", [False, True])
def test_retry_after_holds_for_all_calls(is_date):
    after = formatdate(time.time() + 3, usegmt=True) if is_date else "1"
    # The call beside the refused one is answered long after the refusal was read.
    with FaultyServer(curved, [429, "late"], late=0.5, retry_after=after) as server:
        model = RemoteModel(server.ask, concurrency=2, rows_per_call=20)
        np.testing.assert_array_equal(model(ROWS), curved(ROWS))
        first, *others = [start for start, _ in server.calls]
        assert sorted(others)[1] - first > 0.9


def test_calls_that_would_end_the_loop_are_errors():
    async def call(x):
        sys.exit("no key")

    model = RemoteModel(call, retries=0)
    for _ in range(2):
        with pytest.raises(RemoteCallError, match="no key"):
            model(ROWS[:1])


@pytest.mark.parametrize("name", ["Retry-After", "retry-after"])
@pytest.mark.parametrize("after", [0, "0.3", 0.3, "inf", "nan", "soon", "no zone"])
def test_retry_after_may_be_anything(name, after, monkeypatch):
    if after == "no zone":  # it is that of HTTP, wherever the machine is
        after = formatdate(time.time() + 1)
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()

    class ClientError(Exception):
        status, headers = 429, {name: after}

    call = Mock(side_effect=[ClientError, curved(ROWS[:1])])
    start = time.monotonic()
    np.testing.assert_array_equal(RemoteModel(call)(ROWS[:1]), curved(ROWS[:1]))
    assert (0.3 if after in ("0.3", 0.3) else 0) < time.monotonic() - start < 3
    monkeypatch.undo()
    time.tzset()


def test_answers_of_another_shape_than_most_are_asked_for_again(tmp_path):
    options = {"retries": 1, "memory": tmp_path, "name": "a"}
    model = RemoteModel(lambda x: np.ones((len(x), 2)), **options)
    model(ROWS[:3])
    model.call = curved
    np.testing.assert_array_equal(model(ROWS), curved(ROWS))
    model.call = lambda x: np.ones((len(x), 1 + len(x) // 8))
    with pytest.raises(ModelOutputError, match=r"entries of one shape"):
        model(ROWS + 1)
    model.call = lambda x: np.ones((len(x), 2))
    model(ROWS[:4] + 2)
    model.call = curved
    with pytest.raises(ModelOutputError, match=r"the shape \(2,\) first, and \(\) later"):
        model(ROWS + 2)
    calls = model.usage.calls
    np.testing.assert_array_equal(model(ROWS + 2), curved(ROWS + 2))
    np.testing.assert_array_equal(model(ROWS[:4] + 2), curved(ROWS[:4] + 2))
    assert model.usage.calls == calls  # the first rows were asked for beside the others


def test_answers_that_are_no_sequences_are_asked_for_again():
    for answer in ("a text", dict.fromkeys(range(6)), set(range(6)), b"a text"):
        call = Mock(side_effect=[answer, curved(ROWS[:6])])
        np.testing.assert_array_equal(RemoteModel(call)(ROWS[:6]), curved(ROWS[:6]))


# --- limits ---


def test_calls_run_at_the_same_time_but_no_more_than_allowed():
    with FaultyServer(curved, latency=0.02) as server:
        model = RemoteModel(server.ask, concurrency=5, rows_per_call=4)
        with ThreadPoolExecutor() as callers:
            list(callers.map(model, [ROWS] * 3))
        assert server.most_running == 5


def test_late_answers_are_kept_after_an_error(tmp_path):
    with FaultyServer(curved, ["late"], late=0.6) as server:
        options = {"memory": tmp_path, "name": "a", "retries": 0}
        with pytest.raises(RemoteCallError, match=r"TimeoutError: .*timeout=0\.2 seconds"):
            RemoteModel(server.ask, timeout=0.2, **options)(ROWS[:8])
        time.sleep(0.6)
        np.testing.assert_array_equal(RemoteModel(server.ask, **options)(ROWS), curved(ROWS))
        assert server.n_paid_twice == 0


def test_calls_that_hang_for_ever_end_with_an_error():
    hangs = threading.Event()
    model = RemoteModel(lambda x: hangs.wait(60), concurrency=2, timeout=0.1, retries=0)
    started = time.monotonic()
    for _ in range(2):
        with pytest.raises(RemoteCallError, match=r"(no answer came within|late by) timeout=0\.1"):
            model(ROWS)
    assert time.monotonic() - started < 5
    hangs.set()


def test_rates_hold_over_all_threads():
    with FaultyServer(curved) as server:
        model = RemoteModel(server.ask, rows_per_call=2, rate=50)
        with ThreadPoolExecutor() as callers:
            list(callers.map(model, [ROWS[:10]] * 4))
        starts = [start for start, _ in server.calls]
        assert len(starts) == 20
        assert max(starts) - min(starts) >= 19 / 50 - 0.05


def test_no_call_starts_after_one_that_failed_for_good():
    first_failed, late = threading.Event(), []

    def call(x):
        if x[0, 0] == ROWS[0, 0]:
            first_failed.set()
            raise ValueError("the quota is used up")
        first_failed.wait(1)
        late.append(len(x))
        return curved(x)

    model = RemoteModel(call, concurrency=4, rows_per_call=1)
    with pytest.raises(
        RemoteCallError, match=r"0 to 0 of 103 failed: ValueError: the quota.*retry"
    ):
        model(ROWS)
    n_calls = len(late)  # those that ran beside it, whose answers are waited for
    assert n_calls <= 6
    assert len(late) == n_calls


def test_calls_that_fail_beside_another_say_nothing_later(caplog):
    model = RemoteModel(Mock(side_effect=ValueError("no")), concurrency=8, rows_per_call=1)
    with pytest.raises(RemoteCallError):
        model(ROWS)
    del model
    gc.collect()  # which lets asyncio complain of errors that nobody asked for
    time.sleep(0.05)
    assert not caplog.records


# --- what is kept ---


def test_what_was_paid_for_is_kept(tmp_path):
    n_asked, breaks = 0, True

    def call(x):
        nonlocal n_asked
        if breaks and n_asked >= 40:
            raise ValueError("the network is gone")
        n_asked += len(x)
        return np.stack([curved(x), curved(x) ** 2], axis=1)

    make = {"memory": tmp_path / "answers.db", "name": "curved 1", "rows_per_call": 4}
    with pytest.raises(RemoteCallError, match=r"kept in .*answers\.db"):
        RemoteModel(call, concurrency=2, **make)(ROWS)
    breaks = False
    again = RemoteModel(call, **make)
    both = np.concatenate([ROWS, ROWS[:10]])  # equal rows are asked for once
    np.testing.assert_array_equal(again(both)[:, 0], curved(both))
    assert n_asked == len(ROWS)
    assert again.usage.rows + again.usage.remembered_rows == len(both)
    RemoteModel(call, **{**make, "name": "curved 2"})(ROWS[:3])
    assert n_asked == len(ROWS) + 3
    again.forget(ROWS[5:9])
    again(ROWS)
    assert n_asked == len(ROWS) + 3 + 4
    again.forget()
    again(ROWS[:2])
    assert n_asked == len(ROWS) + 3 + 4 + 2
    with pytest.raises(InvalidArgumentError, match="needs memory="):
        RemoteModel(call).forget()


def test_unlike_rows_are_told_apart(tmp_path):
    counts = []

    def count(x, *_):
        counts.append(np.shape(x)[0])
        return np.zeros(np.shape(x)[0])

    model = RemoteModel(count, memory=tmp_path, name="a")
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None]})
    unlike = [
        *([1], [1.0], [True], ["1"], [b"1"], [None], [[1]], [{"a": 1}], [{1: "a"}], ["é"]),
        *(np.array([2**60]), np.array([2**60 + 1]), np.array([1.0]), np.array([1], np.int32)),
        *(frame[:1], frame.rename(columns={"a": "c"})[:1], frame[:1].astype({"a": np.float32})),
        *(np.array(["1", "22"], dtype=object)[1:], scipy.sparse.csr_matrix([[1.0]])),
        *(np.array([[one]], dtype=object) for one in (2, 2.0, "2")),
    ]
    for rows in unlike:
        model(rows)
    model([1], 3)
    model([1], 3.0)
    assert sum(counts) == len(unlike) + 2
    for rows in unlike:
        model(rows)
    model(np.array(["1", "long"])[:1])  # a text, whatever array it is in
    assert sum(counts) == len(unlike) + 2
    with pytest.raises(InvalidArgumentTypeError, match="recognises rows by their content"):
        model([object()])


def test_a_changed_answer_is_asked_for_again(tmp_path):
    path, rows = tmp_path / "m", ROWS[:20]
    RemoteModel(curved, memory=path, name="a")(rows)
    with sqlite3.connect(path) as database:
        (key, answer) = database.execute("SELECT * FROM answers LIMIT 1").fetchone()
        changed = answer[:-1] + bytes([answer[-1] ^ 1])
        database.execute("UPDATE answers SET answer = ? WHERE key = ?", (changed, key))
    database.close()
    model = RemoteModel(curved, memory=path, name="a")
    with pytest.warns(UserWarning, match="1 outputs in memory=.* are damaged; they are asked"):
        np.testing.assert_array_equal(model(rows), curved(rows))
    assert model.usage.rows == 1


def test_a_full_disk_loses_no_output(tmp_path, monkeypatch):
    n_refused = 10**6

    class Full(sqlite3.Connection):
        def executemany(self, *arguments):
            nonlocal n_refused
            n_refused -= 1
            if n_refused >= 0:
                raise sqlite3.OperationalError("database or disk is full")
            super().executemany(*arguments)
            time.sleep(0.02)  # others wait for the database

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, factory=Full, **k))
    models = [RemoteModel(curved, rows_per_call=1, memory=tmp_path / n, name="a") for n in "mn"]
    for model, n in ((models[0], n_refused), (models[0], n_refused), (models[1], 1)):
        n_refused = n
        with pytest.warns(UserWarning, match="disk is full.* Outputs are held by this process"):
            np.testing.assert_array_equal(model(ROWS), curved(ROWS))
    monkeypatch.undo()
    np.testing.assert_array_equal(models[0](ROWS), curved(ROWS))
    for name, model in zip("mn", models, strict=True):
        again = RemoteModel(curved, memory=tmp_path / name, name="a")
        np.testing.assert_array_equal(again(ROWS), curved(ROWS))
        assert (model.usage.rows, again.usage.rows) == (len(ROWS), 0)


def test_files_of_others_are_refused(tmp_path):
    (tmp_path / "text").write_text("no database" * 100)
    with sqlite3.connect(tmp_path / "other") as database:
        database.execute("CREATE TABLE mine (a)")
    database.close()
    for name in ("text", "other"):
        with pytest.raises(CheckpointError, match=name):
            RemoteModel(curved, memory=tmp_path / name, name="a")


# --- other processes ---

ASKS = """
import sys, time
import numpy as np
from shapley_adapters.remote import RemoteModel
from tests.helpers.faulty_server import FaultyServer
server = FaultyServer(None)
server.url = sys.argv[1]
model = RemoteModel(server.ask, concurrency=4, rows_per_call=4, memory=sys.argv[2], name="a")
print("ready", flush=True)
input()
rows = np.random.default_rng(0).normal(size=(103, 5))
for start in range(0, 103, 40):
    model(rows[start : start + 40])
"""


def started(code, *arguments):
    """A process that has printed a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def tell(process):
    process.stdin.write("\n")
    process.stdin.close()


def end(process):
    process.wait(60)
    process.stdout.close()
    return process.returncode


def test_processes_that_share_a_memory_pay_for_each_row_once(tmp_path):
    with FaultyServer(curved, latency=0.02) as server:
        processes = [started(ASKS, server.url, tmp_path / "m") for _ in range(2)]
        for process in processes:
            tell(process)
        assert [end(process) for process in processes] == [0, 0]
        assert server.paid.total() == len(server.paid) == len(ROWS)


@pytest.mark.skipif(os.name != "posix", reason="kills a process by a signal")
def test_a_killed_process_loses_the_calls_in_flight_and_holds_up_nobody(tmp_path):
    with FaultyServer(curved, latency=0.05) as server:
        process = started(ASKS, server.url, tmp_path / "m")
        tell(process)
        while len(server.calls) < 8:
            time.sleep(0.001)
        process.kill()
        end(process)
        model = RemoteModel(server.ask, memory=tmp_path / "m", name="a")
        np.testing.assert_array_equal(model(ROWS), curved(ROWS))
        assert server.n_paid_twice <= 4 * 4


HANGS = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests ignore it
from shapley_adapters.remote import RemoteModel
def call(x):
    if x[0]:
        if x[0] == 2:  # the answer to 0 is kept
            print("asked", flush=True)
        time.sleep(30)
    return [1.0] * len(x)
model = RemoteModel(call, memory=sys.argv[1], name="a", rows_per_call=1, concurrency=2)
try:
    model([0, 1, 2, 3])
except KeyboardInterrupt:
    print(time.time(), flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="interrupts a process by a signal")
def test_ctrl_c_ends_within_a_second_and_loses_no_answer(tmp_path):
    process = started(HANGS, tmp_path / "m")
    time.sleep(0.2)
    began = time.time()
    process.send_signal(signal.SIGINT)
    times = process.stdout.read().split()
    assert float(times[-1]) - began < 1
    assert end(process) == 0
    assert time.time() - began < 15  # rather than the 30 s of the calls
    model = RemoteModel(lambda x: [1.0] * len(x), memory=tmp_path / "m", name="a")
    model([0, 1, 2, 3])
    assert model.usage.rows == 3


def test_models_move_to_other_processes(tmp_path):
    model = RemoteModel(curved, rows_per_call=50, retries=7, memory=tmp_path / "m", name="a")
    model(ROWS[:50])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy(ROWS), curved(ROWS))
    assert (copy.usage.calls, copy.usage.remembered_rows, copy.retries) == (2, 50, 7)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of forks, by its threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_a_fork_asks_by_itself_and_models_that_are_gone_leave_no_thread():
    model, n_threads = RemoteModel(curved), threading.active_count()
    model(ROWS)
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(not np.array_equal(model(ROWS), curved(ROWS)))
    assert os.waitpid(child, 0)[1] == 0
    del model
    gc.collect()
    time.sleep(0.2)
    assert threading.active_count() <= n_threads


# --- arguments ---


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"call": 3}, InvalidArgumentTypeError, "call must be a function"),
        ({"concurrency": 0}, InvalidArgumentError, "concurrency must be at least 1"),
        ({"rows_per_call": 2.5}, InvalidArgumentTypeError, "rows_per_call must be a whole"),
        ({"retries": -1}, InvalidArgumentError, "retries must be at least 0"),
        ({"retry_on": "OSError"}, InvalidArgumentTypeError, "retry_on must be a type"),
        ({"rate": 0}, InvalidArgumentError, "rate must be a positive number; got 0"),
        ({"timeout": True}, InvalidArgumentTypeError, "timeout must be a positive number"),
        ({"cost": -1}, InvalidArgumentError, "cost must be a positive number"),
        ({"cost": curved}, InvalidArgumentTypeError, "cost must be a positive number"),
        ({"memory": "m"}, InvalidArgumentError, "memory= needs name="),
        ({"memory": "no/such/m", "name": "a"}, InvalidArgumentError, "does not exist"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        RemoteModel(**{"call": curved, **arguments})


def test_bad_rows(tmp_path):
    with pytest.raises(InvalidArgumentTypeError, match="takes rows as its first argument.*float"):
        RemoteModel(curved)(3.0)
    with pytest.raises(InvalidArgumentError, match="at least one row"):
        RemoteModel(curved)(ROWS[:0])
    texts = RemoteModel(lambda x: ["a"] * len(x), memory=tmp_path / "m", name="a")
    with pytest.raises(ModelOutputError, match="keeps numbers"):
        texts(ROWS)
    assert texts.usage.calls <= 13  # none is repeated

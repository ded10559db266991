"""Models behind a network: order, limits, repetitions, what is kept, and errors."""

import asyncio
import pickle
import random
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from shapley_adapters.errors import (
    CheckpointError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    RemoteCallError,
)
from shapley_adapters.remote import remote_model
from shapley_adapters.remote.remote_model import RemoteModel
from tests.helpers.faulty_server import FaultyServer

ROWS = np.random.default_rng(0).normal(size=(103, 5))


def curved(x):
    """Rows of NumPy are computed one by one, so that parts equal the whole bit for bit."""
    return np.array([np.sin(row).prod() + row[0] for row in np.asarray(x)])


async def asked(x):
    await asyncio.sleep(0.001 * (len(x) % 3))
    return curved(x)


@pytest.mark.parametrize("call", [curved, asked], ids=["function", "coroutine"])
@pytest.mark.parametrize("rows_per_call", [1, 8, 200])
def test_outputs_are_those_of_a_plain_call_in_order(call, rows_per_call):
    model = RemoteModel(call, rows_per_call=rows_per_call)
    np.testing.assert_array_equal(model(ROWS), curved(ROWS))
    assert model.usage.calls == -(-len(ROWS) // rows_per_call)
    assert model.usage.rows == len(ROWS)


def test_works_where_a_loop_is_running():
    async def notebook():
        return RemoteModel(asked)(ROWS)

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
    frames = RemoteModel(lambda x: x[["b"]])(pd.DataFrame({"a": range(20), "b": range(20)}))
    assert list(frames["b"]) == list(range(20))


def test_arguments_with_an_entry_for_each_row_are_divided():
    model = RemoteModel(lambda x, y: np.asarray(x)[:, 0] + np.asarray(y), rows_per_call=7)
    np.testing.assert_array_equal(model(ROWS, np.arange(103)), ROWS[:, 0] + np.arange(103))


def test_calls_run_at_the_same_time_but_no_more_than_allowed():
    running, most = 0, 0
    lock = threading.Lock()

    def call(x):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return curved(x)

    model = RemoteModel(call, concurrency=5, rows_per_call=2)
    callers = [threading.Thread(target=model, args=(ROWS,)) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert most == 5


def test_failures_are_repeated_and_counted(monkeypatch):
    monkeypatch.setattr(remote_model, "_FIRST_WAIT", 0.005)
    with FaultyServer(curved, fails=0.2) as server:
        model = RemoteModel(server.ask, retries=8, cost=0.5)
        np.testing.assert_array_equal(model(ROWS), curved(ROWS))
        assert server.failed > 0
        assert model.usage.retries == server.failed
        assert model.usage.calls == server.failed + server.answered == len(server.starts)
        assert model.usage.money == 0.5 * len(ROWS)
    assert f"{server.failed} repeated" in str(model.usage)


def test_waits_grow_and_leave_random_states_alone(monkeypatch):
    waits = []

    def never(x):
        raise ConnectionError("no answer")

    before, before_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    model = RemoteModel(never, retries=4, rows_per_call=200)
    monkeypatch.setattr("tenacity.sleep_using_event", lambda event: waits.append)
    with pytest.raises(RemoteCallError, match="failed 5 times: ConnectionError: no answer"):
        model(ROWS)
    assert len(waits) == 4
    for number, seconds in enumerate(waits):
        assert 0.25 * 2**number <= seconds <= 0.5 * 2**number
    assert random.getstate() == before
    np.testing.assert_equal(np.random.get_state(), before_numpy)  # noqa: NPY002


@pytest.mark.parametrize("limit", [{"rate": 100}, {"row_rate": 200}])
def test_rates_hold_over_all_threads(limit):
    starts = []

    def call(x):
        starts.append(time.monotonic())
        return curved(x)

    model = RemoteModel(call, rows_per_call=2, concurrency=8, **limit)
    callers = [threading.Thread(target=model, args=(ROWS[:10],)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(starts) == 20
    assert max(starts) - min(starts) >= 19 / 100 - 0.02


@pytest.mark.parametrize("is_coroutine", [False, True])
def test_a_call_that_takes_too_long_is_repeated(is_coroutine, monkeypatch):
    monkeypatch.setattr(remote_model, "_FIRST_WAIT", 0.005)
    n_calls = 0

    def call(x):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            time.sleep(0.3)
        return curved(x)

    async def coroutine(x):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            await asyncio.sleep(5)
        return curved(x)

    model = RemoteModel(coroutine if is_coroutine else call, timeout=0.1, rows_per_call=200)
    np.testing.assert_array_equal(model(ROWS), curved(ROWS))
    assert model.usage.retries == 1
    slow = RemoteModel(lambda x: time.sleep(0.2), timeout=0.01, retries=0)
    with pytest.raises(RemoteCallError, match=r"longer than timeout=0\.01 seconds"):
        slow(ROWS[:1])


def test_no_call_starts_after_one_that_failed_for_good():
    first_failed = threading.Event()
    late = []

    def call(x):
        if x[0, 0] == ROWS[0, 0]:
            first_failed.set()
            raise ValueError("the quota is used up")
        first_failed.wait(1)
        late.append(len(x))
        return curved(x)

    model = RemoteModel(call, concurrency=4, rows_per_call=1)
    with pytest.raises(RemoteCallError, match=r"rows 0 to 0 of 103 failed: ValueError: the quota"):
        model(ROWS)
    assert len(late) <= 6  # those that ran beside it
    n_calls = model.usage.calls
    time.sleep(0.05)
    assert model.usage.calls == n_calls


def test_what_was_paid_for_is_kept(tmp_path):
    n_asked, breaks = 0, True

    def call(x):
        nonlocal n_asked
        if breaks and n_asked >= 40:
            raise ValueError("the network is gone")
        n_asked += len(x)
        return np.stack([curved(x), curved(x) ** 2], axis=1)

    make = {"memory": tmp_path / "answers.db", "name": "curved 1", "rows_per_call": 4}
    model = RemoteModel(call, concurrency=2, **make)
    with pytest.raises(RemoteCallError, match=r"kept in .*answers\.db"):
        model(ROWS)
    breaks = False
    again = RemoteModel(call, **make)
    both = np.concatenate([ROWS, ROWS[:10]])  # equal rows are asked for once
    np.testing.assert_array_equal(again(both)[:, 0], curved(both))
    assert n_asked == len(ROWS)
    assert again.usage.rows + again.usage.remembered_rows == len(both)
    other = RemoteModel(call, **{**make, "name": "curved 2"})
    other(ROWS[:3])
    assert n_asked == len(ROWS) + 3
    again.memory.clear()
    again(ROWS[:2])
    assert n_asked == len(ROWS) + 5


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_kept_outputs_have_their_types_and_shapes(tmp_path, dtype):
    def call(x):
        return (np.asarray(x)[:, :4].reshape(-1, 2, 2) > 0).astype(dtype)

    for _ in range(2):
        found = RemoteModel(call, memory=tmp_path / "m", name="a")(ROWS)
        np.testing.assert_array_equal(found, call(ROWS))
        assert found.dtype == dtype


def test_frames_and_types_are_told_apart(tmp_path):
    counts = []

    def call(x):
        counts.append(len(x))
        return np.zeros(len(x))

    model = RemoteModel(call, memory=tmp_path / "m", name="a")
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None]})
    for rows in (frame, frame.rename(columns={"a": "c"}), ROWS[:2], ROWS[:2].astype(np.float32)):
        model(rows)
        model(rows)
    assert sum(counts) == 8


KILLED = """
import os, sys, numpy as np
from shapley_adapters.remote.remote_model import RemoteModel
n = 0
def call(x):
    global n
    n += len(x)
    if n > int(sys.argv[2]):
        os._exit(9)
    return x[:, 0] * np.pi
RemoteModel(call, concurrency=1, rows_per_call=3, memory=sys.argv[1], name="a")(
    np.arange(60.0).reshape(60, 1)
)
"""


@pytest.mark.slow
def test_a_killed_process_loses_one_call(tmp_path):
    for n in (7, 12, 31):
        path = tmp_path / f"m{n}"
        command = [sys.executable, "-c", KILLED, str(path), str(n)]
        assert subprocess.run(command, check=False).returncode == 9
        asked = []
        model = RemoteModel(
            lambda x, asked=asked: asked.extend(x[:, 0]) or x[:, 0] * np.pi, memory=path, name="a"
        )
        np.testing.assert_array_equal(
            model(np.arange(60.0).reshape(60, 1)), np.arange(60.0) * np.pi
        )
        assert len(asked) == 60 - n // 3 * 3


def test_the_oldest_outputs_are_dropped(tmp_path):
    model = RemoteModel(
        lambda x: np.zeros((len(x), 1000)),
        concurrency=1,
        memory=tmp_path / "m",
        name="a",
        memory_bytes=300_000,
    )
    model(ROWS)
    keys = model.memory.keys([ROWS], len(ROWS))
    known = model.memory.find(keys)
    assert 20 < len(known) < 60
    assert keys[-1] in known
    assert keys[0] not in known


def test_a_full_disk_loses_no_output(tmp_path, monkeypatch):
    model = RemoteModel(curved, memory=tmp_path / "m", name="a")

    class Full(sqlite3.Connection):
        def executemany(self, *_):
            raise sqlite3.OperationalError("database or disk is full")

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, factory=Full, **k))
    with pytest.warns(UserWarning, match="disk is full.* Outputs are held by this process"):
        np.testing.assert_array_equal(model(ROWS), curved(ROWS))
    np.testing.assert_array_equal(model(ROWS), curved(ROWS))
    monkeypatch.undo()
    np.testing.assert_array_equal(model(ROWS), curved(ROWS))
    assert model.usage.rows == len(ROWS)
    again = RemoteModel(curved, memory=tmp_path / "m", name="a")
    np.testing.assert_array_equal(again(ROWS), curved(ROWS))
    assert again.usage.rows == 0


def test_files_of_others_are_refused(tmp_path):
    (tmp_path / "text").write_text("no database" * 100)
    with sqlite3.connect(tmp_path / "other") as database:
        database.execute("CREATE TABLE mine (a)")
    for name in ("text", "other"):
        with pytest.raises(CheckpointError, match=name):
            RemoteModel(curved, memory=tmp_path / name, name="a")
    model = RemoteModel(curved, memory=tmp_path / "m", name="a")
    model(ROWS[:2])
    with sqlite3.connect(tmp_path / "m") as database:
        database.execute("UPDATE outputs SET dtype = 'O'")
    with pytest.raises(CheckpointError, match="damaged"):
        model(ROWS[:2])


def test_a_folder_holds_a_file(tmp_path):
    for _ in range(2):
        model = RemoteModel(curved, memory=tmp_path, name="a")
        np.testing.assert_array_equal(model(ROWS), curved(ROWS))
    assert model.usage.rows == 0
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        RemoteModel(curved, memory=tmp_path / "no folder" / "m", name="a")


def test_models_move_to_other_processes():
    copy = pickle.loads(pickle.dumps(RemoteModel(curved, rows_per_call=50)))
    np.testing.assert_array_equal(copy(ROWS), curved(ROWS))
    assert copy.usage.calls == 3


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
        ({"memory": "m"}, InvalidArgumentError, "memory= needs name="),
        ({"memory": "no/such/m", "name": "a"}, InvalidArgumentError, "does not exist"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        RemoteModel(**{"call": curved, **arguments})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: 1.0, "returned no sequence for 8 rows"),
        (lambda x: np.zeros(3), "returned 3 entries for 8 rows"),
    ],
)
def test_bad_outputs(call, message):
    with pytest.raises(ModelOutputError, match=message):
        RemoteModel(call)(ROWS)


def test_bad_rows(tmp_path):
    with pytest.raises(InvalidArgumentTypeError, match="takes rows as its first argument"):
        RemoteModel(curved)(3.0)
    model = RemoteModel(lambda x: np.array(["a"] * len(x)), memory=tmp_path / "m", name="a")
    with pytest.raises(ModelOutputError, match="keeps numbers"):
        model(ROWS)
    with pytest.raises(InvalidArgumentTypeError, match="recognises rows by their content"):
        model([object()])

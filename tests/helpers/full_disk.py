"""Calls that write to a small disk while it is filled, started by the tests as a script.

The disk is a file system in memory, which only the namespace of this process has:

    unshare --mount --map-root-user python full_disk.py FOLDER

FOLDER is where it is mounted. Prints as JSON, for each kind of file and each moment, what happened.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import shap_ext
from shapley_adapters.errors import CheckpointError

N_ROWS, N_FEATURES, BUDGET, CHUNK = 15, 60, 125, 5
X = np.random.default_rng(0).normal(size=(N_ROWS, N_FEATURES))
BYTES_LEFT = {"full at once": 0, "one byte": 1, "part of a chunk": 3000, "some chunks": 60_000}
ROWS_BEFORE = (0, 700, 1300)


class Model:
    """Counts the rows that it is asked for, and fills the disk before one of them."""

    def __init__(self, folder: Path, n_rows_before: int, n_left: int) -> None:
        self.folder, self.n_rows_before, self.n_left = folder, n_rows_before, n_left
        self.n_asked, self.lock = 0, threading.Lock()

    def __call__(self, rows: Any) -> Any:
        with self.lock:  # else two calls at once fill the disk, and one of them fails
            if self.n_asked <= self.n_rows_before < self.n_asked + len(rows):
                fill(self.folder, self.n_left)
            self.n_asked += len(rows)
        return np.array([np.sin(row).sum() + row[0] * row[1] for row in np.asarray(rows)])


def fill(folder: Path, n_left: int) -> None:
    """Write to a disk until only some bytes are left."""
    with open(folder / "reserve", "wb") as reserve, open(folder / "filler", "wb", 0) as filler:
        reserve.write(bytes(n_left))
        reserve.flush()
        for size in (4096, 1):
            with suppress(OSError):
                while filler.write(bytes(size)) == size:
                    pass
    (folder / "reserve").unlink()


def explained(model: Any) -> Callable[[], Any]:
    """Return a call of the explainer."""
    explainer = shap_ext.RandomOrderExplainer(model, np.zeros((1, N_FEATURES)), seed=0)
    return lambda: explainer(X, max_evals=BUDGET, silent=True).values


def with_memory(model: Model, disk: Path) -> Callable[[], Any]:
    """Return a call that keeps what it pays for."""
    path = disk / "paid.db"
    return explained(
        shap_ext.RemoteModel(model, memory=path, name="a", concurrency=2, rows_per_call=15)
    )


def with_stream(model: Model, disk: Path) -> Callable[[], Any]:
    """Return a call that writes a stream."""

    def call() -> Any:
        explainer = shap_ext.RandomOrderExplainer(model, np.zeros((1, N_FEATURES)), seed=0)
        options: Any = {"checkpoint": True, "chunk_size": CHUNK, "silent": True}
        return explainer.explain_stream(X, disk / "out.npz", max_evals=BUDGET, **options).values

    return call


@cache
def undisturbed(make: Callable) -> tuple[Any, int]:
    """Return what a call gives on a large disk, and the rows that it asks for."""
    with tempfile.TemporaryDirectory() as folder:
        model = Model(Path(folder), -1, 0)
        return np.array(make(model, Path(folder))()), model.n_asked


def outcome(make: Callable, disk: Path, n_rows_before: int, n_left: int) -> dict[str, Any]:
    """Return what a call does on a full disk, and when it is repeated on one that was freed."""
    for path in disk.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    wanted, n_wanted = undisturbed(make)
    model = Model(disk, n_rows_before, n_left)
    call, error, found = make(model, disk), "", wanted
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = np.array(call())
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
    n_open = 0
    with suppress(CheckpointError):  # there is none, or it has no chunk
        before = shap_ext.StreamedExplanations.open(disk / "out.npz").values
        n_open = len(before)
        found = np.concatenate([before, wanted[n_open:]])
    (disk / "filler").unlink()
    again = np.array(call())
    n_asked = model.n_asked
    other_process = np.array(make(model, disk)())  # which has what is on the disk alone
    return {
        "error": error,
        "warnings": [str(warning.message) for warning in caught],
        "is_same": bool(all((values == wanted).all() for values in (found, again, other_process))),
        "n_open": n_open,
        "n_twice": n_asked - n_wanted,
        "n_asked_at_last": model.n_asked - n_asked,
    }


def main() -> None:
    """Mount the disk, and print the outcomes."""
    disk = Path(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
    kinds = {"memory": with_memory, "stream": with_stream}
    found = {
        f"{kind}, {n_rows_before} rows before, {moment}": outcome(make, disk, n_rows_before, n_left)
        for kind, make in kinds.items()
        for n_rows_before in ROWS_BEFORE
        for moment, n_left in BYTES_LEFT.items()
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""A table and a model for the tests of engines, in a module that workers import."""

import itertools
import os
import signal

import joblib
import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext  # noqa: F401 # it makes shap know the algorithms

COLUMNS = ["age", "income", "height", "weight"]

at_sizes = pytest.mark.parametrize(
    "n_rows", [10_000, pytest.param(100_000, marks=pytest.mark.slow)]
)
"""Of the mixed table."""


def table(n_rows=60, seed=0):
    """Return rows with an identifier."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(n_rows, 4)), columns=COLUMNS)
    frame.insert(0, "id", np.arange(n_rows))
    return frame


class LoadedModel:
    """A model that notes in a folder each time that a process loads it."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __call__(self, x):
        x = np.asarray(x, dtype=float)
        return np.sin(x).prod(axis=1) + x[:, 0] * x[:, 3]

    def __setstate__(self, state):
        self.__dict__.update(state)
        with open(os.path.join(self.folder, str(os.getpid())), "a") as file:
            file.write("loaded\n")


class EndsOneProcess(LoadedModel):
    """A model that kills the first process of its folder that asks it, but that of the test."""

    def __init__(self, folder):
        super().__init__(folder)
        self.process = os.getpid()

    def __call__(self, x):
        self.end_process()
        return super().__call__(x)

    def end_process(self):
        """Kill this process by a signal, unless another one was."""
        killed = os.path.join(self.folder, "killed")
        if os.getpid() != self.process and not os.path.exists(killed):
            open(killed, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)


class MixedModel(EndsOneProcess):
    """A model of the mixed table, which kills one process."""

    def __call__(self, x):
        self.end_process()
        weights = x["kind"].map({"a": 0.5, "b": 1.5, "c": -1.0}).astype(float).fillna(0.0)
        visits, income = x["visits"].astype("Float64").fillna(-1.0), x["income"].to_numpy()
        is_member = x["is_member"].astype("boolean").fillna(False).to_numpy(dtype=float)
        ages = x["age"].to_numpy(dtype=float)
        return np.sin(ages / 9) * weights.to_numpy() + visits.to_numpy() * income * (1 + is_member)


MIXED_COLUMNS = ["age", "kind", "income", "is_member", "visits"]
KEPT_COLUMNS = ["id", "kind", "is_member", "visits"]


def mixed_table(n_rows):
    """Return rows with nullable integers, a nullable flag, and categories of unequal size."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": np.arange(n_rows),
            "age": random.integers(18, 90, n_rows),
            "kind": pd.Categorical(random.choice(list("abc"), n_rows, p=[0.9, 0.09, 0.01])),
            "income": random.normal(size=n_rows),
            "is_member": pd.array(random.integers(0, 2, n_rows), dtype="boolean"),
            "visits": pd.array(random.integers(0, 5, n_rows), dtype="Int64"),
        }
    )
    for name in ("kind", "is_member", "visits"):
        # The first row, from which an engine sees the types, has none missing.
        frame.loc[(random.random(n_rows) < 0.1) & (frame["id"] > 0), name] = None
    return frame


def write_skewed_parts(n_rows, folder):
    """Write the mixed table to files of Parquet, some of them empty; return their paths."""
    table = mixed_table(n_rows)
    ends = [0, 40, 40, 41, 41 + n_rows // 10, n_rows, n_rows]
    folder.mkdir()
    paths = []
    for number, (start, stop) in enumerate(itertools.pairwise([0, *ends])):
        paths.append(str(folder / f"part-{number}.parquet"))
        table.iloc[start:stop].to_parquet(paths[-1], index=False)
    return paths


def mixed_explainer(folder):
    """Return an explainer of the mixed table."""
    background = mixed_table(200)[MIXED_COLUMNS].iloc[-3:]
    return shap.Explainer(MixedModel(folder), background, algorithm="leastsquares", seed=0)


def explain_mixed(example, folder):
    """Return its batch function, whose model kills one worker."""
    explainer = mixed_explainer(folder)
    return explainer.batch_function(example, features=MIXED_COLUMNS, keep=KEPT_COLUMNS)


def assert_mixed_as_in_one_process(found, n_rows, folder):
    """Compare the attributions and the copied columns, and check that a worker was killed."""
    assert (folder / "killed").exists()
    table, found = mixed_table(n_rows), found.sort_values("id", ignore_index=True)
    wanted = mixed_explainer(folder)(table[MIXED_COLUMNS], silent=True)
    np.testing.assert_array_equal(found[[f"shap_{c}" for c in MIXED_COLUMNS]], wanted.values)
    np.testing.assert_array_equal(found["shap_base_value"], wanted.base_values)
    for name in KEPT_COLUMNS:
        kept = found[name].astype(table[name].dtype)
        pd.testing.assert_series_equal(kept, table[name], check_categorical=False)


def explainer(folder, **options):
    """Return an explainer of the model."""
    background = np.zeros((1, 4))
    return shap.Explainer(LoadedModel(folder), background, algorithm="shear", seed=1, **options)


def assert_as_in_one_call(found, folder):
    """Compare the batches' rows with one call, bit by bit."""
    rows = table()
    wanted = explainer(folder)(rows[COLUMNS].to_numpy(), error_bounds=True)
    found = found.sort_values("id")
    np.testing.assert_array_equal(found["id"], rows["id"])
    np.testing.assert_array_equal(found[[f"shap_{c}" for c in COLUMNS]], wanted.values)
    np.testing.assert_array_equal(found[[f"shap_error_{c}" for c in COLUMNS]], wanted.error_std)
    np.testing.assert_array_equal(found["shap_base_value"], wanted.base_values)


def assert_loaded_once_per_process(folder):
    """Check that the workers have loaded the model, and none of them twice."""
    loads = {path.name: path.read_text().count("loaded") for path in folder.iterdir()}
    assert loads and set(loads.values()) == {1}, loads
    assert str(os.getpid()) not in loads


def estimate_by_jobs(folder, n_jobs):
    """Return the explanation that workers of joblib make of the table."""
    return explainer(folder, n_jobs=n_jobs)(table()[COLUMNS].to_numpy())


def estimates_with_a_killed_worker(backend, folder):
    """Return the attributions of one process, and of workers one of which is killed."""
    rows, background = table()[COLUMNS].to_numpy(), np.zeros((1, 4))
    model = EndsOneProcess(folder)
    explainer = shap.Explainer(model, background, algorithm="leastsquares", seed=0)
    wanted = explainer(rows).values
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = explainer(rows).values
    assert (folder / "killed").exists()
    return wanted, found

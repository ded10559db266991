"""A table and a model for the tests of engines, in a module that workers import."""

import os
import signal

import numpy as np
import pandas as pd
import shap

import shap_ext  # noqa: F401 # it makes shap know the algorithms

COLUMNS = ["age", "income", "height", "weight"]


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
        killed = os.path.join(self.folder, "killed")
        if os.getpid() != self.process and not os.path.exists(killed):
            open(killed, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(x)


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

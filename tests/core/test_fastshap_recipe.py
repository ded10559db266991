"""The authors' recipe of FastSHAP, with which networks are compared in the benchmarks."""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
N = 5
ROWS = np.random.default_rng(0).normal(size=(1200, N))
SLOPES = np.arange(1.0, N + 1)


@pytest.fixture(scope="module")
def recipe():
    """The module, which the scripts import by its name alone."""
    sys.path.append(str(BENCHMARKS))
    try:
        yield importlib.import_module("fastshap_recipe")
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_the_shapley_values_of_an_additive_function_are_learned_within_the_budget(recipe):
    lengths = []

    def additive(rows):
        lengths.append(len(rows))
        return rows @ SLOPES + 2.0

    game = importlib.import_module("games").ModelGame(
        additive, ROWS, np.zeros((1, N)), np.arange(N)
    )
    inputs = torch.as_tensor(ROWS).float()
    made = recipe.train_recipe(
        game, inputs, lambda: recipe.table_network(N, N),
        learning_rate=3e-3, n_evaluations=300_000, seed=0,
    )  # fmt: skip
    assert made.evaluations == sum(lengths)
    per_epoch = 34 * 32 * 32  # of the 1,100 rows that are not held out, whole batches
    assert 300_000 - per_epoch < made.evaluations <= 300_000
    assert made.validation_evaluations == 100 * (128 + 1)
    exact = ROWS * SLOPES
    values = made.explain(inputs, exact.sum(axis=1))
    np.testing.assert_allclose(values.sum(axis=1), exact.sum(axis=1), atol=1e-4)
    error = np.abs(values - exact).sum(axis=1).mean() / np.abs(exact).sum(axis=1).mean()
    assert error < 0.1
    assert made.losses[-1] < 0.05 * made.losses[0]

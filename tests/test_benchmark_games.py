"""The true attributions that benchmarks measure errors by are those of enumeration."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.brute_force import shapley_values
from tests.helpers.optional import HAS_TORCH

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Import a script of the benchmarks, which find each other by their names alone."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(BENCHMARKS)])
    return import_module


def enumerated(values, n_players):
    """Return the Shapley values of a function of coalitions, (C, M)."""

    def value(players):
        present = np.zeros((1, n_players), dtype=bool)
        present[0, list(players)] = True
        return values(present)[0]

    return shapley_values(n_players, value)


@pytest.mark.skipif(not HAS_TORCH, reason="it measures captum's explainers, too")
def test_values_of_support_vectors_are_those_of_enumeration(script):
    pytest.importorskip("lightgbm")
    task = script("model_rows").Task("support vectors", 7, 5, 2)
    for row, truth in zip(task.rows, task.truth, strict=True):
        expected = enumerated(lambda present, row=row: task.coalition_values(row, present), 7)
        np.testing.assert_allclose(truth, expected, rtol=0, atol=1e-12)


@pytest.mark.skipif(not HAS_TORCH, reason="it measures captum's explainers, too")
def test_rows_for_the_same_error_are_read_from_the_curve(script):
    """Errors that fall with the root of the rows: half of the error takes four times the rows."""
    pytest.importorskip("lightgbm")
    module = script("model_rows")
    pandas = script("pandas")
    rows = np.array([10.0, 40.0, 160.0])
    errors = pandas.DataFrame(
        {module.OURS: 0.5 / np.sqrt(rows), "other": 1 / np.sqrt(rows)}, index=rows
    )
    assert module.share_of_rows(errors.iloc[1:], "other") == pytest.approx(0.5)
    assert module.share_of_rows(errors, "other") == pytest.approx((1 * 0.25 * 0.25) ** (1 / 3))

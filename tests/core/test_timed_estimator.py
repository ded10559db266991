"""The estimator of the benchmarks that counts its time."""

import sys
from pathlib import Path

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.estimators.protocol import Estimator
from tests.helpers.reference_games import random_game

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def timed_estimator(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(BENCHMARKS)])
    from core_games import TimedEstimator

    return TimedEstimator


@pytest.mark.parametrize("estimator", [core.OddGP(), core.RandomOrder(), core.Shear()])
def test_a_timed_estimator_is_the_estimator_itself(timed_estimator, estimator):
    timed, settings = timed_estimator(estimator), core.Settings(seed=0, budget=60)
    game = random_game(8)
    found, expected = (core.estimate(game, each, settings) for each in (timed, estimator))
    np.testing.assert_array_equal(found.values, expected.values)
    assert timed.design_seconds > 0
    assert timed.solve_seconds > 0


def test_a_timed_estimator_has_all_members_of_estimators(timed_estimator):
    estimator = core.OddGP()
    timed = timed_estimator(estimator)
    members = {name for name in dir(Estimator) if not name.startswith("_")}
    assert {"needs_graph", "memory", "design", "solve"} <= members
    for name in members - {"design", "solve"}:
        assert getattr(timed, name) == getattr(estimator, name), name

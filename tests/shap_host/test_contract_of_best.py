"""What `best` promises, on drawn models with known values: errors, times, and that it repeats.

The model moves a clock of its own, and our own work counts by its operations, so that the numbers
do not depend on the machine.
"""

import re

import numpy as np
import pytest
import shap

import shap_ext  # noqa: F401  registers the algorithms
import shapley_adapters as core
from shapley_adapters.pipeline.settings import OPERATIONS_PER_SECOND
from tests.helpers.clock import Clock

N_CELLS, OF_OWN, FLOOR = 20, 0.02, 1e-6
NAMES = {"oddgp": core.OddGP(gradients=False), "leastsquares": core.LeastSquares(),
         "randomorder": core.RandomOrder()}  # fmt: skip


def waves(rng, n_players, n_outputs):
    """Return a sum of waves of all or of few features, and its exact Shapley values at 0.

    A wave is the real part of a product over features, whose Shapley values are an integral.
    """
    of_features = rng.normal(size=(n_players, 8)) * rng.gamma(1.0, size=(n_players, 1))
    of_features *= rng.random(of_features.shape) < rng.choice([1.0, max(0.2, 3 / n_players)])
    of_features /= np.maximum(np.linalg.norm(of_features, axis=0), 1e-9)
    shift, heights = rng.uniform(0, 6, 8), rng.normal(size=(8, n_outputs))
    points, shares = np.polynomial.legendre.leggauss(n_players // 2 + 1)

    def exact(row):
        effects = np.exp(1j * of_features * row[:, None])
        found = np.zeros(of_features.shape, dtype=complex)
        for point, share in zip((points + 1) / 2, shares / 2, strict=True):
            factors = point * effects + 1 - point
            found += share * (effects - 1) * factors.prod(axis=0) / factors
        return (np.exp(1j * shift) * found).real @ heights

    return lambda x: np.cos(x @ of_features + shift) @ heights, exact


def drawn(seed):
    """Return a cell of the contract: a model, rows, their values, the budget, seconds of a row."""
    rng = np.random.default_rng(seed)
    n_players = int(np.exp(rng.uniform(np.log(2), np.log(100))))
    model, exact = waves(rng, n_players, int(rng.choice([1, 10])))
    budget = max(4, int(n_players * np.exp(rng.uniform(np.log(0.5), np.log(32)))))
    seconds = float(np.exp(rng.uniform(np.log(1e-6), np.log(2e-2))))
    rows = rng.normal(size=(3, n_players))
    return model, rows, np.array([exact(row) for row in rows]), budget, seconds


def own_seconds(estimator, n_players, budget, values):
    """Return the seconds of our own work on all rows."""
    if 2**n_players <= budget:
        return 0.0
    work = estimator.operations(n_players, budget, values.shape[2])
    return (work.once + len(values) * work.per_row) / OPERATIONS_PER_SECOND


def called(clock, cell, algorithm, budget=None, **options):
    """Return the estimate of a call, its error, and the seconds of the model."""
    model, rows, exact, budget_of_cell, seconds = cell
    timed = clock.model(model, seconds)
    explainer = shap.Explainer(timed, 0 * rows[:1], algorithm=algorithm, seed=0, **options)
    started = clock.now
    explainer(rows, max_evals=budget or budget_of_cell, silent=True)
    values = explainer.last_estimate.values
    error = np.abs(values - exact).sum() / np.abs(exact).sum()
    return explainer.last_estimate, max(float(error), FLOOR), clock.now - started


@pytest.mark.filterwarnings("ignore")
def test_errors_and_times_are_those_of_the_best_by_name(monkeypatch):
    clock, gains = Clock(monkeypatch), []
    for seed in range(N_CELLS):
        cell = drawn(seed)
        _, rows, exact, budget, _ = cell
        n_players = rows.shape[1]
        estimate, error, of_model = called(clock, cell, "best")
        name, _, option = re.split(":", estimate.choice)[0].partition(", ")
        options = {"weights": "quick"} if option else {}
        if not estimate.enumerated.all():
            of_call = estimate.budget or budget
            by_name = core.OddGP(**options, gradients=False) if name == "oddgp" else NAMES[name]
            own = own_seconds(by_name, n_players, of_call, exact)
            assert own <= max(OF_OWN * len(rows), of_model), seed
            assert estimate.timing_evaluations <= 0.05 * len(rows) * budget + 8, seed
            again, _, _ = called(clock, cell, name, of_call, **options)
            np.testing.assert_array_equal(again.values, estimate.values)
            seconds = 1.2 * (of_model + own)
            for other, method in NAMES.items():
                _, of_other, of_its_model = called(clock, cell, other)
                if of_its_model + own_seconds(method, n_players, budget, exact) <= seconds:
                    gains.append(of_other / error)
    # Three rows of one model leave much to chance: nearly all, and all together.
    assert np.mean(np.array(gains) >= 1 / 1.1) > 0.9
    assert np.exp(np.log(gains).mean()) > 1.5


@pytest.mark.parametrize(
    ("n_players", "seconds", "budget", "choice"),
    [
        (30, 1e-6, 480, "oddgp, weights='quick'"),
        (30, 1e-2, 480, "oddgp"),
        (150, 1e-7, "auto", "randomorder"),
        (80, 1e-2, "auto", "oddgp"),  # the model takes longer than any of them
        (20, 1e-2, 40, "randomorder"),  # one order and its reverse, exact for games of pairs
        (20, 1e-2, 42, "oddgp"),
    ],
)
def test_a_busy_machine_changes_no_choice(n_players, seconds, budget, choice, monkeypatch):
    clock, rng = Clock(monkeypatch), np.random.default_rng(0)
    model, exact = waves(rng, n_players, 1)
    rows = rng.normal(size=(2, n_players))
    exact = np.array([exact(row) for row in rows])
    found = [
        called(clock, (model, rows, exact, budget, factor * seconds), "best")[0]
        for factor in (0.9, 1.0, 1.4)
    ]
    assert {one.choice.partition(":")[0] for one in found} == {choice}
    for one in found:
        np.testing.assert_array_equal(one.values, found[0].values)
    # The time that random orders save pays for more of them.
    assert budget != "auto" or choice == "oddgp" or one.budget > 1.5 * 16 * n_players

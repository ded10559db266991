"""What `best` promises on drawn models with known values, by a clock that only the model moves.

Our own work counts by its operations, so that the numbers do not depend on the machine.
"""

import numpy as np
import pytest
import shap

import shap_ext  # noqa: F401  registers the algorithms
import shapley_adapters as core
from tests.helpers.clock import Clock

N_CELLS, OF_OWN, FLOOR = 20, 0.02, 1e-6
METHODS: dict[str, core.OddGP | core.LeastSquares | core.RandomOrder] = {
    "oddgp": core.OddGP(gradients=False),
    "oddgp, weights='quick'": core.OddGP("quick"),
    "leastsquares": core.LeastSquares(),
    "randomorder": core.RandomOrder(),
}


def drawn(rng, n_players, n_outputs):
    """Return a sum of products of up to three features, three rows, and exact values beside 0."""
    sets = rng.integers(0, n_players + 1, size=(2 * n_players, 3))  # the last one is no feature
    heights, rows = rng.normal(size=(len(sets), n_outputs)), rng.normal(size=(3, n_players))
    exact = np.zeros((3, n_players, n_outputs))

    def products(x):
        return np.column_stack([x, np.ones(len(x))])[:, sets].prod(axis=2)

    for index, value in enumerate(products(rows).T):
        members = np.unique(sets[index][sets[index] < n_players])
        exact[:, members] += np.multiply.outer(value, heights[index])[:, None] / max(
            1, len(members)
        )
    return lambda x: products(x) @ heights, rows, exact


def called(clock, cell, seconds, name, budget):
    """Return the estimate of a call, its error, and the seconds of the model and of our own."""
    (model, rows, exact), (algorithm, _, quick) = cell, name.partition(", ")
    options = {"weights": "quick"} if quick else {}
    timed, started = clock.model(model, seconds), clock.now
    explainer = shap.Explainer(timed, 0 * rows[:1], algorithm=algorithm, seed=0, **options)
    explainer(rows, max_evals=budget, silent=True)
    estimate, of_model = explainer.last_estimate, clock.now - started
    error = max(FLOOR, np.abs(estimate.values - exact).sum() / np.abs(exact).sum())
    by_name = METHODS.get(estimate.choice.partition(":")[0] or name)
    if estimate.enumerated.all() or by_name is None:
        return estimate, error, of_model, 0.0
    work = by_name.operations(rows.shape[1], estimate.budget or 16 * rows.shape[1], exact.shape[2])
    return estimate, error, of_model, (work.once + len(rows) * work.per_row) / 1e10


@pytest.mark.filterwarnings("ignore")
def test_errors_and_times_are_those_of_the_best_by_name(monkeypatch):
    clock, gains = Clock(monkeypatch), []
    for seed in range(N_CELLS):
        rng = np.random.default_rng(seed)
        n_players = int(np.exp(rng.uniform(np.log(2), np.log(100))))
        budget = max(4, int(n_players * np.exp(rng.uniform(np.log(0.5), np.log(32)))))
        seconds = np.exp(rng.uniform(np.log(1e-6), np.log(2e-2)))
        cell = drawn(rng, n_players, int(rng.choice([1, 10])))
        estimate, error, of_model, own = called(clock, cell, seconds, "best", budget)
        assert own <= max(OF_OWN * 3, of_model), seed
        assert estimate.timing_evaluations <= 0.05 * 3 * budget + 8, seed
        if estimate.enumerated.all():
            continue
        name = estimate.choice.partition(":")[0]
        again, *_ = called(clock, cell, seconds, name, estimate.budget or budget)
        np.testing.assert_array_equal(again.values, estimate.values)
        for other in METHODS:
            _, of_other, *times = called(clock, cell, seconds, other, budget)
            if sum(times) <= 1.2 * (of_model + own):
                gains.append(of_other / error)
    # Three rows of one model leave much to chance: nearly all, and all together.
    assert np.mean(np.array(gains) >= 1 / 1.1) > 0.9
    assert np.exp(np.log(gains).mean()) > 1.3


@pytest.mark.parametrize(
    ("n_players", "seconds", "budget", "choice"),
    [
        (30, 1e-6, 480, "oddgp, weights='quick'"),
        (30, 1e-2, 480, "oddgp"),
        (150, 1e-7, "auto", "randomorder"),
        (80, 1e-2, "auto", "oddgp"),  # the model takes longer than any of them
        (20, 1e-2, 40, "randomorder"),  # one order and its reverse, exact for games of pairs
        (12, 1e-7, "auto", "all 2^12 coalitions, which"),
    ],
)
def test_a_busy_machine_changes_no_choice(n_players, seconds, budget, choice, monkeypatch):
    clock, cell = Clock(monkeypatch), drawn(np.random.default_rng(0), n_players, 1)
    slow = [called(clock, cell, factor * seconds, "best", budget)[0] for factor in (0.9, 1.0, 1.4)]
    for one in slow:
        assert one.choice.partition(":")[0].partition(" take")[0] == choice
        np.testing.assert_array_equal(one.values, slow[0].values)
    # The time that random orders save pays for more of them.
    assert choice != "randomorder" or budget == 40 or slow[0].budget > 1.5 * 16 * n_players

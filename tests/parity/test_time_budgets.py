"""`max_seconds=` and `tolerance=` of both hosts, and what chooses between exact and estimated.

The model moves a clock of its own, so that the numbers do not depend on the machine.
"""

import re

import numpy as np
import pytest
import shap

import shap_ext
import shapley_adapters as core
from shapley_adapters.errors import (
    BudgetError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtWarning,
)
from shapley_adapters.pipeline.settings import rounded_seconds
from tests.helpers.clock import Clock
from tests.helpers.estimator_table import OF_CLASSES, SEVERAL, over
from tests.helpers.optional import captum_ext, torch
from tests.helpers.reference_games import FunctionGame
from tests.shap_host.games import network

SPEEDS = pytest.mark.parametrize("seconds", [1e-6, 5e-5, 5e-3])
ROWS = np.random.default_rng(3).normal(size=(4, 30))
FEW = "ignore:.* is little for"


def curved(x):
    return np.tanh(x[:, ::2].sum(axis=1)) + x[:, 0] * x[:, 1]


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def by_shap(model, rows, algorithm="best", seed=0, **options):
    algorithm, _, quick = algorithm.partition(", ")
    of_method = {"seed": seed, **({"weights": "quick"} if quick else {})}
    explainer = shap.Explainer(model, 0 * rows[:1], algorithm=algorithm, **of_method)
    return explainer(rows, silent=True, **options).values, explainer.last_estimate


def by_captum(model, rows, method="Best", seed=0, **options):
    def forward(x):
        return torch.as_tensor(model(x.numpy()))

    attribution = getattr(captum_ext, method)(forward, seed=seed)
    if "max_evals" in options:
        options["n_samples"] = options.pop("max_evals")
    values = attribution.attribute(torch.as_tensor(rows), **options)
    return values.numpy(), attribution.last_estimate


HOSTS = pytest.mark.parametrize("explain", [by_shap, by_captum])


@HOSTS
@SPEEDS
@pytest.mark.parametrize("n_features", [8, 13, 30])
@pytest.mark.filterwarnings(FEW)
def test_calls_end_in_time_and_use_it(explain, seconds, n_features, clock):
    model = clock.model(curved, seconds)
    limit = 0.5
    if seconds == 1e-6 and n_features == 30:
        limit = 0.02  # the model's time; our own stands still, and a larger budget takes minutes
    _, estimate = explain(model, ROWS[:, :n_features], max_seconds=limit)
    assert clock.now <= 1.2 * limit
    n_all = 2**n_features
    assert estimate.budget == n_all or clock.now >= 0.6 * limit
    assert (estimate.enumerated == (estimate.budget >= n_all)).all()
    assert (estimate.evaluations <= estimate.budget).all()


@HOSTS
@pytest.mark.parametrize("algorithm", ["Best", "RandomOrder", "LeastSquares", "Shear"])
def test_a_call_is_repeated_by_its_budget(explain, algorithm, clock):
    model = clock.model(curved, 1e-3)  # so slow that weights are learned from all values
    first, estimate = explain(model, ROWS, algorithm, max_seconds=3)
    chosen = "OddGP" if algorithm == "Best" else algorithm  # the estimate says so
    assert chosen == estimate.method
    again, repeated = explain(curved, ROWS, chosen, max_evals=estimate.budget)
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(repeated.standard_errors, estimate.standard_errors)
    assert estimate.timing_evaluations > 0 == repeated.timing_evaluations
    assert repeated.budget == estimate.budget
    assert (
        f"chosen: {estimate.choice}" in repr(estimate) and f"{estimate.budget:,}" in estimate.choice
    )


@HOSTS
def test_rows_of_few_players_are_enumerated_and_others_sampled(explain, clock):
    rows = ROWS.copy()
    rows[:2, 6:] = 0.0
    values, estimate = explain(clock.model(curved, 1e-4), rows, max_seconds=0.5)
    assert estimate.enumerated.tolist() == [True, True, False, False]
    assert estimate.evaluations[:2].tolist() == [64, 64]
    assert (estimate.standard_errors[:2] == 0).all() and (estimate.standard_errors[2:] > 0).any()
    assert repr(estimate).startswith("Estimate(OddGP, enumeration of 2 rows: 4 rows")
    exact, _ = explain(curved, rows[:2, :6], "enumeration" if explain is by_shap else "Exact")
    np.testing.assert_allclose(values[:2, :6], exact, atol=1e-10)
    assert clock.now <= 0.6


@HOSTS
def test_time_pays_for_exact_values_beyond_the_default_budget(explain, clock):
    rows = ROWS[:, :14]
    slow = clock.model(curved, 1e-3)
    default, by_default = explain(slow, rows)
    assert by_default.budget is None and (by_default.evaluations <= 500).all()
    assert not by_default.enumerated.any()
    clock.now = 0.0
    exact, estimate = explain(clock.model(curved, 1e-5), rows, max_seconds=1.0)
    assert estimate.enumerated.all()
    assert repr(estimate).startswith("Estimate(enumeration: 4 rows")
    np.testing.assert_array_equal(explain(slow, rows)[0], default)  # no limit is left in it
    wanted, _ = explain(curved, rows, "enumeration" if explain is by_shap else "Exact")
    np.testing.assert_allclose(exact, wanted, atol=1e-12)


@HOSTS
def test_too_short_a_time_is_refused_with_a_number_that_suffices(explain, clock):
    algorithm = "shear" if explain is by_shap else "Shear"
    with pytest.raises(BudgetError, match=r"max_seconds=0\.2 is too short.*122 eval.*4 rows") as no:
        explain(clock.model(curved, 5e-3), ROWS, algorithm, max_seconds=0.2)
    assert no.value.needed == 122
    assert clock.now <= 0.24
    (needed,) = re.findall(r"Pass max_seconds=([\d.]+) or more", str(no.value))
    assert 4 * 122 * 5e-3 < float(needed) < 5
    clock.now = 0.0
    _, estimate = explain(clock.model(curved, 5e-3), ROWS, algorithm, max_seconds=float(needed))
    assert clock.now <= 1.2 * float(needed)
    assert estimate.budget >= 122


@HOSTS
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        *((wrong, InvalidArgumentError) for wrong in (0, -1.0, np.nan, np.inf)),
        *((wrong, InvalidArgumentTypeError) for wrong in ("1", True)),
    ],
)
def test_times_of_no_use_are_refused(explain, wrong, error):
    with pytest.raises(error, match="max_seconds must be a positive number of seconds; got"):
        explain(curved, ROWS, max_seconds=wrong)


@HOSTS
def test_a_tolerance_ends_rows_before_their_time(explain, clock):
    model = clock.model(curved, 1e-4)
    _, estimate = explain(model, ROWS, max_seconds=2.0, tolerance="5%")
    assert clock.now < 1.0
    assert (estimate.evaluations < estimate.budget).all()
    clock.now = 0.0
    with pytest.warns(ShapleyExtWarning, match=r"4 of 4 rows.*max_seconds=0\.1.*Raise max_seconds"):
        explain(model, ROWS, max_seconds=0.1, tolerance=1e-9)
    assert clock.now <= 0.12


@over([row for row in SEVERAL if not row.is_exact])
def test_both_hosts_stop_at_the_same_evaluations(row):
    net, rows = network(12, 2), ROWS[:, :12]
    explainer = row.explainer(net, ROWS[:1, 12:24], seed=3, **row.options)
    explanation = explainer(rows, tolerance="15%", max_evals=4096, error_bounds=True, silent=True)
    method = row.attribution(net, seed=3, **row.options)
    x, baselines = torch.as_tensor(rows), torch.as_tensor(ROWS[:1, 12:24])
    options = {"tolerance": "15%", "n_samples": 4096, "return_standard_error": True}
    for one, other in zip(
        (explanation.values, explanation.error_std),
        method.attribute(x, baselines, **options),
        strict=True,
    ):
        np.testing.assert_allclose(one, other.movedim(1, 2).numpy(), atol=1e-10)
    spent = explainer.last_estimate.evaluations
    np.testing.assert_array_equal(spent, method.last_estimate.evaluations)
    errors = explainer.last_estimate.standard_errors
    assert (errors.max(axis=1) <= 0.15 * np.ptp(explanation.values, axis=1)).all()


@HOSTS
def test_a_budget_is_a_further_limit(explain, clock):
    model = clock.model(curved, 1e-5)
    _, estimate = explain(model, ROWS, max_seconds=10.0, max_evals=200)
    assert estimate.budget == 200 and (estimate.evaluations <= 200).all()
    with pytest.raises(BudgetError, match="too small: .* needs at least 4"):
        explain(model, ROWS, max_seconds=10.0, max_evals=3)


def test_draws_need_more_evaluations_than_coalitions(clock):
    masker = shap_ext.maskers.Gaussian(np.random.default_rng(0).normal(size=(60, 12)), draws=2)
    explainer = shap.Explainer(clock.model(curved, 1e-3), masker, algorithm="oddgp", seed=0)
    explainer(ROWS[:1, :12], max_seconds=0.2, silent=True)
    assert 12 <= explainer.last_estimate.budget < 100 and clock.now <= 0.24


@pytest.mark.parametrize(
    ("limit", "remedy"),
    [
        ({"max_evals": 10}, "Raise max_evals to 30 at least"),
        ({"max_model_rows": 10}, "Raise max_model_rows until max_evals=30 fits into it"),
        ({"max_evals": 100, "tolerance": 1e-9}, "Raise max_evals or the tolerance"),
    ],
)
def test_messages_name_the_limit_that_is_reached(limit, remedy, clock):
    with pytest.warns(ShapleyExtWarning, match=remedy):
        by_shap(clock.model(curved, 1e-5), ROWS, "oddgp", max_seconds=10.0, **limit)


@over(OF_CLASSES)
@pytest.mark.parametrize("seconds_of_call", [0.0, 1e-3])
def test_every_estimator_ends_in_time(row, seconds_of_call, clock):
    model = clock.model(curved, 2e-5, seconds_of_call)
    explainer = row.explainer(model, np.zeros((1, 12)), seed=0)
    explainer(ROWS[:, :12], max_seconds=0.8, silent=True)
    estimate = explainer.last_estimate
    assert clock.now <= 0.96
    # Some estimators leave evaluations of their budget, because others would be the same.
    assert estimate.budget == 4096 or clock.now >= 0.2
    if row.id == "best":  # which may choose another method for this budget
        return
    expected = explainer(ROWS[:, :12], max_evals=estimate.budget, silent=True)
    np.testing.assert_array_equal(explainer.last_estimate.values, estimate.values)
    assert expected.values.shape == (4, 12)


@pytest.mark.parametrize(
    ("slowness", "independent_rows"), [(0.5, True), (1, False), (10, False), (10, True)]
)
def test_our_own_work_is_part_of_the_time(slowness, independent_rows, clock, monkeypatch):
    """On a machine that is slower or faster than the count of operations says."""
    solve = core.OddGP.solve

    def timed(self, design, values):
        work = self.operations(30, values.shape[1], 1)
        clock.now += slowness * 1e-10 * (work.once + len(values) * work.per_row)
        return solve(self, design, values)

    monkeypatch.setattr(core.OddGP, "solve", timed)
    explainer = shap_ext.OddGPExplainer(
        clock.model(curved, 1e-6), np.zeros((1, 30)), seed=0, independent_rows=independent_rows
    )
    explainer(ROWS, max_seconds=1.0, silent=True)
    assert 0.4 <= clock.now <= 1.2


@pytest.mark.parametrize("method", ["Shear", "OddGP"])
@pytest.mark.parametrize("cooperators", ["auto", "hessian", "gradient", "difference"])
def test_scores_from_derivatives_with_a_time(method, cooperators):
    """Our own work is measured on another game, which has no derivatives."""
    net = torch.nn.Sequential(torch.nn.Linear(14, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x = torch.randn(3, 14, generator=torch.Generator().manual_seed(0))
    attribution = getattr(captum_ext, method)(net, cooperators=cooperators, seed=0)
    values = attribution.attribute(x, n_samples=300, max_seconds=20.0)
    assert (attribution.last_estimate.cooperators != "").all()
    again = attribution.attribute(x, n_samples=attribution.last_estimate.budget)
    torch.testing.assert_close(values, again)


def test_the_first_call_of_a_model_may_be_slow(clock):
    calls = []

    def model(x):
        clock.now += 1e-5 * len(x) + (0.0 if calls else 0.2)
        calls.append(len(x))
        return curved(x)

    _, estimate = by_shap(model, ROWS, "randomorder", max_seconds=1.0)
    assert estimate.budget > 5_000
    assert clock.now <= 1.2


def test_calls_that_take_as_long_for_many_rows_as_for_one_are_filled(clock):
    """As behind a network, whose 0.1 s would be 0.025 s each for four evaluations."""
    rows = np.random.default_rng(0).normal(size=(20, 30))
    _, estimate = by_shap(clock.model(curved, 1e-6, 0.1), rows, "leastsquares", max_seconds=5.0)
    assert (estimate.evaluations > 60).all()
    assert clock.now <= 5.0


def test_a_further_round_that_takes_longer_than_planned_is_left_out(clock):
    n_rows = 0

    def model(x):  # from 800 evaluations on, it is slow
        nonlocal n_rows
        n_rows += len(x)
        clock.now += len(x) * (1e-3 if n_rows < 800 else 3e-3)
        return curved(x)

    options = {"max_seconds": 2.0, "batch_size": 50}
    values, estimate = by_shap(model, ROWS[:1], "leastsquares", **options)
    assert 100 < estimate.budget < 800 < n_rows
    assert 1.5 < clock.now <= 2.0
    again, _ = by_shap(curved, ROWS[:1], "leastsquares", max_evals=estimate.budget)
    np.testing.assert_array_equal(again, values)


def test_rows_without_players_need_no_time(clock):
    model = clock.model(curved, 1e-3)
    values, _ = by_shap(model, np.zeros((3, 30)), max_seconds=0.5)
    assert (values == 0).all()


def test_a_budget_never_asks_for_more_players_than_are_enumerated(clock):
    """Time would pay for 2^21 coalitions, which are not enumerated."""
    game = FunctionGame(lambda z: z.sum(axis=1), 21)
    settings = core.Settings(seed=0, max_seconds=1e9, budget=2**21 + 1)
    with pytest.raises(BudgetError, match="limited to 20"):
        core.estimate(game, core.RandomOrder(), settings)
    _ = clock


# --- our own work without a limit of time ---


def test_our_own_work_of_a_long_call_is_forecast(monkeypatch):
    """By counts of operations, so that a busy machine says the same."""
    monkeypatch.setattr("shapley_adapters.pipeline.costs._MANY_SECONDS", 0.5)
    monkeypatch.setattr("shapley_adapters.pipeline.one_round.MANY_ENTRIES", 10**4)
    explainer = shap_ext.OddGPExplainer(curved, np.zeros((1, 30)), seed=0)
    rows = np.tile(ROWS, (5, 1)) + np.arange(20)[:, None]
    with pytest.warns(ShapleyExtWarning, match="Random orders would take 1 s") as warned:
        explained = explainer(rows, max_evals=400, silent=True)
    (text,) = {str(one.message) for one in warned}
    seconds = 20 * core.OddGP(gradients=False).operations(30, 400, 1).per_row / 1e10
    assert f"computes for about {rounded_seconds(seconds)} beside the model, for 20 rows" in text
    alone = explainer(rows[:2], max_evals=400, silent=True)
    np.testing.assert_array_equal(alone.values, explained.values[:2])


@pytest.mark.parametrize(
    "method",
    [core.OddGP(gradients=False), core.RandomOrder(), core.LeastSquares(), core.Shear()],
    ids=lambda method: type(method).__name__,
)
def test_more_of_anything_is_more_work(method):
    def seconds(*size):
        work = method.operations(*size)
        return work.once + 20 * work.per_row

    of_sizes = [seconds(m, 8 * m, 1) for m in (5, 13, 30, 60, 200, 1000)]
    of_budgets = [seconds(30, n, 1) for n in (60, 300, 1000, 5000, 20_000)]
    of_outputs = [seconds(30, 480, k) for k in (1, 10, 100)]
    for found in (of_sizes, of_budgets, of_outputs):
        assert (np.diff(found) > 0).all()


def test_time_of_the_model_and_our_own_are_told_apart(clock):
    _, estimate = by_shap(clock.model(curved, 1e-3), ROWS, "oddgp", max_evals=100)
    assert estimate.seconds.model == pytest.approx(1e-3 * estimate.evaluations.sum(), rel=0.05)
    assert abs(estimate.seconds.own) < 0.05 and estimate.seconds.choosing == 0
    by_shap(clock.model(curved, 1e-3), ROWS, "oddgp", max_evals=100)
    _, chosen = by_shap(clock.model(curved, 1e-3), ROWS[:, :12])
    assert chosen.seconds.choosing == pytest.approx(1e-3 * chosen.timing_evaluations, rel=0.2)


# --- what `best` promises on drawn models with known values; our own work is that of operations ---

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
        shares = heights[index] / max(1, len(members))
        exact[:, members] += np.multiply.outer(value, shares)[:, None]
    return lambda x: products(x) @ heights, rows, exact


def called(clock, cell, seconds, name, budget):
    """Return the estimate of a call, its error, and the seconds of the model and of our own."""
    (model, rows, exact), started = cell, clock.now
    _, estimate = by_shap(clock.model(model, seconds), rows, name, max_evals=budget)
    of_model = clock.now - started
    error = max(1e-6, np.abs(estimate.values - exact).sum() / np.abs(exact).sum())
    by_name = METHODS.get(estimate.choice.partition(":")[0] or name)
    if estimate.enumerated.all() or by_name is None:
        return estimate, error, of_model, 0.0
    work = by_name.operations(rows.shape[1], estimate.budget or 16 * rows.shape[1], exact.shape[2])
    return estimate, error, of_model, (work.once + len(rows) * work.per_row) / 1e10


@pytest.mark.filterwarnings("ignore")
def test_errors_and_times_are_those_of_the_best_by_name(clock):
    gains = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n_players = int(np.exp(rng.uniform(np.log(2), np.log(100))))
        budget = max(4, int(n_players * np.exp(rng.uniform(np.log(0.5), np.log(32)))))
        seconds = np.exp(rng.uniform(np.log(1e-6), np.log(2e-2)))
        cell = drawn(rng, n_players, int(rng.choice([1, 10])))
        estimate, error, of_model, own = called(clock, cell, seconds, "best", budget)
        assert own <= max(0.02 * 3, of_model), seed
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
        (12, 1e-7, "auto", "all 2^12 coalitions, which"),
    ],
)
def test_a_busy_machine_changes_no_choice(n_players, seconds, budget, choice, clock):
    cell = drawn(np.random.default_rng(0), n_players, 1)
    slow = [called(clock, cell, factor * seconds, "best", budget)[0] for factor in (0.9, 1.0, 1.4)]
    for one in slow:
        assert one.choice.partition(":")[0].partition(" take")[0] == choice
        np.testing.assert_array_equal(one.values, slow[0].values)
    # The time that random orders save pays for more of them.
    assert choice != "randomorder" or slow[0].budget > 1.5 * 16 * n_players


# --- interactions ---


@pytest.mark.parametrize("tolerance", [None, 0.01])
@pytest.mark.parametrize("name", ["randomorder", "shear", "leastsquares"])
def test_interactions_by_enumeration_in_a_limited_time(name, tolerance, clock):
    """Without a limit, the same budget gives them; a time that pays for it gives them, too."""
    index = "banzhaf"  # leastsquares estimates "shapley"
    options = {"interactions": index, "tolerance": tolerance}
    explainer = shap.Explainer(curved, np.zeros((1, 8)), algorithm=name, seed=0)
    expected = explainer(ROWS[:, :8], max_evals=256, silent=True, **options).values
    model = clock.model(curved, 1e-4)
    timed = shap.Explainer(model, np.zeros((1, 8)), algorithm=name, seed=0)
    values = timed(ROWS[:, :8], max_seconds=20, silent=True, **options).values
    np.testing.assert_array_equal(values, expected)
    assert timed.last_estimate.enumerated.all()
    timed(ROWS[:, :8], max_evals=256, max_seconds=20, silent=True, **options)
    with pytest.raises(BudgetError, match="max_seconds=.* is too short.*256 evaluations"):
        timed(ROWS[:, :8], max_seconds=0.05, silent=True, **options)


@pytest.mark.parametrize("name", ["oddgp", "leastsquares"])
def test_the_budget_of_a_limited_time_has_interactions_that_fit_into_memory(
    name, clock, monkeypatch
):
    for module in ("settings", "costs"):
        monkeypatch.setattr(f"shapley_adapters.pipeline.{module}.memory_limit", lambda: 2**22)
    rows, model = ROWS[:1, :20], clock.model(curved, 1e-5)
    explainer = shap.Explainer(model, 0 * rows, algorithm=name, seed=0)
    options = {"interactions": True, "silent": True}
    explainer(rows, max_seconds=0.1, **options)
    budget = explainer.last_estimate.budget
    explainer(rows, max_evals=budget, **options)
    with pytest.raises(BudgetError, match="GiB.*Without interactions"):
        explainer(rows, max_evals=2 * budget, **options)

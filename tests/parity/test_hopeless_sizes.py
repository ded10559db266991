"""Sizes that no machine computes, and budgets that say little: refused or warned of at once."""

import os
import time
import warnings

import numpy as np
import pytest
import shap

import shap_ext
import shapley_adapters as core
from shapley_adapters import memory_bounds
from shapley_adapters.errors import BudgetError, InvalidArgumentError, ShapleyExtWarning
from shapley_adapters.estimators.protocol import DesignRequest
from shapley_adapters.pipeline import designs
from tests.helpers.estimator_table import OF_CLASSES
from tests.helpers.optional import captum_ext, torch
from tests.helpers.reference_games import FunctionGame


def must_not_be_called(*_):
    raise AssertionError("The model must not be evaluated.")


RANDOM = [row for row in OF_CLASSES if not row.is_exact]


@pytest.mark.parametrize("row", RANDOM[::3], ids=lambda row: row.id)
def test_images_without_a_feature_mask(row):
    x = 1.0 + torch.rand(1, 3, 224, 224)  # no pixel is absent
    budget = max(16 * 150528, row.least(150528))
    started = time.perf_counter()
    with pytest.raises(BudgetError, match=rf"(?s)GiB.*150528 players.*{budget}.*feature_mask"):
        row.attribution(must_not_be_called, seed=0).attribute(x)
    assert time.perf_counter() - started < 60


@pytest.mark.parametrize("name", ["oddgp", "simsemivalue"])
def test_wide_rows_without_groups(name):
    rows = np.ones((1, 150_528))
    explainer = shap.Explainer(must_not_be_called, 0 * rows, algorithm=name, seed=0)
    with pytest.raises(BudgetError, match=r"(?s)GiB.*groups=.*lower max_evals"):
        explainer(rows)


def test_a_mask_of_superpixels_makes_it_possible():
    x = torch.rand(1, 3, 224, 224)
    grid = torch.arange(49).reshape(7, 7).repeat_interleave(32, 0).repeat_interleave(32, 1)
    method = captum_ext.OddGP(lambda x: x.mean(dim=(1, 2, 3)), seed=0)
    made = method.attribute(x, feature_mask=grid.expand(1, 3, 224, 224), n_samples=100)
    assert made.shape == x.shape


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [core.RandomOrder(), core.Shear(cooperators="random"), core.SimSemivalue()]
)
def test_three_thousand_players_are_possible(estimator):
    """More than 1,023 players, beyond which 2^M is no floating-point number."""
    weights = np.random.default_rng(0).normal(size=3000)
    game = FunctionGame(lambda z: z @ weights, 3000, evaluations_per_batch=256)
    budget = estimator.minimum_budget(3000) + 6000
    values = core.estimate(game, estimator, core.Settings(seed=0, budget=budget)).values
    if isinstance(estimator, core.SimSemivalue):
        assert values.sum() == pytest.approx(weights.sum())
    else:
        np.testing.assert_allclose(values[0, :, 0], weights, atol=1e-9)


@pytest.mark.slow
def test_oddgp_through_its_first_values_of_more_players_than_a_power_of_two_has(monkeypatch):
    """2^(M − 1) is no floating-point number from 1,025 players on."""
    # As with more than 8,192 evaluations.
    monkeypatch.setattr("shapley_adapters.estimators.odd_gp.posterior.DENSE", 64)
    monkeypatch.setattr("shapley_adapters.estimators.odd_gp.posterior.SEEN", 64)
    weights = np.random.default_rng(0).normal(size=1030)
    explainer = shap.Explainer(
        lambda x: x @ weights, np.zeros((1, 1030)), algorithm="oddgp", seed=0
    )
    found = explainer(np.ones((1, 1030)), max_evals=2200)
    differences = np.abs(found.values[0] - weights)
    assert differences.mean() < 0.06  # of 0.8 on average; exactly, .044: priors are averaged
    errors = explainer.last_estimate.standard_errors[0, :, 0]
    assert (differences < 5 * errors + 0.02).mean() > 0.98


# --- minutes of our own work ---


@pytest.fixture
def much_memory(monkeypatch):
    monkeypatch.setattr("shapley_adapters.pipeline.settings.memory_limit", lambda: 2**40)


def wide_call(name, n_features, budget=None, **options):
    rows = np.ones((1, n_features))
    explainer = shap.Explainer(must_not_be_called, 0 * rows, algorithm=name, seed=0, **options)
    return explainer(rows, max_evals=budget or "auto")


def test_rows_that_take_too_long_are_refused_before_any_evaluation(much_memory):
    words = r"(?si)odd GP.* s for each row .*for 8000 players.*At most 600 s.*groups=.*"
    started = time.perf_counter()
    with pytest.raises(BudgetError, match=words + "lower max_evals"):
        wide_call("oddgp", 8000)
    x = torch.ones(1, 8000)
    with pytest.raises(BudgetError, match=words + "lower n_samples"):
        captum_ext.OddGP(must_not_be_called, seed=0).attribute(x)
    assert time.perf_counter() - started < 60


@pytest.mark.parametrize("options", [{}, {"replacement": False}, {"sizes": "leverage"}])
def test_least_squares_of_more_coalitions_than_a_number_holds(options):
    """From about 1,030 players on, some sizes have more coalitions than the largest float."""
    ends = np.array([[False], [True]]).repeat(1100, axis=1)
    request = DesignRequest(1100, 16_800, 16_800, np.random.default_rng(0), ends)
    design = core.LeastSquares(**options).design(request)
    assert len(design.weights) == 8399
    assert np.isfinite(design.weights).all()


def test_the_limit_is_half_of_the_smaller_of_machine_and_container(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sysconf", lambda _: 2**17)  # pages, and bytes of each
    container = tmp_path / "memory.max"
    monkeypatch.setattr(memory_bounds, "_CONTAINER", container)
    assert memory_bounds.memory_limit() == 2**33
    container.write_text("max\n")
    assert memory_bounds.memory_limit() == 2**33
    container.write_text(f"{2**30}\n")
    assert memory_bounds.memory_limit() == 2**29
    monkeypatch.delattr(os, "sysconf")  # as on Windows
    container.unlink()
    assert memory_bounds.memory_limit() == 2**33  # unknown


def test_the_refusal_names_the_budget_that_does(monkeypatch):
    """A machine of 1 MiB: 10,000 evaluations of 40 players are too many, 200 are not."""
    monkeypatch.setattr("shapley_adapters.pipeline.settings.memory_limit", lambda: 2**20)
    game = FunctionGame(lambda z: z.sum(axis=1), 40)
    with pytest.raises(BudgetError, match=r"0\.000977 GiB.*lower budget"):
        core.estimate(game, core.RandomOrder(), core.Settings(seed=0, budget=10_000))
    core.estimate(game, core.RandomOrder(), core.Settings(seed=0, budget=200))


# --- interactions ---


@pytest.mark.parametrize("max_seconds", [None, 60])
def test_interactions_of_many_features(max_seconds, monkeypatch):
    monkeypatch.setattr("shapley_adapters.pipeline.settings.memory_limit", lambda: 2**33)
    rows = np.ones((1, 500))
    explainer = shap.Explainer(must_not_be_called, 0 * rows, algorithm="leastsquares", seed=0)
    words = r"(?s)GiB.*500 players.*groups=.*Without interactions, it needs about \d\."
    with pytest.raises(BudgetError, match=words):
        explainer(rows, interactions=True, max_evals=274452, max_seconds=max_seconds)


def test_sets_of_many_features():
    rows = np.ones((1, 200))
    explainer = shap.Explainer(must_not_be_called, 0 * rows, algorithm="oddgp", seed=0)
    with pytest.raises(BudgetError, match="(?s)GiB.*200 players.*groups=.*Without interactions"):
        explainer.set_interactions(rows, order=5, max_evals=400)


@pytest.mark.parametrize("max_seconds", [None, 60])
def test_matrices_of_many_rows_are_refused_before_any_evaluation(max_seconds, monkeypatch):
    """32 bytes for each of 2,000 rows and 400 times 400 entries."""
    monkeypatch.setattr("shapley_adapters.interactions.result.memory_limit", lambda: 2**33)
    rows = np.ones((2000, 400))
    explainer = shap.Explainer(must_not_be_called, np.zeros((1, 400)), algorithm="oddgp", seed=0)
    with pytest.raises(InvalidArgumentError, match="(?s)GiB.*2000 rows.*fewer rows"):
        explainer(rows, interactions=True, max_evals=10, max_seconds=max_seconds)


# --- graphs ---


def on_line(algorithm, n_players, budget, **options):
    """Explain a sum of its features on a line; the values are known."""
    weights = np.arange(1.0, n_players + 1)
    explainer = shap.Explainer(
        lambda x: x @ weights,
        np.zeros((1, n_players)),
        algorithm=algorithm,
        graph="line",
        seed=0,
        **options,
    )
    found = explainer(np.ones((1, n_players)), max_evals=budget).values[0]
    np.testing.assert_allclose(found, weights, rtol=1e-9)
    return explainer.last_estimate


@pytest.mark.parametrize(
    ("algorithm", "options", "n_evaluations"),
    [
        ("myerson", {}, 40 * 41 // 2 + 1),
        ("lshapley", {"order": 2}, None),
        ("cshapley", {"order": 2}, None),
        ("cshapley", {"variant": "regression", "order": 2, "efficient": True}, None),
    ],
)
def test_large_budgets_of_small_designs_on_graphs(algorithm, options, n_evaluations):
    """10^9 coalitions of 40 players do not fit into memory, but far fewer are needed."""
    estimate = on_line(algorithm, 40, 10**9, **options)
    assert (estimate.standard_errors == 0).all()
    assert estimate.evaluations[0] < 1000
    assert n_evaluations in (None, estimate.evaluations[0])


def with_memory(monkeypatch, n_bytes):
    for module in ("pipeline.settings", "estimators.graph.linear_design"):
        monkeypatch.setattr(f"shapley_adapters.{module}.memory_limit", lambda: n_bytes)


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("myerson", {}),
        ("cshapley", {"order": 120}),
        ("lshapley", {"order": 5}),
        ("cshapley", {"variant": "regression", "order": 120}),
        ("cshapley", {"variant": "regression", "order": 120, "shapes": "connected"}),
    ],
)
def test_sets_on_graphs_that_do_not_fit_into_memory(algorithm, options, monkeypatch):
    """The terms of 7,260 connected sets of 120 players take more than their coalitions."""
    with_memory(monkeypatch, 2**21)
    designs._kept.clear()
    words = r"(?s)max_evals=20000 is too large.*0\.00195 GiB.*120 players.*Lower max_evals.*groups="
    explainer = shap.Explainer(
        must_not_be_called, np.zeros((1, 120)), algorithm=algorithm, graph="line", **options
    )
    with pytest.raises(BudgetError, match=words):
        explainer(np.ones((1, 120)), max_evals=20_000)


def test_orders_that_grow_with_the_budget_are_refused_at_once():
    started = time.perf_counter()
    with pytest.raises(BudgetError, match="max_evals=1000000000 is too large"):
        on_line("lshapley", 40, 10**9)
    assert time.perf_counter() - started < 60


def test_draws_on_graphs_that_do_not_fit_into_memory(monkeypatch):
    """7,000 evaluations do not pay for all connected sets, and their draws are too many."""
    with_memory(monkeypatch, 2**22)
    with pytest.raises(BudgetError, match="max_evals=7000 is too large"):
        on_line("myerson", 120, 7000)
    assert (on_line("myerson", 120, 1000).standard_errors >= 0).all()


# --- enumeration ---


@pytest.mark.parametrize("n_features", [21, 30])
def test_budgets_that_pay_for_too_many_coalitions(n_features):
    rows = np.ones((1, n_features))
    explainer = shap.Explainer(must_not_be_called, 0 * rows, algorithm="oddgp", seed=0)
    with pytest.raises(BudgetError, match=rf"max_evals=10{{11}} .*2\^{n_features}.*20 players"):
        explainer(rows, max_evals=10**11)
    method = captum_ext.RandomOrder(must_not_be_called, seed=0)
    with pytest.raises(BudgetError, match=rf"n_samples=10{{11}} .*2\^{n_features}.*20 players"):
        method.attribute(torch.ones(1, n_features), n_samples=10**11)
    with pytest.raises(BudgetError, match="20 players"):
        method.attribute(torch.ones(1, n_features), n_samples=10**11, tolerance=0.1)
    with pytest.raises(BudgetError, match="20 players"):
        captum_ext.Exact(must_not_be_called).attribute(torch.ones(1, n_features))


@pytest.mark.parametrize("name", ["lshapley", "cshapley", "myerson"])
def test_a_large_budget_on_a_small_graph_is_exact(name):
    rows = np.arange(1.0, 4.0)[None]
    explainer = shap.Explainer(
        lambda x: x.prod(axis=1), 0 * rows, algorithm=name, graph=[(0, 1), (1, 2), (0, 2)]
    )
    np.testing.assert_allclose(explainer(rows, max_evals=10**30).values, 2.0)


# --- budgets that say little ---


@pytest.mark.parametrize(("n_players", "n_samples", "least"), [(50, 25, 50), (30, 29, 30)])
def test_oddgp_warns_of_few_evaluations_a_feature(n_players, n_samples, least):
    """Of less than one."""
    x = torch.rand(3, n_players, dtype=torch.float64)
    words = rf"={n_samples} is little for {n_players} players.*below {least}.*Raise "
    method = captum_ext.OddGP(lambda x: x.sum(1), gradients=False, seed=0)
    with pytest.warns(ShapleyExtWarning, match=f"n_samples{words}n_samples to") as found:
        method.attribute(x, n_samples=n_samples)
    assert len(found) == 1
    explainer = shap_ext.OddGPExplainer(lambda x: x.sum(axis=1), np.zeros((1, n_players)), seed=0)
    with pytest.warns(ShapleyExtWarning, match=f"max_evals{words}max_evals to"):
        explainer(x.numpy(), max_evals=n_samples)


def test_oddgp_does_not_warn_where_it_is_of_use():
    """From one evaluation a feature on, where all coalitions are, and for the active features."""
    x = torch.rand(2, 50, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method = captum_ext.OddGP(lambda x: x.sum(1), seed=0)
        method.attribute(x, n_samples=50)
        method.attribute(x[:, :3], n_samples=8)
        x[:, 12:] = 0
        method.attribute(x, n_samples=25)
